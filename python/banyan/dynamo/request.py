"""A request of Dynamo as a body of `/v1/completions`."""

from __future__ import annotations

from typing import Any

from dynamo.llm.exceptions import InvalidArgument

__all__ = ["completion_of"]

SAMPLING = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty",
            "repetition_penalty", "seed", "logit_bias")
STOPS = ("max_tokens", "min_tokens", "ignore_eos", "stop")
GRAMMARS = ("json", "regex", "choice", "grammar", "structural_tag")
# Options without effect here, with the values that are accepted. Dynamo's frontend ends an answer
# with its first choice, so there is one.
NEUTRAL: dict[str, tuple] = {"n": (None, 1), "best_of": (None, 0, 1),
                             "use_beam_search": (None, False), "length_penalty": (None, 1, 0)}


def completion_of(request: dict[str, Any], context_tokens: int) -> dict[str, Any]:
    """InvalidArgument, a 400 of Dynamo's frontend: the worker lacks an option."""
    sampling = request.get("sampling_options") or {}
    stops = request.get("stop_conditions") or {}
    output = request.get("output_options") or {}
    for name, values in NEUTRAL.items():
        if sampling.get(name) not in values:
            raise InvalidArgument(f"{name} is {sampling[name]}, which is not supported through "
                                  "Dynamo")
    body = {"prompt": request["token_ids"], "stream": True, "return_token_ids": True}
    body["max_tokens"] = max(1, context_tokens - len(request["token_ids"]))
    body |= given(sampling, SAMPLING) | given(stops, STOPS)
    ends = [*(stops.get("stop_token_ids_hidden") or []), *(stops.get("stop_token_ids") or [])]
    if ends:
        body["stop_token_ids"] = list(dict.fromkeys(ends))
    if guided := sampling.get("guided_decoding"):
        body["structured_outputs"] = given(guided, GRAMMARS)
    body |= logprobs_of(output)
    if output.get("skip_special_tokens") is not None:
        body["skip_special_tokens"] = output["skip_special_tokens"]
    return body


def given(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: options[name] for name in names if options.get(name) is not None}


def logprobs_of(output: dict[str, Any]) -> dict[str, Any]:
    if output.get("prompt_logprobs") is not None:
        raise InvalidArgument("prompt_logprobs cannot be asked for through Dynamo")
    count = output.get("logprobs")
    if count is None:
        return {}
    if int(count) > 1:
        raise InvalidArgument(f"logprobs is {count}; through Dynamo a Banyan worker gives those of the "
                         "tokens of the answer alone")
    return {"logprobs": 0}
