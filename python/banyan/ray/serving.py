"""An application of Ray Serve: engines as replicas below a front that loses no request with them.

    serve run banyan.ray.serving:build model_path=models/Qwen3-0.6B max_replicas=8

`POST /generate` is SGLang's, `POST /v1/completions` OpenAI's, streams included; other deployments
call the handle's `generate`. A replica that is lost costs its streams a pause: the front asks
another one with the same seed and leaves out what it has sent. Replicas come and go by queued
tokens (`banyan.ray.scaling`).
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any, AsyncIterator

from pydantic import BaseModel, Field
from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from banyan.ray.once import LOST, Piece, once
from banyan.ray.scaling import QUEUED_TOKENS, QueuedTokensPolicy

__all__ = ["Settings", "build"]


class Settings(BaseModel):
    """What `serve run` takes as name=value, and a configuration of Ray Serve as `args`."""

    model_path: str
    served_model_name: str = "banyan"
    engine: dict[str, Any] = Field(default_factory=dict)  # options of banyan.Engine
    min_replicas: int = Field(1, ge=1)
    max_replicas: int = Field(1, ge=1)
    requests_per_replica: int = Field(8, ge=1)  # that run at the same time
    queued_per_replica: int = Field(64, ge=0)  # that wait there beyond those
    target_queued_tokens: float = Field(8192, gt=0)  # of prompts, per replica
    upscale_delay_s: float = Field(10, ge=0)
    downscale_delay_s: float = Field(600, ge=0)  # a new replica has nothing cached
    num_cpus: float = Field(1, ge=0)  # of a replica; its `threads` unless `engine` says otherwise
    fronts: int = Field(1, ge=1)
    migration_limit: int = Field(3, ge=0)  # replicas that a request may lose


class Worker:
    """A replica: one engine."""

    def __init__(self, settings: Settings):
        from banyan import Engine

        options = {"threads": max(1, int(settings.num_cpus)),
                   "max_running_requests": settings.requests_per_replica, **settings.engine}
        self._engine = Engine(settings.model_path, **options)
        self._queued_tokens = 0

    async def generate(self, prompt: str | list[int], sampling_params: dict[str, Any],
                       rid: str) -> AsyncIterator[Piece]:
        """Yields what is new of the text, with `meta_info` as banyan.Engine has it."""
        ids = self._engine.encode(prompt) if isinstance(prompt, str) else prompt
        waiting, said = len(ids), 0
        self._queued_tokens += waiting
        try:
            async for result in await self._engine.async_generate(
                    input_ids=ids, sampling_params=sampling_params, rid=rid, stream=True):
                self._queued_tokens -= waiting
                waiting = 0
                yield {"text": result["text"][said:], "meta_info": result["meta_info"]}
                said = len(result["text"])
        finally:
            self._queued_tokens -= waiting

    def record_autoscaling_stats(self) -> dict[str, float]:
        return {QUEUED_TOKENS: float(self._queued_tokens)}

    def check_health(self) -> None:
        self._engine.get_server_info()

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self._engine.shutdown()


class Refused(ValueError):
    """A request that cannot be answered as it is; a 400."""


class Front:
    """Requests in, answers out; without a model, so it starts at once and may be many."""

    def __init__(self, settings: Settings, workers: DeploymentHandle):
        self._settings = settings
        self._workers = workers.options(stream=True)

    async def generate(self, prompt: str | list[int],
                       sampling_params: dict[str, Any] | None = None,
                       rid: str | None = None) -> AsyncIterator[Piece]:
        """The pieces of one answer, each once; for other deployments, with stream=True."""
        rid = rid or uuid.uuid4().hex
        params = {"sampling_seed": uuid.uuid4().int >> 96, **(sampling_params or {})}

        async def attempt() -> AsyncIterator[Piece]:
            answer = self._workers.generate.remote(prompt, params, rid)
            try:
                async for piece in answer:
                    yield piece
            finally:
                answer.cancel()  # changes nothing once it has ended

        async for piece in once(attempt, self._settings.migration_limit):
            yield piece

    async def __call__(self, request: Request) -> Response:
        shape = {"/generate": NativeShape, "/v1/completions": CompletionShape}.get(
            request.url.path)
        if request.url.path == "/health":
            return JSONResponse({"status": "ok"})
        if shape is None:
            return error(404, f"there is nothing at {request.url.path}; this application has "
                              "/generate, /v1/completions and /health")
        if request.method != "POST":
            return error(405, f"{request.url.path} takes POST, not {request.method}")
        try:
            one = shape(await request.json(), self._settings.served_model_name)
            pieces = self.generate(one.prompt, one.sampling_params, one.rid)
            first = await anext(pieces)  # what is wrong with a request shows here, as a status
        except (Refused, ValueError) as wrong:
            return error(400, cause_of(wrong))
        except LOST:
            return error(503, "the replicas that had this request were lost")
        except RuntimeError as full:
            return error(503, cause_of(full))
        if one.stream:
            return StreamingResponse(events(one, first, pieces), media_type="text/event-stream")
        text, last = first["text"], first
        async for last in pieces:
            text += last["text"]
        return JSONResponse(one.whole(text, last["meta_info"]))


def error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "code": status}}, status)


def cause_of(raised: BaseException) -> str:
    """Without the traceback of a replica that Ray adds."""
    cause = getattr(raised, "cause", None) or raised
    return str(cause)


async def events(one: Any, first: Piece, pieces: AsyncIterator[Piece]) -> AsyncIterator[str]:
    """Server-sent events. An error after the first one is an event too."""
    text = first["text"]
    yield f"data: {json.dumps(one.part(first, text))}\n\n"
    try:
        async for piece in pieces:
            text += piece["text"]
            yield f"data: {json.dumps(one.part(piece, text))}\n\n"
    except asyncio.CancelledError:
        raise
    except Exception as failure:
        yield f"data: {json.dumps({'error': {'message': cause_of(failure), 'code': 500}})}\n\n"
        return
    yield "data: [DONE]\n\n"


def refuse_others(body: Any, known: set[str]) -> None:
    if not isinstance(body, dict):
        raise Refused("the body is not a JSON object")
    others = sorted(name for name in body if name not in known and body[name] is not None)
    if others:
        raise Refused(f"{', '.join(others)}: not supported under Ray Serve")


class NativeShape:
    """SGLang's /generate; streams repeat the text so far, as there."""

    def __init__(self, body: Any, model: str):
        refuse_others(body, {"text", "input_ids", "sampling_params", "stream", "rid"})
        if (body.get("text") is None) == (body.get("input_ids") is None):
            raise Refused("exactly one of text and input_ids must be given")
        self.prompt = body["text"] if body.get("text") is not None else body["input_ids"]
        if isinstance(self.prompt, list) and not all(isinstance(i, int) for i in self.prompt):
            raise Refused("input_ids must be a list of numbers; send one prompt per request")
        self.sampling_params = body.get("sampling_params") or {}
        if (self.sampling_params.get("n") or 1) != 1:
            raise Refused("n must be 1 under Ray Serve; send one request per answer")
        self.stream, self.rid = bool(body.get("stream")), body.get("rid")

    def whole(self, text: str, meta: dict[str, Any]) -> dict[str, Any]:
        return {"text": text, "meta_info": plain(meta)}

    def part(self, piece: Piece, text: str) -> dict[str, Any]:
        return self.whole(text, piece["meta_info"])


