"""Banyan: an LLM engine in this process, and programs that call models many times.

    import banyan as sgl

    engine = sgl.Engine(model_path="models/Qwen3-0.6B")
    print(engine.generate("The capital of France is", {"max_new_tokens": 8})["text"])

The names are SGLang's: its programs run here with only the import changed. docs/PYTHON.md lists
the differences.
"""

from banyan import lang
from banyan._native import __version__
from banyan.engine import Engine
from banyan.lang import *  # noqa: F403
from banyan.lang import __all__ as _lang_names

__all__ = ["Engine", "lang", "__version__", *_lang_names]
