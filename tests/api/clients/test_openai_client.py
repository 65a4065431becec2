"""The `openai` package, unchanged."""

import concurrent.futures
import json
import socket
import time

import openai
import pytest


@pytest.fixture(scope="module")
def client(server):
    return openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)


CHAT = {"model": "stories", "messages": [{"role": "user", "content": "Once upon a time"}],
        "temperature": 0, "max_tokens": 12}


def test_models(client):
    assert [m.id for m in client.models.list()] == ["stories"]
    assert client.models.retrieve("stories").id == "stories"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_completion(client):
    answer = client.completions.create(model="stories", prompt="Once upon a time", max_tokens=10,
                                       temperature=0)
    assert answer.choices[0].text.startswith(", there was a little girl")
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 10
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 10
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0


def test_completion_keeps_the_leading_space(client):
    answer = client.completions.create(model="stories", prompt="Once", max_tokens=4, temperature=0)
    assert answer.choices[0].text.startswith(" upon")


def test_completion_of_lists(client):
    texts = client.completions.create(model="stories", prompt=["Once upon", "The dog"], n=2,
                                      max_tokens=4, seed=1)
    assert [c.index for c in texts.choices] == [0, 1, 2, 3]
    ids = client.completions.create(model="stories", prompt=[1, 403, 407], max_tokens=4)
    assert ids.usage.prompt_tokens == 3
    lists = client.completions.create(model="stories", prompt=[[1, 403], [1, 407, 261]],
                                      max_tokens=4)
    assert len(lists.choices) == 2 and lists.usage.prompt_tokens == 5


def test_embeddings(client):
    # The client asks for base64 and decodes it.
    answer = client.embeddings.create(model="stories", input=["a cat", "a dog", "a cat"])
    first, second, third = [item.embedding for item in answer.data]
    assert first == third != second
    assert sum(x * x for x in first) == pytest.approx(1, abs=1e-5)
    assert answer.usage.total_tokens == answer.usage.prompt_tokens > 0
    numbers = client.embeddings.create(model="stories", input="a cat", encoding_format="float")
    assert numbers.data[0].embedding == pytest.approx(first, abs=1e-7)
    short = client.embeddings.create(model="stories", input="a cat", dimensions=16)
    assert len(short.data[0].embedding) == 16
    many = client.embeddings.create(model="stories", input=[f"text {i}" for i in range(600)])
    assert len(many.data) == 600, "more than the engine's queue holds"
    with pytest.raises(openai.BadRequestError, match="dimensions"):
        client.embeddings.create(model="stories", input="a cat", dimensions=100000)


def test_completion_stream(client):
    arguments = dict(model="stories", prompt="Once upon a time", max_tokens=20, temperature=0)
    whole = client.completions.create(**arguments)
    chunks = list(client.completions.create(**arguments, stream=True,
                                            stream_options={"include_usage": True}))
    assert "".join(c.choices[0].text for c in chunks if c.choices) == whole.choices[0].text
    assert chunks[-1].usage.completion_tokens == 20
    assert chunks[-2].choices[0].finish_reason == "length"


def test_completion_stop_and_echo_and_logprobs(client):
    answer = client.completions.create(model="stories", prompt="Once upon a time", max_tokens=20,
                                       temperature=0, stop=[" girl", "zz"], echo=True, logprobs=2)
    choice = answer.choices[0]
    assert choice.text == "Once upon a time, there was a little"
    assert choice.finish_reason == "stop"
    assert choice.model_extra["matched_stop"] == " girl"
    assert choice.logprobs.token_logprobs[0] is None
    assert len(choice.logprobs.tokens) == answer.usage.total_tokens
    for token, offset in zip(choice.logprobs.tokens, choice.logprobs.text_offset):
        if offset and not token.startswith("bytes:"):
            assert (choice.text + " girl")[offset:].startswith(token)


def test_scoring_by_echo_alone(client):
    answer = client.completions.create(model="stories", prompt="Once upon a time", max_tokens=0,
                                       echo=True, logprobs=1)
    assert answer.choices[0].text == "Once upon a time"
    assert all(p <= 0 for p in answer.choices[0].logprobs.token_logprobs[1:])
    assert answer.usage.completion_tokens == 0


def test_chat(client):
    answer = client.chat.completions.create(**CHAT, n=2)
    assert len(answer.choices) == 2
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content == answer.choices[1].message.content
    assert answer.usage.completion_tokens == 24


