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

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import json
import sys
import threading
import time
import weakref
from typing import Any, AsyncIterator, Callable, Iterator, Sequence

from banyan import _native
from banyan.backends import OpenAI, Runtime, RuntimeEndpoint

__all__ = [
    "OpenAI", "Runtime", "RuntimeEndpoint", "assistant", "assistant_begin", "assistant_end",
    "flush_cache", "function", "gen", "gen_int", "gen_string", "get_server_info",
    "greedy_token_selection", "image", "select", "set_default_backend", "system", "system_begin",
    "system_end", "token_length_normalized", "unconditional_likelihood_normalized", "user",
    "user_begin", "user_end", "video",
]

token_length_normalized = _native.ChoiceMethod.token_length_normalized
greedy_token_selection = _native.ChoiceMethod.greedy_token_selection
unconditional_likelihood_normalized = _native.ChoiceMethod.unconditional_likelihood_normalized

_DTYPES = {
    int: r"[-+]?[0-9]+",
    float: r"[-+]?[0-9]*\.?[0-9]+",
    bool: r"(True|False)",
    str: r"\"[\w\d\s]*\"",
}


# --- expressions ------------------------------------------------------------------------------


class Expr:
    """A part of a program's text, or a sequence of parts built with `+`."""

    def __init__(self, *actions: Callable[[ProgramState], None]):
        self.actions = actions

    def __add__(self, other: str | Expr) -> Expr:
        return Expr(*self.actions, *_as_expr(other).actions)

    def __radd__(self, other: str | Expr) -> Expr:
        return Expr(*_as_expr(other).actions, *self.actions)


def _as_expr(value: Any) -> Expr:
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


def _message(role: str, content: str | Expr | None) -> Expr:
    return _role_begin(role) + ("" if content is None else content) + _role_end()


def system(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template."""
    return _message("system", content)


def user(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template."""
    return _message("user", content)


def assistant(content: str | Expr | None = None) -> Expr:
    """A message in the model's chat template; a gen within it generates the answer."""
    return _message("assistant", content)


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


# --- states -----------------------------------------------------------------------------------


class _Log:
    """The texts and variable names added to a state, for text_iter()."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str]] = []
        self.ended = False
        self.changed = threading.Condition()

    def add(self, kind: str, value: str) -> None:
        with self.changed:
            self.entries.append((kind, value))
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def entry(self, index: int) -> tuple[str, str] | None:
        """Waits for entry `index`; None if the log ended before it."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or index < len(self.entries))
            return self.entries[index] if index < len(self.entries) else None

    def wait_for_name(self, has: Callable[[], bool]) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self.ended or has())


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """Marks errors of model calls, for run_batch(). An unknown name (KeyError) is the program's own
    error and stays unmarked."""
    try:
        yield
    except KeyError:
        raise
    except (ValueError, LookupError, OSError, RuntimeError) as error:
        error.of_a_call = True
        raise


