"""Programs: functions that call a model many times, with SGLang's names.

    @sgl.function
    def qa(s, question):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen("answer", max_tokens=64))

    state = qa.run(question="What is the capital of France?", backend=engine)
    print(state["answer"])

A thin binding of include/banyan/program.h. A state is a stream of parts that the C++ interpreter
executes: adding a part returns immediately, and only reading waits. Sampling parameters default to
the model's own. Equal programs give equal results: a gen's seed is `sampling_seed` (default 0), and
branches and the runs of a batch use seeds derived from it.
"""

# ruff: noqa: F401: classes that annotations and isinstance() name are not part of `import *`.
from banyan.backends import OpenAI, Runtime, RuntimeEndpoint
from banyan.lang.backend import flush_cache, get_server_info, set_default_backend
from banyan.lang.expressions import (
    Expr, assistant, assistant_begin, assistant_end, gen, gen_int, gen_string,
    greedy_token_selection, image, select, system, system_begin, system_end,
    token_length_normalized, unconditional_likelihood_normalized, user, user_begin, user_end, video,
)
from banyan.lang.functions import Function, function
from banyan.lang.state import ProgramState, ProgramStateGroup

__all__ = [
    "OpenAI", "Runtime", "RuntimeEndpoint", "assistant", "assistant_begin", "assistant_end",
    "flush_cache", "function", "gen", "gen_int", "gen_string", "get_server_info",
    "greedy_token_selection", "image", "select", "set_default_backend", "system", "system_begin",
    "system_end", "token_length_normalized", "unconditional_likelihood_normalized", "user",
    "user_begin", "user_end", "video",
]
