"""Backends for programs besides banyan.Engine: servers, and SGLang's name for the engine."""

from __future__ import annotations

import json
import os
import urllib.request
from typing import Any

from banyan import _native
from banyan.engine import Engine

__all__ = ["OpenAI", "Runtime", "RuntimeEndpoint"]


class Runtime(Engine):
    """SGLang's name for a backend that owns its model; here the engine itself."""


class _Remote:
    """A backend on a server."""

    def __init__(self, url: str, api: str, model: str, api_key: str | None, template_path: str,
                 continues_answers: bool):
        backend = _native.connect(url, api, model, api_key or "", template_path, continues_answers)
        self._programs = _native.Programs(backend)

    def programs(self) -> _native.Programs:
        """The native object that runs programs on this backend."""
        return self._programs

    def shutdown(self) -> None:
        """Cancels the programs that are running on this backend."""
        self._programs.close()


class RuntimeEndpoint(_Remote):
    """A server with SGLang's /generate: `banyan serve`, or SGLang's own.

    `template_path` is a local folder of the model, whose chat template turns messages into text.
    Without it, programs can only write plain text.
    """

    def __init__(self, base_url: str, api_key: str | None = None, template_path: str = ""):
        super().__init__(base_url, "generate", "", api_key, template_path, True)
        self.base_url = base_url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def _ask(self, method: str, path: str) -> bytes:
        request = urllib.request.Request(self.base_url + path, method=method,
                                         headers=self._headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read()

    def flush_cache(self) -> None:
        """Evicts the cached prefixes on the server."""
        self._ask("POST", "/flush_cache")

    def get_server_info(self) -> dict[str, Any]:
        """Returns what the server reports about itself."""
        return json.loads(self._ask("GET", "/server_info"))


class OpenAI(_Remote):
    """An OpenAI-compatible endpoint: chat, or completions if not `is_chat_model`.

    `base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY of the environment.
    `continues_answers`: the server supports continue_final_message, as Banyan, SGLang and vLLM do;
    text may then precede a gen within assistant().
    """

    def __init__(self, model_name: str, base_url: str | None = None, api_key: str | None = None,
                 is_chat_model: bool | None = None, template_path: str = "",
                 continues_answers: bool = False):
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
        if not base_url:
            raise ValueError("OpenAI needs base_url; pass it or set OPENAI_BASE_URL")
        chat = "instruct" not in model_name if is_chat_model is None else is_chat_model
        super().__init__(base_url.rstrip("/").removesuffix("/v1"),
                         "chat" if chat else "completions", model_name,
                         api_key or os.environ.get("OPENAI_API_KEY"), template_path,
                         continues_answers)
        self.base_url = base_url

    def _unsupported(self, what: str) -> ValueError:
        return ValueError(f"{self.base_url}: OpenAI's API {what}; use RuntimeEndpoint if the "
                          "server is Banyan or SGLang")

    def flush_cache(self) -> None:
        """Raises ValueError: OpenAI's API does not support it."""
        raise self._unsupported("cannot forget cached prefixes")

    def get_server_info(self) -> dict[str, Any]:
        """Raises ValueError: OpenAI's API does not support it."""
        raise self._unsupported("has no server info")