def test_chat_stream(client):
    whole = client.chat.completions.create(**CHAT)
    chunks = list(client.chat.completions.create(**CHAT, stream=True,
                                                 stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage or chunks[-1].usage.completion_tokens == 12


def test_chat_stream_helper(client):
    text = client.chat.completions.create(**CHAT).choices[0].message.content
    with client.chat.completions.stream(**CHAT, stop=text[5:8]) as stream:
        for _ in stream:
            pass
        choice = stream.get_final_completion().choices[0]
    assert choice.finish_reason == "stop" and choice.message.content == text[:text.find(text[5:8])]


def test_chat_logprobs(client):
    answer = client.chat.completions.create(**CHAT, logprobs=True, top_logprobs=3)
    entries = answer.choices[0].logprobs.content
    assert len(entries) == 12
    for entry in entries:
        assert len(entry.top_logprobs) == 3
        assert bytes(entry.bytes).decode(errors="replace") == entry.token
        assert entry.top_logprobs[0].logprob == entry.logprob  # greedy


def test_chat_extras(client):
    answer = client.chat.completions.create(
        **CHAT, stop="there", seed=7, logit_bias={"5": -100}, presence_penalty=0.1,
        extra_body={"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.1, "ignore_eos": True,
                    "chat_template_kwargs": {"enable_thinking": False}, "rid": "mine"})
    assert answer.id == "mine"


def test_content_parts_and_tools(client):
    answer = client.chat.completions.create(
        model="stories", max_tokens=2, temperature=0,
        messages=[{"role": "system", "content": "Tell."},
                  {"role": "user", "content": [{"type": "text", "text": "Once"}]}],
        tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
    assert answer.choices[0].message.content is not None


@pytest.mark.parametrize("change, param", [
    ({"temperature": -1}, "temperature"), ({"top_p": 0}, "top_p"), ({"n": 0}, "n"),
    ({"max_tokens": -1}, "max_tokens"), ({"stop": 7}, "stop"),
    ({"messages": []}, "messages"), ({"response_format": {"type": "xml"}},
                                     "response_format.type"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url",
                                                 "image_url": {"url": "x"}}]}]}, "messages")])
def test_bad_requests_name_what_is_wrong(client, change, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**{**CHAT, **change})
    assert refused.value.param == param
    assert refused.value.body["message"]
    assert refused.value.type == "invalid_request_error"


def test_a_prompt_beyond_the_context_is_refused_by_code(client):
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model="stories", prompt="word " * 3000, max_tokens=1)
    assert refused.value.code == "context_length_exceeded"


def test_same_seed_same_text_whatever_else_runs(client):
    def ask(seed):
        return client.completions.create(model="stories", prompt="One day", max_tokens=40,
                                         temperature=1, seed=seed).choices[0].text

    alone = [ask(seed) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        together = list(pool.map(ask, list(range(8)) * 4))
    assert together == alone * 4
    assert len(set(alone)) > 1


def wait_until_idle(server):
    deadline = time.time() + 10
    while server.figures()["num_running_reqs"] > 0:
        assert time.time() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("n", [1, 16])
def test_leaving_a_stream_ends_its_sequences(client, server, n):
    before = server.counter("sglang:generation_tokens_total")
    stream = client.completions.create(model="stories", prompt="Once", max_tokens=500, n=n,
                                       stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    wait_until_idle(server)
    assert 0 < server.counter("sglang:generation_tokens_total") - before < n * 400


def test_leaving_before_the_answer_ends_its_sequences(server):
    before = server.counter("sglang:generation_tokens_total")
    body = json.dumps({"prompt": "Once", "max_tokens": 500, "n": 32, "ignore_eos": True})
    with socket.create_connection(("127.0.0.1", server.port)) as left:
        left.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        while server.figures()["num_running_reqs"] == 0:
            time.sleep(0.001)
    wait_until_idle(server)
    assert server.counter("sglang:generation_tokens_total") - before < 32 * 400


def test_async_client(server):
    import asyncio

    async def main():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none") as client:
            answers = await asyncio.gather(*(
                client.completions.create(model="stories", prompt=f"Day {i}", max_tokens=5)
                for i in range(50)))
            assert all(a.usage.completion_tokens <= 5 for a in answers)

    asyncio.run(main())