class ProgramState:
    """A program's text and variables. Reading waits until the value exists."""

    def __init__(self, native: _native.State, programs: _native.Programs,
                 defaults: dict[str, Any], parent: ProgramState | None = None):
        self._native, self._programs, self._defaults = native, programs, defaults
        self._log = _Log()
        self._values: dict[str, Any] = dict(parent._values) if parent else {}
        self._unnamed = parent._unnamed if parent else 0
        self._exception: BaseException | None = None
        self._branches: list[weakref.ref[ProgramState]] = []
        self.ret_value: Any = None

    def __iadd__(self, other: str | Expr) -> ProgramState:
        for action in _as_expr(other).actions:
            action(self)
        return self

    # Reading.

    def __getitem__(self, name: str) -> Any:
        """Returns a variable's generated text, or the value the program set. Raises the error that
        prevents it."""
        if name in self._values:
            return self._values[name]
        with _reading():
            return self._native.get(name)

    get_var = __getitem__

    def __contains__(self, name: str) -> bool:
        return name in self._values or self._native.has(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    set_var = __setitem__

    def get_meta_info(self, name: str) -> dict[str, Any]:
        """How a variable was generated: finish_reason, tokens, logprobs, scores of choices."""
        with _reading():
            return self._native.info(name)

    def text(self) -> str:
        """Waits for everything added so far and returns its text."""
        with _reading():
            return self._native.text()

    def messages(self) -> list[dict[str, str]]:
        """Waits for the messages so far and returns them."""
        with _reading():
            return self._native.messages()

    def sync(self) -> None:
        """Waits until everything added is executed."""
        try:
            self._native.wait()
        except (ValueError, LookupError, OSError, RuntimeError):
            pass  # reported by error() and by reading

    def error(self) -> str | None:
        """The error of this state, or None."""
        if self._exception is None:
            return self._native.error()
        of_a_call = getattr(self._exception, "of_a_call", False)
        return str(self._exception) if of_a_call else repr(self._exception)

    def usage(self) -> dict[str, int]:
        """Counts of calls and tokens of the whole program so far."""
        return self._native.usage()

    def cancel(self) -> None:
        """Cancels the whole program: everything unfinished fails."""
        self._native.cancel()

    def text_iter(self, var_name: str | None = None) -> Iterator[str]:
        """Yields the text of a variable, or all text that the program adds, piece by piece.

        After run(stream=True) a piece is as small as a token; otherwise each part is one piece.
        Text that the chat template adds around messages is omitted.
        """
        if var_name is not None:
            self._log.wait_for_name(lambda: self._native.has(var_name))
            yield from self._pieces(var_name)
            return
        index = 0
        while (entry := self._log.entry(index)) is not None:
            kind, value = entry
            index += 1
            if kind == "text":
                yield value
            else:
                yield from self._pieces(value)

    async def text_async_iter(self, var_name: str | None = None) -> AsyncIterator[str]:
        """Like text_iter(), for coroutines."""
        pieces, end = self.text_iter(var_name), object()
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            while (piece := await loop.run_in_executor(thread, next, pieces, end)) is not end:
                yield piece

    def _pieces(self, name: str) -> Iterator[str]:
        offset = 0
        while True:
            with _reading():
                piece, offset = self._native.read_more(name, offset)
            if not piece:
                return
            yield piece

    # Branches.

    def fork(self, size: int = 1, position_ids_offset: Sequence[int] | None = None
             ) -> ProgramStateGroup:
        """Returns `size` states that continue from here; the shared prefix is computed once."""
        if position_ids_offset is not None:
            raise ValueError("fork: position_ids_offset is not supported")
        branches = [ProgramState(native, self._programs, self._defaults, self)
                    for native in self._native.fork(size)]
        self._branches += map(weakref.ref, branches)
        return ProgramStateGroup(branches, self)

    @contextlib.contextmanager
    def copy(self) -> Iterator[ProgramState]:
        """A branch whose variables are joined into this state at the end."""
        group = self.fork(1)
        try:
            yield group[0]
        finally:
            group.join()

    def _end(self) -> None:
        """Marks this state and its branches as complete: ends their iterators and lets the cache
        evict their prefixes."""
        self._log.end()
        self._native.release()
        for branch in self._branches:
            if (state := branch()) is not None:
                state._end()

    # Messages and scopes.

    @contextlib.contextmanager
    def _within(self, role: str) -> Iterator[None]:
        self._role_begin(role)
        yield
        self._role_end()

    def _role(self, role: str, content: str | Expr | None) -> Any:
        if content is None:
            return self._within(role)
        self.__iadd__(_message(role, content))
        return None

    def system(self, content: str | Expr | None = None) -> Any:
        """Adds a message. Without content, use it as `with s.system(): ...`."""
        return self._role("system", content)

    def user(self, content: str | Expr | None = None) -> Any:
        """Adds a message. Without content, use it as `with s.user(): ...`."""
        return self._role("user", content)

    def assistant(self, content: str | Expr | None = None) -> Any:
        """Adds a message. Without content, use it as `with s.assistant(): ...`."""
        return self._role("assistant", content)

    @contextlib.contextmanager
    def var_scope(self, name: str) -> Iterator[None]:
        """Stores the text added within the scope in the variable `name`."""
        begin = len(self.text())
        yield
        self._values[name] = self.text()[begin:]

    # Called by expressions.

    def _name(self, name: str | None) -> str:
        if name is not None:
            self._values.pop(name, None)
            return name
        self._unnamed += 1
        return f"_unnamed_{self._unnamed}"

    def _add_text(self, text: str) -> None:
        if text:
            self._native.add_text(text)
            self._log.add("text", text)

    def _add_gen(self, name: str | None, params: dict[str, Any], logprobs: dict[str, Any]) -> None:
        given = {key: value for key, value in params.items() if value is not None}
        wanted = {**self._defaults, **{k: v for k, v in logprobs.items() if v is not None}}
        merged = {**self._defaults, **given}
        for key in logprobs:
            merged.pop(key, None)
        tops = wanted.get("top_logprobs_num") or 0
        asked = {"top": tops} if wanted.get("return_logprob") else {}
        name = self._name(name)
        self._native.add_gen(self._programs, name, merged, asked)
        self._log.add("variable", name)

    def _add_select(self, name: str | None, choices: list[str],
                    method: _native.ChoiceMethod) -> None:
        name = self._name(name)
        self._native.add_select(name, choices, method)
        self._log.add("variable", name)

    def _role_begin(self, role: str) -> None:
        self._native.role_begin(role)

    def _role_end(self) -> None:
        self._native.role_end()


class ProgramStateGroup:
    """The branches of a fork."""

    def __init__(self, states: list[ProgramState], source: ProgramState):
        self.states, self.src_state = states, source
        self._known = set(source._native.names()) | set(source._values)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, index: int) -> ProgramState:
        return self.states[index]

    def __iter__(self) -> Iterator[ProgramState]:
        return iter(self.states)

    def __iadd__(self, other: Any) -> ProgramStateGroup:
        """Adds to every branch: the same text or expression, one from a list each, or the result
        of a function of the branch's index."""
        for i, state in enumerate(self.states):
            if callable(other):
                state += other(i)
            elif isinstance(other, (list, tuple)):
                if len(other) != len(self.states):
                    raise ValueError(f"cannot add {len(other)} parts to "
                                     f"{len(self.states)} branches")
                state += other[i]
            else:
                state += other
        return self

    def join(self, mode: str = "gather_variable") -> None:
        """Waits for the branches. Stores each of their new variables in the parent state, as a list
        of the branches' values; with "concate_and_append" appends their texts instead."""
        if mode == "concate_and_append":
            begin = len(self.src_state.text())
            for state in self.states:
                self.src_state += state.text()[begin:]
        elif mode == "gather_variable":
            for state in self.states:
                state.sync()
                names = {n for n in state._native.names() if not n.startswith("_unnamed_")}
                for name in sorted((names | set(state._values)) - self._known):
                    self.src_state._values.setdefault(name, []).append(state[name])
        else:
            raise ValueError(f"join: mode is {mode!r}; it must be gather_variable or "
                             "concate_and_append")
        for state in self.states:
            state._end()


