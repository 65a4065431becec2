"""The running programs of a batch, so that all of them can be cancelled together. Thread-safe."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator


class Batch:
    """The running programs of one run_batch(), including programs that they run themselves. Leaving
    the batch early cancels all of them."""

    _of_thread = threading.local()

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[Any] = set()
        self._cancelled = False

    @staticmethod
    def current() -> Batch | None:
        """The batch of the calling thread, or None."""
        return getattr(Batch._of_thread, "batch", None)

    @contextlib.contextmanager
    def on_this_thread(self) -> Iterator[None]:
        before = Batch.current()
        Batch._of_thread.batch = self
        try:
            yield
        finally:
            Batch._of_thread.batch = before

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
