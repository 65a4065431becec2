"""Outputs that follow grammars and call tools, as clients' own parsers and jsonschema see them.

The model is tiny: what it writes is nonsense, but has to be nonsense of the right form."""

import enum
import json
import re
from typing import Literal

import jsonschema
import openai
import pytest
from pydantic import BaseModel, Field


class Mood(str, enum.Enum):
    good = "good"
    bad = "bad"


class Part(BaseModel):
    kind: Literal["head", "tail"]
    size: int = Field(ge=0, le=99)


class Animal(BaseModel):
    mood: Mood
    legs: int = Field(ge=0, le=8)
    tame: bool
    parts: list[Part] = Field(max_length=2)


MESSAGES = [{"role": "user", "content": "Once upon a time"}]
CHAT = {"model": "stories", "messages": MESSAGES, "max_tokens": 300}
ADD = {"type": "function", "function": {
    "name": "add", "strict": True, "parameters": {
        "type": "object", "additionalProperties": False, "required": ["a", "unit"],
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99},
                       "unit": {"enum": ["m", "s"]}}}}}
SCHEMAS = [
    {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
                                      "age": {"type": "integer", "minimum": 0, "maximum": 150}},
     "required": ["name", "age"], "additionalProperties": False},
    {"type": "array", "items": {"enum": ["a", "b", 3]}, "minItems": 1, "maxItems": 4},
    {"anyOf": [{"type": "boolean"}, {"type": "null"}, {"const": {"x": [1]}}]},
    {"type": "string", "pattern": "^[a-z]{1,5}-[0-9]{2}$"},
    {"type": "string", "format": "date"},
    {"type": "array", "prefixItems": [{"type": "integer", "minimum": -9, "maximum": 9}],
     "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    {"$ref": "#/$defs/tree", "$defs": {"tree": {
        "type": "object", "properties": {"v": {"enum": [0, 1]}, "next": {
            "anyOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]}},
        "required": ["v", "next"], "additionalProperties": False}}},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "object", "patternProperties": {"^k[0-9]$": {"type": "boolean"}},
     "additionalProperties": False, "maxProperties": 2},
]


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


def test_parse_into_pydantic(client):
    for seed in range(4):
        answer = client.chat.completions.parse(**CHAT, response_format=Animal, seed=seed)
        animal = answer.choices[0].message.parsed
        assert isinstance(animal, Animal) and answer.choices[0].finish_reason == "stop"


def test_stream_into_pydantic(client):
    with client.chat.completions.stream(**CHAT, response_format=Animal, seed=1) as stream:
        for _ in stream:
            pass
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Animal)


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_every_answer_is_valid_or_cut_by_its_length(client, schema):
    ended = 0
    for seed in range(5):
        answer = client.completions.create(
            model="stories", prompt="Once", max_tokens=200, seed=seed, temperature=1,
            extra_body={"structured_outputs": {"json": schema}}).choices[0]
        if answer.finish_reason == "stop":
            jsonschema.Draft202012Validator(
                schema, format_checker=jsonschema.FormatChecker()).validate(json.loads(answer.text))
            ended += 1
        else:
            assert answer.finish_reason == "length"
    assert ended > 0


@pytest.mark.parametrize("extra, pattern", [
    ({"guided_regex": "[0-9]{3}"}, r"\d{3}"), ({"guided_choice": ["left", "right"]}, "left|right"),
    ({"guided_grammar": 'root ::= "a" "b"+ "!"'}, "ab+!"), ({"regex": "x{2,4}"}, "x{2,4}"),
    ({"guided_json": {"type": "boolean"}}, "true|false"), ({"ebnf": 'root ::= "q"'}, "q"),
    ({"json_schema": '{"const": 7}'}, "7"), ({"grammar": 'root ::= [0-4]'}, "[0-4]"),
    ({"structured_outputs": {"choice": ["one"]}}, "one")])
def test_other_servers_fields(client, extra, pattern):
    for make in (client.completions.create, client.chat.completions.create):
        more = {"prompt": "Once"} if make == client.completions.create else {"messages": MESSAGES}
        choice = make(model="stories", max_tokens=100, extra_body=extra, **more).choices[0]
        text = choice.text if hasattr(choice, "text") else choice.message.content
        whole = choice.finish_reason == "stop"
        assert re.fullmatch(pattern, text) or not whole, text


def test_what_cannot_be_enforced_is_refused_or_said(client):
    schema = {"type": "array", "items": {"const": 1}, "maxItems": 3, "uniqueItems": True}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema, "strict": True}}
    with pytest.raises(openai.BadRequestError, match="uniqueItems"):
        client.chat.completions.create(**CHAT, response_format=form)
    form["json_schema"]["strict"] = False
    answer = client.chat.completions.create(**CHAT, response_format=form)
    assert "uniqueItems" in answer.model_extra["warnings"][0]
    with pytest.raises(openai.BadRequestError, match="both given"):
        client.completions.create(model="stories", prompt="a",
                                  extra_body={"regex": "a", "guided_choice": ["b"]})


def test_a_named_tool_is_called(client):
    choice = {"type": "function", "function": {"name": "add"}}
    for seed in range(4):
        answer = client.chat.completions.create(**CHAT, tools=[ADD], tool_choice=choice, seed=seed)
        message = answer.choices[0].message
        assert answer.choices[0].finish_reason == "tool_calls" and message.content is None
        call, = message.tool_calls
        jsonschema.validate(json.loads(call.function.arguments), ADD["function"]["parameters"])
        # And back: the template takes the call and its result.
        client.chat.completions.create(**{**CHAT, "max_tokens": 2, "messages": [
            *MESSAGES, message, {"role": "tool", "tool_call_id": call.id, "content": "3"}]})


def test_a_streamed_call_adds_up(client):
    arguments = dict(**CHAT, tools=[ADD], tool_choice="required", parallel_tool_calls=False, seed=2)
    whole = client.chat.completions.create(**arguments).choices[0].message.tool_calls
    with client.chat.completions.stream(**arguments) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert final.finish_reason == "tool_calls"
    assert [c.function.arguments for c in final.message.tool_calls] == [
        c.function.arguments for c in whole]


def test_figures_tell_of_grammars(client, server):
    body = dict(model="stories", prompt="a", max_tokens=4, extra_body={"regex": "[a-f]{4}"})
    before = {name: server.counter("sglang:" + name) for name in (
        "num_grammar_total", "num_grammar_cache_hit_total")}
    client.completions.create(**body)
    client.completions.create(**body)
    assert server.counter("sglang:num_grammar_total") == before["num_grammar_total"] + 2
    assert server.counter("sglang:num_grammar_cache_hit_total") > before[
        "num_grammar_cache_hit_total"]
    assert server.counter("sglang:grammar_compilation_time_seconds_sum") > 0