# --- functions --------------------------------------------------------------------------------

_default_backend: Any = None


def set_default_backend(backend: Any) -> None:
    """Sets the backend for programs that are run without one."""
    global _default_backend
    _default_backend = backend


def _backend_or_default(backend: Any) -> Any:
    backend = backend if backend is not None else _default_backend
    if backend is None:
        raise ValueError("no backend: pass backend= or call set_default_backend")
    return backend


def flush_cache(backend: Any = None) -> None:
    """Evicts the cached prefixes of the backend's model."""
    _backend_or_default(backend).flush_cache()


def get_server_info(backend: Any = None) -> dict[str, Any]:
    """Returns what the backend reports about itself."""
    return _backend_or_default(backend).get_server_info()


class _Batch:
    """The running programs of one run_batch(), including programs that they run themselves. Leaving
    the batch early cancels all of them."""

    _of_thread = threading.local()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Any] = set()
        self._cancelled = False

    @staticmethod
    def current() -> _Batch | None:
        """The batch of the calling thread, or None."""
        return getattr(_Batch._of_thread, "batch", None)

    @contextlib.contextmanager
    def on_this_thread(self) -> Iterator[None]:
        before = _Batch.current()
        _Batch._of_thread.batch = self
        try:
            yield
        finally:
            _Batch._of_thread.batch = before

    @contextlib.contextmanager
    def running(self, what: Any) -> Iterator[None]:
        """Registers `what`: its cancel() is called when this batch is, or has been, cancelled."""
        with self._lock:
            self._running.add(what)
            late = self._cancelled
        if late:
            what.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(what)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            running = list(self._running)
        for what in running:
            what.cancel()


