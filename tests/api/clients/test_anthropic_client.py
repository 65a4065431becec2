"""The `anthropic` package, unchanged."""

import anthropic
import pytest


@pytest.fixture(scope="module")
def client(server):
    return anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)


# Its present version has no field for the temperature.
MESSAGE = {"model": "stories", "max_tokens": 12, "extra_body": {"temperature": 0},
           "messages": [{"role": "user", "content": "Once upon a time"}]}
TOOL = {"name": "add", "description": "Adds two numbers.",
        "input_schema": {"type": "object", "properties": {"a": {"enum": [1, 2, 3]}},
                         "required": ["a"], "additionalProperties": False}}


def test_models(client):
    assert [m.id for m in client.models.list()] == ["stories"]
    assert client.models.retrieve("stories").display_name == "stories"


def test_message(client):
    answer = client.messages.create(**MESSAGE, system="You tell stories.")
    assert answer.role == "assistant" and answer.model == "stories"
    assert answer.content[0].text
    assert answer.stop_reason == "max_tokens"
    assert answer.usage.output_tokens == 12


def test_stream_says_the_same(client):
    whole = client.messages.create(**MESSAGE)
    with client.messages.stream(**MESSAGE) as stream:
        text = "".join(stream.text_stream)
        last = stream.get_final_message()
    assert text == whole.content[0].text == last.content[0].text
    assert last.stop_reason == whole.stop_reason
    assert last.usage.output_tokens == 12


def test_prompts_are_found_in_the_cache(client):
    text = "The dog ran to the park and saw a cat. " * 20
    arguments = {**MESSAGE, "messages": [{"role": "user", "content": [
        {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]}]}
    first = client.messages.create(**arguments).usage
    second = client.messages.create(**arguments).usage
    total = first.input_tokens + first.cache_read_input_tokens
    assert second.cache_read_input_tokens > total // 2
    assert second.input_tokens + second.cache_read_input_tokens == total


def test_count_tokens(client):
    counted = client.messages.count_tokens(model="stories", messages=MESSAGE["messages"])
    usage = client.messages.create(**MESSAGE).usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "add"}])
def test_tools(client, choice):
    arguments = {**MESSAGE, "max_tokens": 200, "tools": [TOOL], "tool_choice": choice}
    call = client.messages.create(**arguments).content[0]
    assert call.type == "tool_use" and isinstance(call.input["a"], int)
    with client.messages.stream(**arguments) as stream:
        last = stream.get_final_message()
    assert last.content[0].input == call.input
    assert last.stop_reason == "tool_use"
    answered = client.messages.create(**{**arguments, "tool_choice": {"type": "auto"},
                                         "messages": MESSAGE["messages"] + [
        {"role": "assistant", "content": [call.model_dump(include={"type", "id", "name",
                                                                   "input"})]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id,
                                      "content": "7"}]}]})
    assert answered.usage.output_tokens > 0


def test_errors(client, server):
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.messages.create(**{**MESSAGE, "extra_body": {"temperature": 9999}})
    assert refused.value.body["error"]["type"] == "invalid_request_error"
    assert "temperature" in refused.value.body["error"]["message"]
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(**{**MESSAGE, "messages": [
            {"role": "user", "content": "x " * 5000}]})
    with pytest.raises(anthropic.NotFoundError):
        client.messages.create(**{**MESSAGE, "model": "claude-opus-4"})
