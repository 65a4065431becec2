"""The tiny trained model stories260K, with a chat template."""

import json
import pathlib
import shutil

import pytest

import banyan

MODEL = pathlib.Path(__file__).parents[2] / "../shared/models/stories260K"
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role | upper }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is not there")
    folder = tmp_path_factory.mktemp("model") / "stories260K"
    shutil.copytree(MODEL, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = CHAT_TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="session")
def engine(model):
    with banyan.Engine(model_path=str(model), max_total_tokens=32768, threads=1) as engine:
        yield engine
