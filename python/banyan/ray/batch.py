"""Answers files of prompts with many engines at once, by Ray Data, and goes on where it stopped.

    python -m banyan.ray.batch prompts.jsonl answers --model-path models/Qwen3-0.6B --engines 8

A row of the input (JSON lines or Parquet) has `prompt`, a text, or `input_ids`; it may have an
`id`, unique in the input, and `sampling_params`. The folder of answers gets a file of JSON lines
for each batch, whole or not at all: `id`, `text`, `finish_reason`, `prompt_tokens`,
`completion_tokens`, `cached_tokens`, or `id` and `error`. Started again with the same folder, rows
that have an answer are skipped, and those with an error are asked again. An engine that dies takes
nothing with it but its batch, which another one does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
from typing import Any, Iterable, Iterator

__all__ = ["answer"]

Row = dict[str, Any]
_DIGEST_BYTES = 16


def row_id(row: Row) -> str:
    """A row's own id, else one that its prompt and parameters give it."""
    if row.get("id") is not None:
        return str(row["id"])
    content = [row.get("prompt"), row.get("input_ids"), row.get("sampling_params")]
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).digest()


def _answers(folder: pathlib.Path) -> Iterator[Row]:
    for file in sorted(folder.glob("answers-*.jsonl")):
        with file.open() as lines:
            for line in lines:
                yield json.loads(line)


def answered(folder: pathlib.Path) -> Any:
    """Digests of the ids of all rows with an answer, sorted: 16 bytes each, for millions of them.
    """
    import numpy

    digests = [_digest(row["id"]) for row in _answers(folder) if "error" not in row]
    return numpy.sort(numpy.array(digests, dtype=f"S{_DIGEST_BYTES}"))


def rows_of(batch: Any, json_lines: bool) -> list[Row]:
    """A table of pyarrow as rows, without what is missing in a row.

    Lines of JSON come as text: a reader of columns would change a row by what others have.
    """
    rows = batch.to_pylist()
    if json_lines:
        rows = [json.loads(row["text"]) for row in rows]
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


class Answerer:
    """One engine; takes batches of rows and writes a file for each."""

    def __init__(self, folder: str, model_path: str, sampling_params: dict[str, Any],
                 engine: dict[str, Any], json_lines: bool, done: Any):
        import ray

        from banyan import Engine

        self._folder, self._params = pathlib.Path(folder), sampling_params
        self._json_lines, self._done = json_lines, ray.get(done)
        self._engine = Engine(model_path, **engine)

    def __call__(self, batch: Any) -> dict[str, list[int]]:
        rows = [{**row, "id": row_id(row)} for row in rows_of(batch, self._json_lines)]
        fresh = [row for row in rows if not self._is_answered(row["id"])]
        answers = self._ask(fresh) if fresh else []
        if answers:
            self._write(answers)
        failed = sum("error" in one for one in answers)
        return {"skipped": [len(rows) - len(fresh)], "answered": [len(answers) - failed],
                "failed": [failed]}

    def _is_answered(self, identifier: str) -> bool:
        import numpy

        digest = numpy.array(_digest(identifier), dtype=self._done.dtype)
        at = numpy.searchsorted(self._done, digest)
        return at < len(self._done) and self._done[at] == digest

    def _ask(self, rows: list[Row]) -> list[Row]:
        """The engine's scheduler sees the whole batch at once; a row's error is its own."""
        import asyncio

        async def ask_all() -> list[Row]:
            return await asyncio.gather(*(self._ask_one(row) for row in rows))

        return asyncio.run(ask_all())

    async def _ask_one(self, row: Row) -> Row:
        # A seed by the row: a batch that is done again gives the same answers.
        seed = int.from_bytes(_digest(row["id"])[:4], "little")
        try:
            own = {name: value for name, value in (row.get("sampling_params") or {}).items()
                   if value is not None}
            given = {"prompt": row.get("prompt")}
            if row.get("input_ids") is not None:
                given = {"input_ids": row["input_ids"]}
            result = await self._engine.async_generate(
                **given, sampling_params={"sampling_seed": seed, **self._params, **own})
        except (ValueError, LookupError, TypeError) as wrong:  # of this row
            return {"id": row["id"], "error": str(wrong)}
        meta = result["meta_info"]
        return {"id": row["id"], "text": result["text"],
                "finish_reason": meta["finish_reason"]["type"],
                **{name: meta[name] for name in
                   ("prompt_tokens", "completion_tokens", "cached_tokens")}}

    def _write(self, answers: list[Row]) -> None:
        """Named by its rows: a batch that is done twice has one file."""
        name = hashlib.blake2b("\n".join(row["id"] for row in answers).encode(),
                               digest_size=_DIGEST_BYTES).hexdigest()
        unfinished = self._folder / f".{name}.{os.getpid()}"
        with unfinished.open("w") as file:
            for row in answers:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(self._folder / f"answers-{name}.jsonl")


def answer(source: str | Iterable[Row], folder: str, model_path: str, *, engines: int = 1,
           batch_size: int = 256, num_cpus: float = 1,
           sampling_params: dict[str, Any] | None = None,
           engine: dict[str, Any] | None = None) -> dict[str, int]:
    """Answers all rows of a file, a folder of files or a list; see the module.

    `folder` must be seen by all machines of the Ray cluster. `engine` has options of
    banyan.Engine, `num_cpus` is what one engine takes. Returns how many rows were answered,
    failed (their errors are in the folder) and were skipped.
    """
    import ray
    import ray.data

    place = pathlib.Path(folder).absolute()
    place.mkdir(parents=True, exist_ok=True)
    options = {"threads": max(1, int(num_cpus)), "max_running_requests": min(batch_size, 64),
               "max_queued_requests": batch_size, **(engine or {})}
    json_lines = False
    if not isinstance(source, (str, os.PathLike)):
        rows = ray.data.from_items(list(source))
    elif str(source).endswith(".parquet"):
        rows = ray.data.read_parquet(str(source))
    else:
        rows, json_lines = ray.data.read_text(str(source)), True
    done = ray.put(answered(place))
    counts = rows.map_batches(
        Answerer, batch_size=batch_size, batch_format="pyarrow", num_cpus=num_cpus,
        concurrency=engines,
        fn_constructor_args=(str(place), model_path, sampling_params or {}, options, json_lines,
                             done))
    totals = {"answered": 0, "failed": 0, "skipped": 0}
    for count in counts.iter_rows():
        for name in totals:
            totals[name] += int(count[name])
    return totals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="prompts: .jsonl, .parquet, or a folder of JSON lines")
    parser.add_argument("folder", help="of answers")
    parser.add_argument("--model-path", "--model", required=True)
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=256, help="rows of a batch")
    parser.add_argument("--num-cpus", type=float, default=1, help="processors of an engine")
    parser.add_argument("--sampling-params", type=json.loads, default={}, metavar="JSON",
                        help="for all rows, as '{\"max_new_tokens\": 64}'; a row's own come first")
    parser.add_argument("--engine", type=json.loads, default={}, metavar="JSON",
                        help="options of banyan.Engine, as '{\"quantization\": \"int8\"}'")
    o = parser.parse_args()
    print(json.dumps(answer(o.source, o.folder, o.model_path, engines=o.engines,
                            batch_size=o.batch_size, num_cpus=o.num_cpus,
                            sampling_params=o.sampling_params, engine=o.engine)))


if __name__ == "__main__":
    main()
