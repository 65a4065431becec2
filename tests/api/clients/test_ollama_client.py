"""The `ollama` package, unchanged."""

import ollama
import pydantic
import pytest


@pytest.fixture(scope="module")
def client(server):
    return ollama.Client(host=server.url)


MESSAGES = [{"role": "user", "content": "Once upon a time"}]
OPTIONS = {"temperature": 0, "num_predict": 12}


def test_models(client):
    assert [m.model for m in client.list().models] == ["stories"]
    shown = client.show("stories")
    assert "completion" in shown.capabilities and shown.details.family == "llama"
    running = client.ps().models[0]
    assert running.name == "stories" and running.size > 0


def test_chat(client):
    answer = client.chat("stories", MESSAGES, options=OPTIONS)
    assert answer.message.content and answer.done_reason == "length"
    assert answer.eval_count == 12 and answer.prompt_eval_count > 0
    assert answer.total_duration >= answer.eval_duration > 0
    parts = list(client.chat("stories:latest", MESSAGES, options=OPTIONS, stream=True))
    assert "".join(p.message.content for p in parts) == answer.message.content
    assert parts[-1].done and not parts[0].done


def test_generate(client):
    answer = client.generate("stories", "Once upon a time", raw=True, options=OPTIONS)
    assert answer.response.startswith(", there was a little girl")
    parts = list(client.generate("stories", "Once upon a time", raw=True, options=OPTIONS,
                                 stream=True))
    assert "".join(p.response for p in parts) == answer.response
    assert client.generate("stories", "Once", options=OPTIONS, keep_alive="5m").response
    assert client.generate("stories").done_reason == "load"


class Pet(pydantic.BaseModel):
    model_config = {"extra": "forbid"}
    name: str = pydantic.Field(max_length=9)
    age: int = pydantic.Field(ge=0, le=20)


def test_format(client):
    options = {**OPTIONS, "num_predict": 200}
    answer = client.chat("stories", MESSAGES, format=Pet.model_json_schema(), options=options)
    Pet.model_validate_json(answer.message.content)


def test_tools(client):
    def add(a: int, b: int) -> int:
        """Adds two numbers.

        Args:
            a: one
            b: another
        """
        return a + b
    answer = client.chat("stories", MESSAGES, tools=[add], options=OPTIONS)
    assert answer.message.role == "assistant"
    answered = client.chat("stories", MESSAGES + [
        {"role": "assistant", "tool_calls": [{"function": {"name": "add",
                                                           "arguments": {"a": 1, "b": 2}}}]},
        {"role": "tool", "tool_name": "add", "content": "3"}], tools=[add], options=OPTIONS)
    assert answered.eval_count > 0


def test_embed(client):
    one = client.embed("stories", "a cat")
    two = client.embed("stories", ["a cat", "a dog"], dimensions=8)
    assert len(one.embeddings) == 1 and one.prompt_eval_count > 0
    assert [len(e) for e in two.embeddings] == [8, 8]
    assert sum(x * x for x in one.embeddings[0]) == pytest.approx(1, abs=1e-5)
    old = client.embeddings("stories", "a cat").embedding
    scale = sum(x * x for x in old) ** 0.5
    assert [x / scale for x in old] == pytest.approx(one.embeddings[0], abs=1e-5)


def test_errors(client):
    with pytest.raises(ollama.ResponseError, match="temperature") as refused:
        client.chat("stories", MESSAGES, options={"temperature": -1})
    assert refused.value.status_code == 400
    with pytest.raises(ollama.ResponseError) as refused:
        client.chat("llama3", MESSAGES)
    assert refused.value.status_code == 404
    with pytest.raises(ollama.ResponseError, match="not a model name of the form OWNER/NAME"):
        client.pull("llama3")
    assert client.pull("stories").status == "success"
    assert [part.status for part in client.pull("stories", stream=True)][-1] == "success"
