"""SGLang's endpoints as `requests` sees them."""

import json
import threading
import time

import pytest
import requests

GREEDY = {"temperature": 0, "max_new_tokens": 8}


def stream_of(server, body):
    with requests.post(server.url + "/generate", json={**body, "stream": True}, stream=True,
                       timeout=60) as answer:
        assert answer.status_code == 200
        for line in answer.iter_lines():
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield json.loads(line[6:])


def test_generate(server):
    body = {"text": "Once upon a time", "sampling_params": GREEDY}
    answer = server.post("/generate", body).json()
    assert answer["text"].startswith(", there was")
    assert len(answer["output_ids"]) == answer["meta_info"]["completion_tokens"] == 8


def test_stream_is_cumulative(server):
    whole = server.post("/generate", {"text": "Once", "sampling_params": GREEDY}).json()
    text = ""
    for event in stream_of(server, {"text": "Once", "sampling_params": GREEDY}):
        assert event["text"].startswith(text)
        text = event["text"]
    assert text == whole["text"]


def test_a_slow_reader_of_a_cumulative_stream_gets_all_of_its_end(server):
    body = {"text": "Once", "sampling_params": {"max_new_tokens": 480, "n": 16, "ignore_eos": True},
            "stream": True}
    last = {}
    with requests.post(server.url + "/generate", json=body, stream=True, timeout=60) as answer:
        while server.figures()["num_running_reqs"] > 0:
            time.sleep(0.05)
        for line in answer.iter_lines():
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                last[event["index"]] = event["meta_info"]
    assert len(last) == 16
    assert all(meta["completion_tokens"] == 480 for meta in last.values())


def test_batch_with_own_parameters(server):
    answers = server.post("/generate", {
        "text": ["Once", "The dog"], "rid": ["a", "b"], "return_logprob": True,
        "sampling_params": [{"max_new_tokens": 1},
                            {"max_new_tokens": 3, "ignore_eos": True}]}).json()
    assert [a["meta_info"]["completion_tokens"] for a in answers] == [1, 3]
    assert [a["meta_info"]["id"] for a in answers] == ["a", "b"]


def test_token_ids_logprob(server):
    meta = server.post("/generate", {
        "text": "Once", "sampling_params": GREEDY, "return_logprob": True, "logprob_start_len": 0,
        "token_ids_logprob": [5, 6]}).json()["meta_info"]
    assert len(meta["output_token_ids_logprobs"]) == 8
    assert [entry[1] for entry in meta["output_token_ids_logprobs"][0]] == [5, 6]
    assert meta["input_token_ids_logprobs"][0] is None


def test_score(server):
    words = {"prompt": [" time", " dog"], "add_special_tokens": False}
    ids = server.post("/tokenize", words).json()
    labels = [tokens[0] for tokens in ids["tokens"]]
    body = {"query": "Once upon a", "items": ["", "!"], "label_token_ids": labels}
    plain = server.post("/v1/score", body).json()
    soft = server.post("/v1/score", {**body, "apply_softmax": True}).json()
    assert plain["object"] == "scoring" and len(plain["scores"]) == 2
    for row in soft["scores"]:
        assert sum(row) == pytest.approx(1)
    assert plain["usage"]["completion_tokens"] == 0


def test_tokenize_and_back(server):
    tokens = server.post("/tokenize", {"prompt": "Once upon a time"}).json()
    assert tokens["count"] == len(tokens["tokens"])
    assert server.post("/detokenize", {"tokens": tokens["tokens"]}).json()["text"] == \
        "Once upon a time"


def test_abort_by_name(server):
    result = {}

    def run():
        result["answer"] = server.post("/generate", {
            "text": "Once", "rid": "to-be-ended", "sampling_params": {
                "n": 8, "max_new_tokens": 500, "ignore_eos": True}}).json()

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        assert server.post("/abort_request", {"rid": "to-be-ended"}).status_code == 200
        time.sleep(0.005)
    assert "abort" in {a["meta_info"]["finish_reason"]["type"] for a in result["answer"]}


def test_both_error_shapes(server):
    for path, body in [("/generate", {"text": "a", "sampling_params": {"top_p": 7}}),
                       ("/v1/completions", {"prompt": "a", "top_p": 7})]:
        answer = server.post(path, body)
        error = answer.json()
        assert answer.status_code == 400
        assert error["error"]["message"] == error["message"]
        assert "top_p is 7" in error["message"]
        assert error["object"] == "error" and error["code"] == 400


NUMBERS = ["-1", "0", "1e400", "NaN", "-1e300", "2147483648", "9223372036854775808",
           "18446744073709551616", '"1"', "[]", "{}", "true", "1.5"]


@pytest.mark.parametrize("field", ["temperature", "top_p", "top_k", "min_p", "n", "logprobs",
                                   "max_tokens", "min_tokens", "seed", "presence_penalty",
                                   "frequency_penalty", "repetition_penalty", "best_of", "stop",
                                   "stop_token_ids", "logit_bias", "priority", "prompt", "stream"])
def test_odd_values_are_answered_and_nothing_breaks(server, field):
    for value in NUMBERS:
        fields = {"prompt": '"Once"', "max_tokens": "2", field: value}
        body = "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"
        answer = requests.post(server.url + "/v1/completions", data=body, timeout=60)
        assert answer.status_code in (200, 400), (field, value, answer.text)
    assert server.post("/generate", {"text": "Once", "sampling_params": GREEDY}).status_code == 200


def test_too_many_stop_strings(server):
    for path, body in [("/v1/completions", {"prompt": "a", "stop": ["x"] * 10000}),
                       ("/generate", {"text": "a", "sampling_params": {"stop": ["x"] * 10000}})]:
        assert "10000" in server.post(path, body).json()["error"]["message"]


@pytest.mark.parametrize("body", [
    b"", b"{", b"[" * 100000, b'{"prompt":"a"} x', b'{"prompt":"a","prompt":"b"}',
    b'{"prompt":"\\ud800"}', b'{"prompt":"\xff"}', b'{"prompt":"a\x00"}', b"[]", b"null", b"7",
    b"{" + b",".join(b'"k%d":1' % i for i in range(100000)) + b"}"], ids=range(12))
def test_hostile_bodies(server, body):
    for path in ("/v1/completions", "/v1/chat/completions", "/generate", "/tokenize", "/detokenize",
                 "/v1/score", "/abort_request"):
        answer = requests.post(server.url + path, data=body, timeout=60)
        assert answer.status_code == 400, (path, answer.text)
        assert answer.json()["error"]["message"]
