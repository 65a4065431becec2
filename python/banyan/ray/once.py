"""A stream that goes on at another replica when its own is lost, each character exactly once."""

from __future__ import annotations

from typing import Any, AsyncIterator, Callable

from ray.exceptions import RayActorError, WorkerCrashedError

Piece = dict[str, Any]  # "text": what is new; "meta_info"
LOST = (RayActorError, WorkerCrashedError)


async def once(attempt: Callable[[], AsyncIterator[Piece]], migrations_max: int
               ) -> AsyncIterator[Piece]:
    """Yields the pieces of an attempt, and of further ones when it is lost.

    Attempts must give the same text each, as equal seeds do: what was yielded before is left out
    of a later one. RuntimeError: it is different there. After `migrations_max` lost attempts the
    next loss is raised.
    """
    said, lost = "", 0
    while True:
        begin = 0  # of the next piece, in this attempt's text
        try:
            async for piece in attempt():
                text, end = piece["text"], begin + len(piece["text"])
                known = said[begin:end]
                if not text.startswith(known):
                    raise RuntimeError(
                        "a request was moved to a replica that gives another text; replicas need "
                        "the same weights, options and kernels (set `kernels` in `engine`)")
                begin = end
                fresh = text[len(known):]
                said += fresh
                finished = piece["meta_info"]["finish_reason"] is not None
                if fresh or finished:
                    yield {**piece, "text": fresh}
                if finished:
                    return
            raise RuntimeError("a replica's stream has no end")
        except LOST:
            lost += 1
            if lost > migrations_max:
                raise
