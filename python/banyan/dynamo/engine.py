"""Dynamo's engine interface over the HTTP API of a Banyan worker."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
from contextlib import suppress
from typing import Any, AsyncIterator

import aiohttp
from dynamo.common.backend.engine import EngineConfig, LLMEngine, LlmRegistration
from dynamo.common.backend.health_check import build_health_check_payload
from dynamo.common.backend.publisher import ComponentSnapshot, KvEventSource, ZmqSource
from dynamo.common.backend.worker import WorkerConfig
from dynamo.common.configuration.groups.runtime_args import (DynamoRuntimeArgGroup,
                                                             DynamoRuntimeConfig)
from dynamo.common.utils.runtime import parse_endpoint
from dynamo.llm.exceptions import Disconnected, HttpError, InvalidArgument

from banyan.dynamo.request import completion_of

__all__ = ["BanyanEngine"]

REPORT_INTERVAL_S = 0.5
LOST_REPORTS = 5  # a worker that misses as many in a row is gone
READY_INTERVAL_S = 0.2
READ_BYTES = 1 << 24  # a line must fit; the first event of a stream repeats the prompt's ids
ERRORS = (aiohttp.ClientError, asyncio.TimeoutError, HttpError)


class Options(DynamoRuntimeConfig):
    """Dynamo's own options, and those of this component."""

    component: str
    url: str
    api_key: str | None = None
    model_path: str | None = None
    served_model_name: str | None = None
    kv_events: str | None = None


