"""The tiny trained models: stories260K with a chat template, and banyan-nano, also served."""

import os
import pathlib
import sys

import pytest

import banyan

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
from serving import ServingProgram  # noqa: E402: its folder is on the path from here on
from stories_model import copy_model  # noqa: E402


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    return copy_model(tmp_path_factory.mktemp("model") / "stories260K")


@pytest.fixture(scope="session")
def engine(model):
    with banyan.Engine(model_path=str(model), max_total_tokens=32768, threads=1) as engine:
        yield engine


@pytest.fixture(scope="session")
def nano():
    return str(pathlib.Path(__file__).parents[2] / "models/banyan-nano")


@pytest.fixture(scope="session")
def nano_engine(nano):
    with banyan.Engine(model_path=nano, max_total_tokens=8192, threads=1) as engine:
        yield engine


@pytest.fixture(scope="session")
def serve(nano):
    """Starts a server of banyan-nano."""
    if "BANYAN_PROGRAM" not in os.environ:
        pytest.skip("BANYAN_PROGRAM names no program")
    return lambda: ServingProgram(nano, "--threads", "1", "--served-model-name", "nano")


@pytest.fixture(scope="session")
def server(serve):
    server = serve()
    yield server
    assert server.stop() == 0
