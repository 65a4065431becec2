"""The backend of programs that are run without one."""

from __future__ import annotations

from typing import Any

_default_backend: Any = None


def set_default_backend(backend: Any) -> None:
    """Sets the backend for programs that are run without one."""
    global _default_backend
    _default_backend = backend


def backend_or_default(backend: Any) -> Any:
    backend = backend if backend is not None else _default_backend
    if backend is None:
        raise ValueError("no backend: pass backend= or call set_default_backend")
    return backend


def flush_cache(backend: Any = None) -> None:
    """Evicts the cached prefixes of the backend's model."""
    backend_or_default(backend).flush_cache()


def get_server_info(backend: Any = None) -> dict[str, Any]:
    """Returns what the backend reports about itself."""
    return backend_or_default(backend).get_server_info()