def plain(meta: dict[str, Any]) -> dict[str, Any]:
    """Without arrays of floats, which JSON lacks."""
    return {name: value for name, value in meta.items() if not name.endswith("put_logprobs")}


class CompletionShape:
    """OpenAI's /v1/completions, for one prompt and one answer."""

    PARAMETERS = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens",
                  "seed": "sampling_seed",
                  **{name: name for name in (
                      "temperature", "top_p", "top_k", "min_p", "stop", "frequency_penalty",
                      "presence_penalty", "repetition_penalty", "ignore_eos", "regex",
                      "json_schema", "ebnf")}}

    def __init__(self, body: Any, model: str):
        refuse_others(body, {*self.PARAMETERS, "prompt", "model", "stream", "n", "user"})
        if body.get("n") not in (None, 1):
            raise Refused("n must be 1 under Ray Serve; send one request per answer")
        self.prompt = body.get("prompt")
        ids = isinstance(self.prompt, list) and all(isinstance(i, int) for i in self.prompt)
        if not ids and not isinstance(self.prompt, str):
            raise Refused("prompt must be a text or a list of token ids, one per request")
        self.sampling_params = {ours: body[theirs] for theirs, ours in self.PARAMETERS.items()
                                if body.get(theirs) is not None}
        self.sampling_params.setdefault("max_new_tokens", 16)
        self.stream, self.rid = bool(body.get("stream")), f"cmpl-{uuid.uuid4().hex}"
        self._model, self._created = model, int(time.time())

    def whole(self, text: str, meta: dict[str, Any]) -> dict[str, Any]:
        reason = meta["finish_reason"]
        answer = {"id": self.rid, "object": "text_completion", "created": self._created,
                  "model": self._model,
                  "choices": [{"index": 0, "text": text, "logprobs": None,
                               "finish_reason": reason and reason["type"]}]}
        if reason:
            prompt, completion = meta["prompt_tokens"], meta["completion_tokens"]
            answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": completion,
                               "total_tokens": prompt + completion,
                               "prompt_tokens_details": {"cached_tokens": meta["cached_tokens"]}}
        return answer

    def part(self, piece: Piece, text: str) -> dict[str, Any]:
        return self.whole(piece["text"], piece["meta_info"])


def build(settings: Settings) -> serve.Application:
    """The application that `serve run banyan.ray.serving:build model_path=...` starts."""
    policy = AutoscalingPolicy(
        policy_function=QueuedTokensPolicy,
        policy_kwargs={"target_queued_tokens": settings.target_queued_tokens,
                       "requests_per_replica": settings.requests_per_replica})
    workers = serve.deployment(
        Worker, name="BanyanWorker", ray_actor_options={"num_cpus": settings.num_cpus},
        max_ongoing_requests=settings.requests_per_replica + settings.queued_per_replica,
        graceful_shutdown_timeout_s=30, health_check_period_s=5,
        autoscaling_config=AutoscalingConfig(
            min_replicas=settings.min_replicas,
            max_replicas=max(settings.min_replicas, settings.max_replicas),
            metrics_interval_s=1, look_back_period_s=5, policy=policy,
            upscale_delay_s=settings.upscale_delay_s,
            downscale_delay_s=settings.downscale_delay_s))
    front = serve.deployment(
        Front, name="Banyan", num_replicas=settings.fronts, max_ongoing_requests=4096,
        ray_actor_options={"num_cpus": 0.1})
    return front.bind(settings, workers.bind(settings))
