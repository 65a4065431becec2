"""The parts of a program's text: messages, generated text, selections.

An expression is a list of actions on a state (lang/state.py), built before any state exists.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Callable, Sequence

from banyan import _native

if TYPE_CHECKING:
    from banyan.lang.state import ProgramState

token_length_normalized = _native.ChoiceMethod.token_length_normalized
greedy_token_selection = _native.ChoiceMethod.greedy_token_selection
unconditional_likelihood_normalized = _native.ChoiceMethod.unconditional_likelihood_normalized

_DTYPES = {
    int: r"[-+]?[0-9]+",
    float: r"[-+]?[0-9]*\.?[0-9]+",
    bool: r"(True|False)",
    str: r"\"[\w\d\s]*\"",
}


class Expr:
    """A part of a program's text, or a sequence of parts built with `+`."""

    def __init__(self, *actions: Callable[[ProgramState], None]):
        self.actions = actions

    def __add__(self, other: str | Expr) -> Expr:
        return Expr(*self.actions, *as_expr(other).actions)

    def __radd__(self, other: str | Expr) -> Expr:
        return Expr(*as_expr(other).actions, *self.actions)


def as_expr(value: Any) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, str):
        return Expr(lambda state: state._add_text(value))
    raise TypeError(f"a state takes text and expressions, not {type(value).__name__}")


def gen(
    name: str | None = None,
    max_tokens: int | None = None,
    min_tokens: int | None = None,
    n: int | None = None,
    stop: str | Sequence[str] | None = None,
    stop_token_ids: Sequence[int] | None = None,
    temperature: float | None = None,
    top_p: float | None = None,
    top_k: int | None = None,
    min_p: float | None = None,
    frequency_penalty: float | None = None,
    presence_penalty: float | None = None,
    ignore_eos: bool | None = None,
    return_logprob: bool | None = None,
    logprob_start_len: int | None = None,
    top_logprobs_num: int | None = None,
    return_text_in_logprobs: bool | None = None,
    dtype: type | str | None = None,
    choices: Sequence[str] | None = None,
    choices_method: _native.ChoiceMethod | None = None,
    regex: str | None = None,
    json_schema: str | dict[str, Any] | None = None,
    **more: Any,
) -> Expr:
    """Appends the model's continuation and stores it in the variable `name`.

    Constraints: `regex`, `json_schema` (a string or a dict), `ebnf`, `dtype` (int, float, bool,
    str) or `choices`. Further parameters are those of Engine.generate.
    """
    if choices is not None:
        beside = {"regex": regex, "json_schema": json_schema, "dtype": dtype,
                  "ebnf": more.get("ebnf")}
        for option, value in beside.items():
            if value is not None:
                raise ValueError(f"gen: choices and {option} cannot be combined")
        return select(name, choices, temperature or 0.0, choices_method or token_length_normalized)
    for option, value in {"n": None if n == 1 else n, "logprob_start_len": logprob_start_len,
                          "return_text_in_logprobs": return_text_in_logprobs}.items():
        if value is not None and value is not False:
            raise ValueError(f"gen: {option} is not supported")
    if dtype is not None:
        kind = {"int": int, "float": float, "bool": bool, "str": str}.get(dtype, dtype)
        if kind not in _DTYPES or regex is not None:
            raise ValueError(f"gen: dtype is {dtype!r}; it must be int, float, bool or str, and "
                             "cannot be combined with regex")
        regex = _DTYPES[kind]
    if isinstance(json_schema, dict):
        json_schema = json.dumps(json_schema)
    params = {
        "max_new_tokens": max_tokens, "min_new_tokens": min_tokens, "stop": stop,
        "stop_token_ids": stop_token_ids, "temperature": temperature, "top_p": top_p,
        "top_k": top_k, "min_p": min_p, "frequency_penalty": frequency_penalty,
        "presence_penalty": presence_penalty, "ignore_eos": ignore_eos, "regex": regex,
        "json_schema": json_schema, **more,
    }
    logprobs = {"return_logprob": return_logprob, "top_logprobs_num": top_logprobs_num}
    return Expr(lambda state: state._add_gen(name, params, logprobs))


def gen_int(name: str | None = None, **params: Any) -> Expr:
    """Generates an integer."""
    return gen(name, dtype=int, **params)


def gen_string(name: str | None = None, **params: Any) -> Expr:
    """Generates a quoted string."""
    return gen(name, dtype=str, **params)


def select(
    name: str | None = None,
    choices: Sequence[str] | None = None,
    temperature: float = 0.0,
    choices_method: _native.ChoiceMethod = token_length_normalized,
) -> Expr:
    """Appends the likeliest of `choices` and stores it in the variable `name`."""
    if not choices:
        raise ValueError("select needs choices")
    if temperature > 1e-5:
        raise ValueError(f"select: temperature is {temperature}; select takes the likeliest "
                         "choice, so only 0 is supported")
    return Expr(lambda state: state._add_select(name, list(choices), choices_method))


def _role_begin(role: str) -> Expr:
    return Expr(lambda state: state._role_begin(role))


def _role_end() -> Expr:
    return Expr(lambda state: state._role_end())


def message(role: str, content: str | Expr | None) -> Expr:
    return _role_begin(role) + ("" if content is None else content) + _role_end()


def system(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template."""
    return message("system", content)


def user(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template."""
    return message("user", content)


def assistant(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template; a gen within it generates the answer."""
    return message("assistant", content)


def system_begin() -> Expr:
    """Begins a message that the program writes in several steps."""
    return _role_begin("system")


def system_end() -> Expr:
    """Ends the message."""
    return _role_end()


def user_begin() -> Expr:
    """Begins a message that the program writes in several steps."""
    return _role_begin("user")


def user_end() -> Expr:
    """Ends the message."""
    return _role_end()


def assistant_begin() -> Expr:
    """Begins a message that the program writes in several steps."""
    return _role_begin("assistant")


def assistant_end() -> Expr:
    """Ends the message."""
    return _role_end()


def image(path: str) -> Expr:
    """Not supported: the state fails with an error that names the file."""
    return Expr(lambda state: state._native.add_image(str(path)))


def video(path: str, num_frames: int = 0) -> Expr:
    """Not supported: the state fails with an error that names the file."""
    return Expr(lambda state: state._native.add_video(str(path)))
