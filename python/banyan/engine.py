"""The engine: a model in this process."""

from __future__ import annotations

import array
import asyncio
import atexit
import threading
import uuid
import weakref
from typing import Any, AsyncIterator, Iterator, Sequence

from banyan import _native
from banyan.hub import locate_model

__all__ = ["Engine"]

Result = dict[str, Any]
_DRAFT_MODELS = ("speculative_draft_model_path", "model_draft", "spec_draft_model")
_open_engines: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _shutdown_all() -> None:
    for engine in list(_open_engines):
        engine.shutdown()


def _as_arguments(options: dict[str, Any]) -> list[str]:
    """Formats options as arguments of `banyan serve`. None and False are omitted."""
    arguments = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(flag)
        else:
            if isinstance(value, dict):  # lora_paths
                value = [f"{key}={path}" for key, path in value.items()]
            values = value if isinstance(value, (list, tuple)) else [value]
            arguments += [f"{flag}={one}" for one in values]
    return arguments


def _per_prompt(name: str, value: Any, count: int, is_list: bool) -> list[Any]:
    if not is_list:
        return [value] * count
    if len(value) != count:
        raise ValueError(f"{name} has {len(value)} entries for {count} prompts")
    return list(value)


class _Call:
    """The requests of one generate(): one per prompt and sample."""

    def __init__(self, engine: Engine, batch: bool, ids: list[str], notify: Any = None):
        self.engine, self.batch, self.ids, self.notify = engine, batch, ids, notify
        self.requests: list[_native.Request] = []

    def result(self, index: int) -> Result:
        result = self.requests[index].result(False)
        meta = result["meta_info"]
        meta["id"] = self.ids[index]
        for side in ("input", "output"):
            if f"{side}_logprobs" in meta:
                meta[f"{side}_logprobs"] = array.array("f", meta[f"{side}_logprobs"])
        return result

    def results(self) -> Result | list[Result]:
        results = [self.result(i) for i in range(len(self.requests))]
        return results if self.batch or len(results) > 1 else results[0]

    def cancel(self) -> None:
        for request in self.requests:
            request.cancel()

    def indexed(self, index: int) -> Result:
        result = self.result(index)
        return {**result, "index": index} if len(self.requests) > 1 or self.batch else result


def _prompts_of(call: str, prompt: Any, input_ids: Any) -> tuple[bool, list[Any]]:
    """Whether a list was given, and its prompts as texts or as token ids."""
    if (prompt is None) == (input_ids is None):
        raise ValueError(f"{call} needs exactly one of prompt and input_ids")
    if prompt is not None:
        batch = not isinstance(prompt, str)
        return batch, list(prompt) if batch else [prompt]
    batch = len(input_ids) > 0 and not isinstance(input_ids[0], int)
    return batch, [list(ids) for ids in input_ids] if batch else [list(input_ids)]