_RUN_PARAMS = {
    "max_new_tokens", "stop", "stop_regex", "stop_token_ids", "temperature", "top_p", "top_k",
    "min_p", "typical_p", "xtc_probability", "xtc_threshold", "frequency_penalty",
    "presence_penalty", "dry_multiplier", "dry_base", "dry_allowed_length", "dry_penalty_last_n",
    "dry_sequence_breakers", "ignore_eos", "return_logprob", "top_logprobs_num", "sampling_seed",
}


class Function:
    """A program. Besides the function's arguments, run() and run_batch() accept Engine.generate's
    sampling parameters as defaults for gens."""

    def __init__(self, func: Callable[..., Any], num_api_spec_tokens: int | None = None,
                 bound: dict[str, Any] | None = None):
        self.func, self.num_api_spec_tokens = func, num_api_spec_tokens
        self.bind_arguments = bound or {}
        self.arg_names = list(inspect.signature(func).parameters)[1:]
        if not inspect.signature(func).parameters:
            raise TypeError(f"{func.__name__} must take the state as its first argument")
        functools.update_wrapper(self, func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """With a state as first argument, runs as part of its program; otherwise like run()."""
        if args and isinstance(args[0], ProgramState):
            return self.func(*args, **{**self.bind_arguments, **kwargs})
        return self.run(*args, **kwargs)

    def bind(self, **kwargs: Any) -> Function:
        """Returns the program with some of its arguments bound."""
        unknown = set(kwargs) - set(self.arg_names)
        if unknown:
            raise TypeError(f"{self.func.__name__} has no arguments {sorted(unknown)}")
        return Function(self.func, self.num_api_spec_tokens, {**self.bind_arguments, **kwargs})

    def run(self, *args: Any, backend: Any = None, stream: bool = False, use_thread: bool = True,
            **kwargs: Any) -> ProgramState:
        """Runs the program in the caller's thread and waits for it, whatever `use_thread` is. With
        `stream` it runs in a new thread, for text_iter(). Raises exceptions of the function. Failed
        model calls are reported by error() and by reading their variables."""
        return self._run(args, kwargs, _backend_or_default(backend), stream, 0)

    def run_batch(
        self,
        batch_kwargs: Sequence[dict[str, Any] | Sequence[Any]],
        *,
        backend: Any = None,
        num_threads: str | int = "auto",
        progress_bar: bool = False,
        generator_style: bool = False,
        **params: Any,
    ) -> list[ProgramState] | Iterator[ProgramState]:
        """Runs the program on each of many arguments, `num_threads` at a time. Returns the states
        in order; with `generator_style` as a generator. A run that reads the variable of a failed
        model call ends there and its error() says why; the others continue. Other exceptions of
        the function are raised."""
        backend = _backend_or_default(backend)
        runs = [dict(one) if isinstance(one, dict) else
                dict(zip(self.arg_names, one if isinstance(one, (list, tuple)) else [one]))
                for one in batch_kwargs]
        self._split(params)
        results = self._run_all(runs, params, backend, num_threads, progress_bar)
        return results if generator_style else list(results)

    def _run_all(self, runs, params, backend, num_threads, progress_bar) -> Iterator[ProgramState]:
        threads = 64 if num_threads == "auto" else int(num_threads)
        if threads < 1:
            raise ValueError(f"num_threads is {num_threads}; it must be at least 1")
        done, lock, begin = 0, threading.Lock(), time.monotonic()

        def one(index: int) -> ProgramState:
            nonlocal done
            with batch.on_this_thread():
                state = self._run((), {**params, **runs[index]}, backend, False, index, True)
            with lock:
                done += 1
                if progress_bar and sys.stderr.isatty():
                    rate = done / (time.monotonic() - begin)
                    left = (len(runs) - done) / rate
                    print(f"\r\033[K{done} of {len(runs)}  {rate:.1f}/s  {left:.0f} s left",
                          end="\n" if left == 0 else "", file=sys.stderr, flush=True)
            return state

        if not runs:
            return
        outer, batch = _Batch.current(), _Batch()
        within = outer.running(batch) if outer else contextlib.nullcontext()
        with within, concurrent.futures.ThreadPoolExecutor(min(threads, len(runs))) as pool:
            futures: list[concurrent.futures.Future[ProgramState]] = []
            try:  # Ctrl-C may arrive before the last program is submitted
                for index in range(len(runs)):
                    futures.append(pool.submit(one, index))
                for future in futures:
                    # Ctrl-C may reach another thread, and then does not interrupt a wait here.
                    while not future.done():
                        concurrent.futures.wait([future], timeout=0.1)
                    yield future.result()
            finally:  # after Ctrl-C, an exception, or a caller that stops early
                for future in futures:
                    future.cancel()
                batch.cancel()

    def _split(self, kwargs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Separates the function's arguments from sampling parameters."""
        own = {k: v for k, v in kwargs.items() if k in self.arg_names}
        rest = {k: v for k, v in kwargs.items() if k not in self.arg_names}
        for name in rest:
            if name not in _RUN_PARAMS:
                raise TypeError(f"{self.func.__name__} has no argument {name}, nor is it a "
                                "sampling parameter of run()")
        return own, {k: v for k, v in rest.items() if v is not None}

    def _run(self, args: Sequence[Any], kwargs: dict[str, Any], backend: Any, stream: bool,
             sample: int, keep_errors: bool = False) -> ProgramState:
        own, defaults = self._split(kwargs)
        programs = backend.programs()
        native = programs.state(stream, sample, self.num_api_spec_tokens or 0)
        state = ProgramState(native, programs, defaults)
        batch = _Batch.current() or _Batch()

        def body() -> None:
            try:
                with batch.on_this_thread(), batch.running(native):
                    state.ret_value = self.func(state, *args, **{**self.bind_arguments, **own})
            except BaseException as exception:
                state._exception = exception
                native.cancel()
                raise
            finally:
                state._end()

        if not stream:
            try:
                body()
            except Exception as exception:
                if not keep_errors or not getattr(exception, "of_a_call", False):
                    raise
            state.sync()
            return state

        def quiet_body() -> None:
            with contextlib.suppress(Exception):  # reported by state.error()
                body()

        threading.Thread(target=quiet_body, daemon=True).start()
        return state


def function(func: Callable[..., Any] | None = None,
             num_api_spec_tokens: int | None = None) -> Any:
    """Turns a function whose first argument is the state into a program.

    `num_api_spec_tokens`: on endpoints that charge for prompts, a gen runs this many tokens past
    its stop, and the rest of the program is matched against them.
    """
    if func is not None:
        return Function(func, num_api_spec_tokens)
    return lambda f: Function(f, num_api_spec_tokens)
