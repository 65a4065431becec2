"""Downloads models from a Hugging Face hub by name, with the package huggingface_hub.

Its environment variables select the hub and the cache folder: HF_HOME, HF_ENDPOINT, HF_TOKEN,
HF_HUB_OFFLINE and so on. `banyan pull` shares its cache.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

__all__ = ["locate_model"]

# Downloaded if the model has them, followed by the weights. A GGUF file needs none of these.
SMALL_FILES = [
    "config.json", "generation_config.json", "tokenizer.json", "tiktoken.model",
    "tokenizer_config.json", "special_tokens_map.json", "chat_template.json",
    "chat_template.jinja", "model.safetensors.index.json", "modules.json", "*_Pooling/config.json",
]
INDEX = "model.safetensors.index.json"

_WORD = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?"
_NAME = re.compile(
    r"(?P<host>(?:https://)?(?:hf\.co|huggingface\.co)/)?"
    rf"(?P<owner>{_WORD})/(?P<name>{_WORD})(?:@(?P<revision>[^:@\s]+))?(?::(?P<file>[^:@\s]+))?",
    re.IGNORECASE)
_PART = re.compile(r"(.*)-\d{5}-of-(\d{5})\.gguf")


def locate_model(path: str, revision: str | None = None) -> str:
    """Returns a model's folder or GGUF file: `path` if it exists, else a download from a hub.

    Names are OWNER/NAME, OWNER/NAME@REVISION and OWNER/NAME:FILE.gguf, optionally prefixed with
    "hf.co/". Anything else is returned unchanged, as is a name whose OWNER is a local folder, since
    that folder is more likely meant.
    """
    if os.path.exists(path):
        if revision is not None:
            raise ValueError(f"revision={revision!r} is only for hub models; {path} is local")
        return path
    name = _NAME.fullmatch(path)
    if name is None or (name["host"] is None and os.path.exists(name["owner"])):
        return path
    repository = f"{name['owner']}/{name['name']}"
    hub = _huggingface_hub(repository)
    revision = revision or name["revision"]
    tag = name["file"]
    if tag is None or tag.lower() == "latest":
        return _fetch_folder(hub, repository, revision)
    return _fetch_gguf(hub, repository, revision, tag)


def _huggingface_hub(repository: str) -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ImportError(
            f"no folder {repository} exists here, and fetching a model from the hub needs "
            f"huggingface_hub: pip install huggingface_hub (or run `banyan pull {repository}`, "
            f"which prints the folder to give)") from error
    return huggingface_hub


def _fetch(hub: Any, repository: str, revision: str | None, files: list[str]) -> pathlib.Path:
    return pathlib.Path(hub.snapshot_download(repo_id=repository, revision=revision,
                                              allow_patterns=files))


def _fetch_folder(hub: Any, repository: str, revision: str | None) -> str:
    folder = _fetch(hub, repository, revision, SMALL_FILES)
    if not (folder / "config.json").exists():
        raise ValueError(f"{repository} has no config.json: it is not a Transformers model; for "
                         f"one of its GGUF files give {repository}:FILE.gguf")
    # Pin the commit: the branch may have moved since.
    _fetch(hub, repository, folder.name, _weights(repository, folder))
    return str(folder)


def _weights(repository: str, folder: pathlib.Path) -> list[str]:
    """Returns the files in the index, since a repository may contain its weights twice."""
    if not (folder / INDEX).exists():
        return ["model.safetensors"]
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    shards = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(shards, dict):
        raise ValueError(f"{repository}: {INDEX} has no \"weight_map\"")
    names = sorted({str(shard) for shard in shards.values()})
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.safetensors", name):
            raise ValueError(f"{repository}: {INDEX} names {name!r}, which is not a plain "
                             "*.safetensors name")
    return names


def _fetch_gguf(hub: Any, repository: str, revision: str | None, file: str) -> str:
    if not file.endswith(".gguf"):
        raise ValueError(f"{file!r} is not the name of a GGUF file; give {repository}:FILE.gguf, "
                         f"or `banyan pull {repository}:{file}`, which prints the file to give")
    files = [file]
    if part := _PART.fullmatch(file):
        count = int(part[2])
        files = [f"{part[1]}-{i:05}-of-{count:05}.gguf" for i in range(1, count + 1)]
    folder = _fetch(hub, repository, revision, files)
    for name in files:
        if not (folder / name).exists():
            raise LookupError(f"{repository} has no file {name}")
    return str(folder / files[0])
