"""The tiny trained model stories260K, with a chat template."""

import pathlib
import sys

import pytest

import banyan

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from stories_model import copy_model  # noqa: E402: its folder is on the path from here on


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return copy_model(tmp_path_factory.mktemp("model") / "stories260K")


@pytest.fixture(scope="session")
def engine(model):
    with banyan.Engine(model_path=str(model), max_total_tokens=32768, threads=1) as engine:
        yield engine
