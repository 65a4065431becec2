"""The text and variables of a running program, and its branches.

A state passes parts on to the C++ interpreter, which executes them; only reading waits. Each state
belongs to the thread that runs its function; its iterators may run in another.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import weakref
from typing import Any, AsyncIterator, Callable, Iterator, Sequence

from banyan import _native
from banyan.lang.expressions import Expr, as_expr, message


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
def reading() -> Iterator[None]:
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
        for action in as_expr(other).actions:
            action(self)
        return self

    # Reading.

    def __getitem__(self, name: str) -> Any:
        """Returns a variable's generated text, or the value the program set. Raises the error that
        prevents it."""
        if name in self._values:
            return self._values[name]
        with reading():
            return self._native.get(name)

    get_var = __getitem__

    def __contains__(self, name: str) -> bool:
        return name in self._values or self._native.has(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    set_var = __setitem__

    def get_meta_info(self, name: str) -> dict[str, Any]:
        """How a variable was generated: finish_reason, tokens, logprobs, scores of choices."""
        with reading():
            return self._native.info(name)

    def text(self) -> str:
        """Waits for everything added so far and returns its text."""
        with reading():
            return self._native.text()

    def messages(self) -> list[dict[str, str]]:
        """Waits for the messages so far and returns them."""
        with reading():
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
            with reading():
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
        self.__iadd__(message(role, content))
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
