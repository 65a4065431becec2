"""llama.cpp's own paths, as its server's tests and its web page use them."""

import json

import pytest


def complete(server, **fields):
    answer = server.post("/completion", {"prompt": "Once upon a time", "n_predict": 12, **fields})
    assert answer.status_code == 200, answer.text
    return answer


def test_completion(server):
    body = complete(server, temperature=0, return_tokens=True).json()
    assert body["content"].startswith(", there was a little girl")
    assert body["timings"]["predicted_n"] == len(body["tokens"]) == 12
    assert body["stop_type"] == "limit" and body["truncated"] is False
    assert body["prompt"].endswith("Once upon a time")


def test_stream(server):
    whole = complete(server, temperature=0).json()
    events = [json.loads(line[6:]) for line in complete(
        server, temperature=0, stream=True, n_probs=3).text.splitlines() if line]
    assert "".join(event["content"] for event in events) == whole["content"]
    assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
    for event in events[:-1]:
        assert len(event["completion_probabilities"]) == len(event["tokens"]) == 1
        assert len(event["completion_probabilities"][0]["top_logprobs"]) == 3


def test_tokens_texts_and_both(server):
    tokens = server.post("/tokenize", {"content": "Once", "add_special": True}).json()["tokens"]
    bodies = complete(server, prompt=[tokens, "Once", [*tokens, " upon"]], temperature=0).json()
    assert bodies[0]["content"] == bodies[1]["content"]
    pieces = server.post("/tokenize", {"content": "媽 🤗", "with_pieces": True}).json()["tokens"]
    assert all(token["id"] > 0 and len(token["piece"]) > 0 for token in pieces)
    back = server.post("/detokenize", {"tokens": tokens}).json()["content"]
    assert back.strip() == "Once"


@pytest.mark.parametrize("grammar, expected", [
    ('root ::= "a" | "b"', ("a", "b")), ('root ::= [0-9]{2} "!"', None)])
def test_grammar(server, grammar, expected):
    content = complete(server, grammar=grammar).json()["content"]
    assert content in expected if expected else content.endswith("!") and len(content) == 3


def test_cache_prompt(server):
    text = "The dog ran to the park and saw a cat. " * 20
    complete(server, prompt=text)
    assert complete(server, prompt=text).json()["timings"]["cache_n"] > 0
    assert complete(server, prompt=text, cache_prompt=False).json()["timings"]["cache_n"] == 0


def test_what_the_server_tells(server):
    props = server.get("/props")
    assert props["total_slots"] == len(server.get("/slots")) == 32
    assert "chat_template" in props
    assert server.get("/models")["data"][0]["id"] == "stories"
    prompt = server.post("/apply-template", {"messages": [{"role": "user", "content": "Hi"}]})
    assert prompt.json() == {"prompt": "USER: Hi\nASSISTANT:"}
    assert server.post("/chat/completions", {"messages": [
        {"role": "user", "content": "Hi"}], "max_tokens": 2}).status_code == 200


def test_errors(server):
    refused = server.post("/completion", {"prompt": "x " * 5000})
    assert refused.json()["error"]["type"] == "exceed_context_size_error"
    refused = server.post("/infill", {"input_prefix": "a", "input_suffix": "b"})
    assert refused.status_code == 400 and "filled in" in refused.json()["error"]["message"]
