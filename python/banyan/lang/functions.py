"""Functions that are programs, and how they run: once, in a thread, or on many arguments."""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import inspect
import sys
import threading
import time
from typing import Any, Callable, Iterator, Sequence

from banyan.lang.backend import backend_or_default
from banyan.lang.batch import Batch
from banyan.lang.state import ProgramState

_RUN_PARAMS = {
    "max_new_tokens", "stop", "stop_regex", "stop_token_ids", "temperature", "top_p", "top_k",
    "min_p", "typical_p", "xtc_probability", "xtc_threshold", "frequency_penalty",
    "presence_penalty", "repeat_last_n", "dry_multiplier", "dry_base", "dry_allowed_length",
    "dry_penalty_last_n", "dry_sequence_breakers", "ignore_eos", "return_logprob",
    "top_logprobs_num", "sampling_seed",
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
        return self._run(args, kwargs, backend_or_default(backend), stream, 0)

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
        backend = backend_or_default(backend)
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
        outer, batch = Batch.current(), Batch()
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
        batch = Batch.current() or Batch()

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