def parse_options(argv: list[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -m banyan.dynamo", allow_abbrev=False)
    ours = parser.add_argument_group("Banyan")
    ours.add_argument("--url", required=True, help="of the worker: http://127.0.0.1:30001")
    ours.add_argument("--api-key", help="for a worker that was started with one")
    ours.add_argument("--model-path", help="folder with the tokenizer (default: the worker's)")
    ours.add_argument("--served-model-name", help="for clients (default: the worker's)")
    ours.add_argument("--kv-events", metavar="ENDPOINT",
                      help="where the worker publishes them: tcp://127.0.0.1:5557")
    DynamoRuntimeArgGroup().add_arguments(parser)
    options = Options.from_cli_args(parser.parse_args(argv))
    options.validate()
    name = options.endpoint or f"dyn://{options.namespace}.backend.generate"
    options.namespace, options.component, options.endpoint = parse_endpoint(name)
    return options


class BanyanEngine(LLMEngine):
    """One worker. Requests become `POST /v1/completions` with token ids in and out."""

    def __init__(self, options: Options):
        self._options = options
        self._session: aiohttp.ClientSession | None = None
        self._answers: dict[str, aiohttp.ClientResponse] = {}  # of running requests, by their ids
        self._context_tokens = 0
        self._publisher: Any = None  # given after start()
        self._reports: asyncio.Task | None = None

    @classmethod
    async def from_args(cls, argv: list[str] | None = None) -> tuple[BanyanEngine, WorkerConfig]:
        engine = cls(parse_options(argv))
        model = await engine._wait_for_model()
        options = engine._options
        options.model_path = options.model_path or model["model_path"]
        options.served_model_name = options.served_model_name or model["name"]
        config = WorkerConfig.from_runtime_config(
            options, model_name=options.model_path, served_model_name=options.served_model_name,
            enable_kv_routing=options.kv_events is not None)
        return engine, config

    async def start(self, worker_id: int) -> EngineConfig:
        info = await self._ask("/worker/info")
        self._context_tokens = info["context_length"]
        self._reports = asyncio.create_task(self._report())
        return EngineConfig(
            model=self._options.model_path, served_model_name=self._options.served_model_name,
            llm=LlmRegistration(context_length=info["context_length"],
                                kv_cache_block_size=info["page_size"],
                                total_kv_blocks=info["pages_total"],
                                max_num_seqs=info["max_running_requests"]))

    async def generate(self, request: dict[str, Any],
                       context: Any) -> AsyncIterator[dict[str, Any]]:
        body = completion_of(request, self._context_tokens)
        prompt_tokens, output_tokens = len(body["prompt"]), 0
        try:
            async with self._session.post("/v1/completions", json=body,
                                          headers={"X-Request-Id": context.id()}) as answer:
                await check(answer)
                self._answers[context.id()] = answer
                async for choice in choices_of(answer):
                    chunk = chunk_of(choice)
                    output_tokens += len(chunk["token_ids"])
                    if "finish_reason" in chunk:
                        chunk["completion_usage"] = {
                            "prompt_tokens": prompt_tokens, "completion_tokens": output_tokens,
                            "total_tokens": prompt_tokens + output_tokens}
                    yield chunk
        except aiohttp.ClientError as lost:
            if context.is_stopped():
                return
            # Dynamo's frontend goes on at another worker, if its --migration-limit allows.
            raise Disconnected(f"the worker at {self._options.url} is lost: {lost}") from lost
        finally:
            self._answers.pop(context.id(), None)

    async def abort(self, context: Any) -> None:
        if answer := self._answers.get(context.id()):
            answer.close()  # which cancels the request at the worker

    async def kv_event_sources(self) -> list[KvEventSource]:
        return [ZmqSource(self._options.kv_events)] if self._options.kv_events else []

    def component_metrics_dp_ranks(self) -> list[int]:
        return [0]

    def attach_snapshot_publisher(self, publisher: Any) -> None:
        self._publisher = publisher

    async def health_check_payload(self) -> dict[str, Any]:
        return build_health_check_payload(bos_token_id=1)

    async def cleanup(self) -> None:
        if self._reports is not None:
            self._reports.cancel()
            self._reports = None
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> None:
        key = self._options.api_key
        self._session = self._session or aiohttp.ClientSession(
            self._options.url, headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10), read_bufsize=READ_BYTES)

    async def _ask(self, path: str, timeout_s: float | None = None) -> dict[str, Any]:
        self._open()
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        async with self._session.get(path, timeout=timeout) as answer:
            await check(answer)
            return await answer.json()

    async def _wait_for_model(self) -> dict[str, Any]:
        self._open()
        while True:
            with suppress(aiohttp.ClientConnectionError):
                async with self._session.get("/health") as answer:
                    if answer.status == 200:
                        break
            await asyncio.sleep(READY_INTERVAL_S)
        model = await self._ask("/get_model_info")
        return model | {"name": (await self._ask("/v1/models"))["data"][0]["id"]}

    async def _report(self) -> None:
        """Says how full the worker's cache is, for Dynamo's router. Ends with the worker."""
        missed = 0
        while missed < LOST_REPORTS:
            try:
                info = await self._ask("/worker/info", REPORT_INTERVAL_S)
                missed = LOST_REPORTS if info["state"] == "draining" else 0
                if self._publisher is not None:
                    self._publisher.publish(0, snapshot_of(info))
            except ERRORS:
                missed += 1
            await asyncio.sleep(REPORT_INTERVAL_S)
        logging.getLogger(__name__).error("the worker at %s is gone", self._options.url)
        os.kill(os.getpid(), signal.SIGTERM)  # so that Dynamo sends it nothing more


def snapshot_of(info: dict[str, Any]) -> ComponentSnapshot:
    total = info["pages_total"]
    used = total - info["pages_free"]
    asked = info["prompt_tokens"] + info["cached_tokens"]
    return ComponentSnapshot(kv_used_blocks=used, kv_total_blocks=total, dp_rank=0,
                             gpu_cache_usage=used / total,
                             kv_cache_hit_rate=info["cached_tokens"] / asked if asked else None)


async def check(answer: aiohttp.ClientResponse) -> None:
    """Raises what an answer that is an error says."""
    if answer.status == 200:
        return
    text = await answer.text()
    with suppress(ValueError, KeyError, TypeError):
        text = json.loads(text)["error"]["message"]
    if answer.status == 400:
        raise InvalidArgument(text)
    raise HttpError(answer.status, text)


async def choices_of(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """What each event of a stream says of a choice."""
    async for line in answer.content:
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            return
        if not data:
            continue
        event = json.loads(data)
        if "error" in event:
            raise HttpError(event["error"].get("code") or 500, event["error"]["message"])
        for choice in event["choices"]:
            yield choice
    raise aiohttp.ClientPayloadError("the stream has no end")


def chunk_of(choice: dict[str, Any]) -> dict[str, Any]:
    chunk = {"index": choice["index"], "token_ids": choice["token_ids"]}
    if choice.get("logprobs"):
        chunk["log_probs"] = choice["logprobs"]["token_logprobs"]
    if choice["finish_reason"]:
        chunk["finish_reason"] = choice["finish_reason"]
    return chunk
