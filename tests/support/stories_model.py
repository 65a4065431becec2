"""The tiny trained model stories260K, with a chat template, for tests in Python."""

import json
import pathlib
import shutil

import pytest

MODEL = pathlib.Path(__file__).parents[2] / "../shared/models/stories260K"
CHAT_TEMPLATE = (
    "{% for m in messages %}{{ m.role | upper }}: {{ m.content }}\n{% endfor %}"
    "{% if tools %}TOOLS: {{ tools | length }}\n{% endif %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def copy_model(folder):
    if not MODEL.exists():
        pytest.skip(f"{MODEL} is not there")
    shutil.copytree(MODEL, folder)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    config["chat_template"] = CHAT_TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
