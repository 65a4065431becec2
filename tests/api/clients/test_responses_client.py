"""OpenAI's Responses API, by the `openai` package, unchanged."""

import json
import re

import openai
import pydantic
import pytest


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


ASK = {"model": "stories", "input": "Once upon a time", "temperature": 0,
       "max_output_tokens": 12}
TOOL = {"type": "function", "name": "add", "strict": True, "parameters": {
    "type": "object", "properties": {"a": {"enum": [1, 2, 3]}}, "required": ["a"],
    "additionalProperties": False}}


def test_response(client):
    answer = client.responses.create(**ASK, instructions="You tell stories.")
    assert answer.output_text and answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage.output_tokens == 12
    assert answer.usage.total_tokens == answer.usage.input_tokens + 12


def test_stream_says_the_same(client):
    whole = client.responses.create(**ASK)
    text, types = "", []
    for event in client.responses.create(**ASK, stream=True):
        types.append(event.type)
        if event.type == "response.output_text.delta":
            text += event.delta
    assert text == whole.output_text
    assert types[0] == "response.created" and types[-1] == "response.incomplete"
    with client.responses.stream(**ASK) as stream:
        for event in stream:
            pass
    assert event.response.output_text == whole.output_text


def test_turns_are_stored(client):
    first = client.responses.create(**ASK)
    assert client.responses.retrieve(first.id).output_text == first.output_text
    second = client.responses.create(**{**ASK, "input": "Go on"}, previous_response_id=first.id)
    messages = [{"role": "user", "content": ASK["input"]},
                {"role": "assistant", "content": first.output_text},
                {"role": "user", "content": "Go on"}]
    spelled = client.responses.create(**{**ASK, "input": messages})
    assert second.output_text == spelled.output_text
    assert second.usage.input_tokens == spelled.usage.input_tokens
    items = client.responses.input_items.list(first.id)
    assert items.data[0].content[0].text == ASK["input"]
    client.responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        client.responses.create(**ASK, previous_response_id=first.id)


def test_tools(client):
    arguments = {**ASK, "max_output_tokens": 200, "tools": [TOOL], "tool_choice": "required",
                 "parallel_tool_calls": False}
    call = client.responses.create(**arguments).output[0]
    assert call.type == "function_call" and json.loads(call.arguments)["a"] in (1, 2, 3)
    with client.responses.stream(**arguments) as stream:
        events = list(stream)
    assert events[-1].response.output[0].arguments == call.arguments
    answered = client.responses.create(**{**arguments, "tool_choice": "none", "input": [
        {"role": "user", "content": "Add"}, call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "7"}]})
    assert answered.usage.output_tokens > 0


def test_custom_tools(client):
    grammar = {"type": "grammar", "syntax": "regex", "definition": "[ab]{2,4}\\n\"[cd]\""}
    tool = {"type": "custom", "name": "edit", "description": "Edits.", "format": grammar}
    arguments = {**ASK, "max_output_tokens": 200, "tools": [tool],
                 "tool_choice": {"type": "custom", "name": "edit"}}
    first = client.responses.create(**arguments)
    call = first.output[0]
    assert call.type == "custom_tool_call" and call.name == "edit"
    assert re.fullmatch(grammar["definition"], call.input)
    with client.responses.stream(**arguments) as stream:
        events = list(stream)
    deltas = [event.delta for event in events
              if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == call.input == events[-1].response.output[0].input
    output = {"type": "custom_tool_call_output", "call_id": call.call_id, "output": "ok"}
    second = client.responses.create(**{**ASK, "input": [output]},
                                     previous_response_id=first.id)
    items = [{"role": "user", "content": ASK["input"]}, call.model_dump(exclude_none=True), output]
    spelled = client.responses.create(**{**ASK, "input": items})
    assert second.usage.input_tokens == spelled.usage.input_tokens
    with pytest.raises(openai.BadRequestError, match="lark is not supported"):
        lark = {**tool, "format": {**grammar, "syntax": "lark"}}
        client.responses.create(**{**arguments, "tools": [lark]})


class Pet(pydantic.BaseModel):
    model_config = {"extra": "forbid"}
    name: str = pydantic.Field(max_length=9)
    age: int = pydantic.Field(ge=0, le=20)


def test_structured_output(client):
    parsed = client.responses.parse(**{**ASK, "max_output_tokens": 200}, text_format=Pet)
    assert isinstance(parsed.output_parsed, Pet)


def test_errors(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**{**ASK, "temperature": 9999})
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(**ASK, background=True)
    assert refused.value.param == "background"
