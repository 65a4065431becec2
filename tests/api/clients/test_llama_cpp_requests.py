"""Requests of the kind that llama.cpp's server is tested with, on the OpenAI endpoints."""

import openai
import pytest


@pytest.mark.parametrize("system, user, max_tokens", [
    (None, "What is the best book", 8),
    ("You are a coding assistant.", "Write the fibonacci function in c++.", 64),
    ("", "Say hello", 1)])
@pytest.mark.parametrize("stream", [False, True])
def test_chat(server, system, user, max_tokens, stream):
    messages = [{"role": "user", "content": user}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    body = {"messages": messages, "max_tokens": max_tokens, "temperature": 0, "stream": stream,
            "cache_prompt": True, "id_slot": 0, "n_probs": 0}
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 200
    if stream:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        assert answer.text.endswith("data: [DONE]\n\n")
    else:
        choice = answer.json()["choices"][0]
        assert choice["finish_reason"] in ("stop", "length")
        assert answer.json()["usage"]["completion_tokens"] <= max_tokens


def test_model_may_be_left_out(server):
    for model in ({}, {"model": None}, {"model": "stories"}):
        answer = server.post("/v1/completions", {"prompt": "a", "max_tokens": 1, **model})
        assert answer.status_code == 200
    # The server was given a name for its model.
    other = server.post("/v1/completions", {"prompt": "a", "model": "gpt-3.5-turbo-instruct"})
    assert other.status_code == 404


@pytest.mark.parametrize("body", [
    {}, {"messages": {}}, {"messages": [{}]}, {"messages": [{"role": "user"}]},
    {"messages": [{"role": "user", "content": 1}]}, {"messages": [{"role": 1, "content": "a"}]},
    {"messages": "hi"}])
def test_invalid_messages(server, body):
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 400
    assert "messages" in answer.json()["error"]["message"]


def test_logprobs_stream_adds_up(server):
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="x")
    text, tokens = "", ""
    for chunk in client.chat.completions.create(
            model="stories", temperature=0, max_tokens=10, logprobs=True, top_logprobs=10,
            stream=True, messages=[{"role": "user", "content": "Once upon a time"}]):
        choice = chunk.choices[0]
        text += choice.delta.content or ""
        for entry in (choice.logprobs.content if choice.logprobs else []):
            tokens += entry.token
            assert len(entry.top_logprobs) == 10
    assert tokens == text


def test_context_overflow(server):
    answer = server.post("/v1/completions", {"prompt": "x " * 5000})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_same_seed_and_other_seeds(server):
    def ask(seed):
        return server.post("/v1/completions", {"prompt": "Once", "max_tokens": 20, "seed": seed,
                                               "temperature": 1.0}).json()["choices"][0]["text"]
    assert ask(42) == ask(42)
    assert len({ask(seed) for seed in range(5)}) > 1
