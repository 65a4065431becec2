"""Models by name, from a hub that a made-up huggingface_hub stands for."""

import fnmatch
import json
import sys
import types

import pytest

import banyan
from banyan.hub import locate_model

COMMIT = "c" * 40


class FakeHub(types.ModuleType):
    """Has one repository, acme/nano, and copies of it what the patterns allow."""

    def __init__(self, cache):
        super().__init__("huggingface_hub")
        self.cache, self.files, self.calls = cache / COMMIT, {}, []

    def snapshot_download(self, repo_id, revision=None, allow_patterns=None):
        self.calls.append((repo_id, revision))
        for name, text in self.files.items():
            if any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns):
                path = self.cache / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        self.cache.mkdir(exist_ok=True)
        return str(self.cache)

    def here(self):
        return {str(path.relative_to(self.cache)) for path in self.cache.rglob("*.*")}


@pytest.fixture
def hub(tmp_path, monkeypatch):
    hub = FakeHub(tmp_path)
    hub.files = {"config.json": "{}", "tokenizer.json": "{}", "chat_template.jinja": "x",
                 "README.md": "text", "pytorch_model.bin": "pickle", "model.safetensors": "w",
                 "consolidated.safetensors": "the same again", "original/config.json": "{}"}
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    monkeypatch.chdir(tmp_path)
    return hub


def test_only_what_an_engine_needs(hub):
    assert locate_model("acme/nano") == str(hub.cache)
    assert hub.here() == {"config.json", "tokenizer.json", "chat_template.jinja",
                          "model.safetensors"}
    assert hub.calls == [("acme/nano", None), ("acme/nano", COMMIT)]


def test_the_shards_that_the_index_names(hub):
    hub.files["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {"a": "model-1.safetensors", "b": "part.safetensors"}})
    hub.files.update({"model-1.safetensors": "1", "part.safetensors": "2"})
    locate_model("acme/nano")
    assert {"model-1.safetensors", "part.safetensors"} <= hub.here()
    assert "model.safetensors" not in hub.here()
    hub.files["model.safetensors.index.json"] = json.dumps({"weight_map": {"a": "../x*"}})
    with pytest.raises(ValueError, match="not a plain"):
        locate_model("acme/nano")


@pytest.mark.parametrize("name", ["hf.co/acme/nano@v1", "https://huggingface.co/acme/nano@v1"])
def test_hosts_and_revisions(hub, name):
    assert locate_model(name) == str(hub.cache)
    assert locate_model("acme/nano", revision="v1") == str(hub.cache)
    assert hub.calls[0] == hub.calls[2] == ("acme/nano", "v1")


def test_gguf_files(hub):
    hub.files = {"n-Q8_0.gguf": "8", "b/n-00001-of-00002.gguf": "1", "b/n-00002-of-00002.gguf": "2"}
    assert locate_model("acme/nano:n-Q8_0.gguf") == str(hub.cache / "n-Q8_0.gguf")
    first = str(hub.cache / "b/n-00001-of-00002.gguf")
    assert locate_model("acme/nano:b/n-00002-of-00002.gguf") == first
    assert hub.here() == set(hub.files)
    with pytest.raises(LookupError, match="has no file n-Q4_0.gguf"):
        locate_model("acme/nano:n-Q4_0.gguf")
    with pytest.raises(ValueError, match="banyan pull acme/nano:Q8_0"):
        locate_model("acme/nano:Q8_0")
    with pytest.raises(ValueError, match="acme/nano:FILE.gguf"):
        locate_model("acme/nano")


def test_what_is_here_wins(hub, tmp_path):
    (tmp_path / "acme").mkdir()
    assert locate_model("acme/nano") == "acme/nano"
    assert locate_model("/nowhere/at/all") == "/nowhere/at/all"
    assert locate_model("hf.co/acme/nano") == str(hub.cache)
    (tmp_path / "acme" / "nano").mkdir()
    calls = len(hub.calls)
    assert locate_model("acme/nano") == "acme/nano"
    with pytest.raises(ValueError, match="revision='v1'"):
        locate_model("acme/nano", revision="v1")
    assert len(hub.calls) == calls


def test_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="pip install huggingface_hub"):
        banyan.Engine("acme/nano")


def test_engines_take_names(hub, monkeypatch):
    def start(arguments):
        raise LookupError(" ".join(arguments))

    monkeypatch.setattr("banyan.engine._native.Engine", start)
    with pytest.raises(LookupError) as error:
        banyan.Engine("acme/nano", revision="v1", speculative_draft_model_path="acme/small")
    assert str(error.value) == \
        f"--model-path={hub.cache} --speculative-draft-model-path={hub.cache}"
    assert hub.calls[0] == ("acme/nano", "v1")
    assert hub.calls[2] == ("acme/small", None)