class Engine:
    """A model in this process, with the options of SGLang's ServerArgs that Banyan supports.

    Options are those of `banyan serve` (see its --help) with underscores: model_path, dtype,
    quantization, context_length, mem_fraction_static, max_running_requests, max_total_tokens,
    chunked_prefill_size, page_size, schedule_policy, disable_radix_cache, speculative_algorithm,
    speculative_draft_model_path, log_level, ... An unsupported option raises a ValueError that
    names it.

    `model_path` is a folder, a GGUF file, or OWNER/NAME on a Hugging Face hub, which the package
    huggingface_hub downloads once; `revision` is a branch, tag or commit there.

    Safe from every thread. `with Engine(...) as engine:` shuts it down at the end.
    """

    def __init__(self, model_path: str, revision: str | None = None, **options: Any):
        located = {"model_path": locate_model(str(model_path), revision), **options}
        for name in _DRAFT_MODELS:
            if located.get(name) is not None:
                located[name] = locate_model(str(located[name]))
        self._native = _native.Engine(_as_arguments(located))
        self._programs: _native.Programs | None = None
        self._programs_lock = threading.Lock()
        _open_engines.add(self)

    def generate(
        self,
        prompt: str | Sequence[str] | None = None,
        sampling_params: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
        input_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        return_logprob: bool | Sequence[bool] = False,
        logprob_start_len: int | Sequence[int] | None = None,
        top_logprobs_num: int | Sequence[int] | None = None,
        token_ids_logprob: Sequence[int] | None = None,
        stream: bool = False,
        rid: str | Sequence[str] | None = None,
        lora_path: str | Sequence[str | None] | None = None,
        **unsupported: Any,
    ) -> Result | list[Result] | Iterator[Result]:
        """Generates from one or more prompts, given as text or as token ids.

        Returns {"text", "output_ids", "meta_info"}, or a list of these for a list of prompts or
        n > 1. With `stream` it returns an iterator of such results, each with the text so far (and
        "index" if there are several). With `return_logprob`, meta_info has SGLang's lists of
        (logprob, token id, None). It also has the logprobs as float arrays, "output_logprobs" and
        "input_logprobs", which numpy.asarray() wraps without a copy. `lora_path` names one of the
        adapters that the option lora_paths has loaded (["NAME=PATH"] or {NAME: PATH}).
        """
        call = self._start(None, prompt, sampling_params, input_ids, return_logprob,
                           logprob_start_len, top_logprobs_num, token_ids_logprob, rid,
                           lora_path, unsupported)
        if stream:
            return self._stream(call)
        return self._finish(call)

    async def async_generate(
        self,
        prompt: str | Sequence[str] | None = None,
        sampling_params: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
        input_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        return_logprob: bool | Sequence[bool] = False,
        logprob_start_len: int | Sequence[int] | None = None,
        top_logprobs_num: int | Sequence[int] | None = None,
        token_ids_logprob: Sequence[int] | None = None,
        stream: bool = False,
        rid: str | Sequence[str] | None = None,
        lora_path: str | Sequence[str | None] | None = None,
        **unsupported: Any,
    ) -> Result | list[Result] | AsyncIterator[Result]:
        """Like generate(), for coroutines. With `stream`, awaiting it returns an async iterator.

        Cancelling the task cancels its requests.
        """
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def notify() -> None:
            try:
                loop.call_soon_threadsafe(changed.set)
            except RuntimeError:  # the loop is closed
                pass

        call = self._start(notify, prompt, sampling_params, input_ids, return_logprob,
                           logprob_start_len, top_logprobs_num, token_ids_logprob, rid,
                           lora_path, unsupported)
        if stream:
            return self._async_stream(call, changed)
        try:
            while not all(request.done() for request in call.requests):
                await changed.wait()
                changed.clear()
        except asyncio.CancelledError:
            call.cancel()
            raise
        return call.results()

    def score(
        self,
        query: str | Sequence[int] | None = None,
        items: str | Sequence[str] | Sequence[Sequence[int]] | None = None,
        label_token_ids: Sequence[int] | None = None,
        apply_softmax: bool = False,
        item_first: bool = False,
    ) -> list[list[float]]:
        """Returns the probability of each label token after the query with each item.

        Shape [items][labels]. Normalised over the vocabulary, or with `apply_softmax` over the
        labels.
        """
        import math

        if items is None or not label_token_ids:
            raise ValueError("score needs items and label_token_ids")
        items = [items] if isinstance(items, str) else list(items)
        if not items:
            return []
        empty: Any = "" if isinstance(items[0], str) else []
        query = empty if query is None else query
        pairs: list[Any] = []
        for item in items:
            if isinstance(item, str) != isinstance(query, str):
                raise ValueError("query and items must both be strings or both be token ids")
            first, second = (item, query) if item_first else (query, item)
            pairs.append(first + second if isinstance(item, str) else [*first, *second])
        given = {"prompt" if isinstance(pairs[0], str) else "input_ids": pairs}
        results = self.generate(
            **given, sampling_params={"max_new_tokens": 1, "temperature": 0, "ignore_eos": True},
            return_logprob=True, token_ids_logprob=list(label_token_ids))
        scores = []
        for result in results:
            chosen = result["meta_info"]["output_token_ids_logprobs"][0]
            values = [math.exp(logprob) for logprob, _, _ in chosen]
            total = sum(values) if apply_softmax else 1.0
            scores.append([value / total for value in values])
        return scores

    def embed(
        self,
        prompt: str | Sequence[str] | None = None,
        input_ids: Sequence[int] | Sequence[Sequence[int]] | None = None,
        dimensions: int = 0,
    ) -> array.array[float] | list[array.array[float]]:
        """The embeddings of one or more texts, or of token ids: float arrays of length 1.

        They are pooled as the model's files say (or the option `pooling`). `dimensions` keeps only
        the first N values, for models trained for that. numpy.asarray() wraps them without a copy.
        """
        batch, prompts = _prompts_of("embed", prompt, input_ids)
        requests: list[Any] = []
        try:
            for one in prompts:
                requests.append(self._native.embed(one, dimensions))
            for request in requests:
                while request.wait(1 << 60) != -1:
                    pass
        except BaseException:
            for request in requests:
                request.cancel()
            raise
        vectors = [array.array("f", request.embedding()) for request in requests]
        return vectors if batch else vectors[0]

    def encode(self, text: str) -> list[int]:
        """Tokenizes a prompt, including the tokenizer's beginning-of-text token."""
        return self._native.encode(text)

    def flush_cache(self) -> None:
        """Evicts every cached prefix that no running request uses."""
        self._native.flush_cache()

    def get_server_info(self) -> dict[str, Any]:
        """Returns the model's properties and its memory plan."""
        return self._native.info()

    def shutdown(self) -> None:
        """Cancels running requests and programs. The engine accepts no more."""
        with self._programs_lock:
            programs = self._programs
        if programs is not None:
            programs.close()
        self._native.shutdown()
        _open_engines.discard(self)

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.shutdown()

    def programs(self) -> _native.Programs:
        """The native object on which banyan.lang runs programs."""
        with self._programs_lock:
            if self._programs is None:
                self._programs = _native.Programs(self._native.backend())
            return self._programs

    def _start(self, notify, prompt, sampling_params, input_ids, return_logprob,
               logprob_start_len, top_logprobs_num, token_ids_logprob, rid, lora_path,
               unsupported) -> _Call:
        for name, value in unsupported.items():
            if value is not None and value is not False:
                raise ValueError(f"generate: {name} is not supported")
        batch, prompts = _prompts_of("generate", prompt, input_ids)
        count = len(prompts)

        def spread(name: str, value: Any, default: Any = None) -> list[Any]:
            value = default if value is None else value
            return _per_prompt(name, value, count, isinstance(value, (list, tuple)))

        params = spread("sampling_params", sampling_params, {})
        wanted = spread("return_logprob", return_logprob, False)
        begins = spread("logprob_start_len", logprob_start_len, -1)
        tops = spread("top_logprobs_num", top_logprobs_num, 0)
        adapters = spread("lora_path", lora_path)
        rids = spread("rid", rid) if isinstance(rid, (list, tuple)) else None
        call = _Call(self, batch, [], notify)
        try:
            for i, one in enumerate(prompts):
                own = {k: v for k, v in (params[i] or {}).items() if k != "n"}
                if adapters[i] is not None:
                    own["lora_path"] = adapters[i]
                logprobs = {}
                if wanted[i]:
                    logprobs = {"top": tops[i], "ids": list(token_ids_logprob or []),
                                "begin": begins[i]}
                samples = (params[i] or {}).get("n")
                samples = 1 if samples is None else samples
                if not isinstance(samples, int) or samples < 1:
                    raise ValueError(f"n is {samples!r}; it must be a positive integer")
                if samples > 1 and own.get("sampling_seed") is None:
                    own["sampling_seed"] = uuid.uuid4().int >> 96
                for sample in range(samples):
                    call.ids.append(rids[i] if rids else rid or uuid.uuid4().hex)
                    call.requests.append(
                        self._native.submit(one, own, logprobs, sample, notify))
        except BaseException:
            call.cancel()
            raise
        return call

    @staticmethod
    def _finish(call: _Call) -> Result | list[Result]:
        try:
            for request in call.requests:
                while request.wait(1 << 60) != -1:
                    pass
        except BaseException:
            call.cancel()
            raise
        return call.results()

    @staticmethod
    def _stream(call: _Call) -> Iterator[Result]:
        seen = [0] * len(call.requests)
        live = list(range(len(call.requests)))
        try:
            while live:
                for index in list(live):
                    seen[index] = call.requests[index].wait(seen[index])
                    result = call.indexed(index)  # may be ahead of the event waited for
                    if result["meta_info"]["finish_reason"] is not None:
                        live.remove(index)
                    yield result
        finally:
            if live:
                call.cancel()

    @staticmethod
    async def _async_stream(call: _Call, changed: asyncio.Event) -> AsyncIterator[Result]:
        told = [-1] * len(call.requests)
        live = list(range(len(call.requests)))
        try:
            while live:
                await changed.wait()
                changed.clear()
                for index in list(live):
                    result = call.indexed(index)
                    if result["meta_info"]["finish_reason"] is not None:
                        live.remove(index)
                    elif len(result["text"]) == told[index]:
                        continue
                    told[index] = len(result["text"])
                    yield result
        finally:
            if live:
                call.cancel()
