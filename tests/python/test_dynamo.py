"""Banyan workers as engines of Dynamo: its own frontend and router in front of two of them.

Skipped where Dynamo is not installed: `tests/python/run --dynamo` installs it (80 MB).
"""

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

pytest.importorskip("dynamo.frontend", reason="no ai-dynamo; see tests/python/run --dynamo")

from dynamo.llm.exceptions import InvalidArgument  # noqa: E402: only where there is Dynamo
from serving import ServingProgram, free_port  # noqa: E402

from banyan.dynamo.request import completion_of  # noqa: E402

PAGE = 16
LONG = "Tell me a story about a cat who lost her key near the forest. " * 12


def test_a_request_becomes_a_completion_with_token_ids():
    body = completion_of({
        "token_ids": [5, 6], "sampling_options": {"temperature": 0.5, "n": 1, "top_p": None,
                                                  "guided_decoding": {"regex": "a+"}},
        "stop_conditions": {"min_tokens": 2, "stop": ["x"], "stop_token_ids_hidden": [2],
                            "stop_token_ids": [2, 3]},
        "output_options": {"logprobs": 1, "skip_special_tokens": False}}, 100)
    assert body == {"prompt": [5, 6], "stream": True, "return_token_ids": True, "max_tokens": 98,
                    "temperature": 0.5, "min_tokens": 2, "stop": ["x"], "stop_token_ids": [2, 3],
                    "structured_outputs": {"regex": "a+"}, "logprobs": 0,
                    "skip_special_tokens": False}


@pytest.mark.parametrize("options", [
    {"sampling_options": {"n": 2}}, {"sampling_options": {"use_beam_search": True}},
    {"output_options": {"logprobs": 2}}, {"output_options": {"prompt_logprobs": 1}}])
def test_what_is_not_supported_is_refused(options):
    with pytest.raises(InvalidArgument):
        completion_of({"token_ids": [5], **options}, 100)


class Cell:
    """Two workers, each with its component, and Dynamo's frontend."""

    def __init__(self, model, folder, stack):
        self.url = f"http://127.0.0.1:{free_port()}"
        self.environment = os.environ | {
            "DYN_DISCOVERY_BACKEND": "file", "DYN_FILE_KV": str(folder),
            "DYN_REQUEST_PLANE": "tcp", "DYN_EVENT_PLANE": "zmq"}
        self.workers, self.components = [], []
        for _ in range(2):
            port = free_port()
            publish = {"enable_kv_cache_events": True, "publisher": "zmq",
                       "endpoint": f"tcp://*:{port}"}
            worker = ServingProgram(model, "--threads", "1", "--served-model-name", "nano",
                                    "--page-size", str(PAGE), "--kv-events-config",
                                    json.dumps(publish))
            stack.callback(worker.kill)
            self.workers.append(worker)
            self.components.append(self.start(stack, "banyan.dynamo", "--url", worker.url,
                                              "--kv-events", f"tcp://127.0.0.1:{port}"))
        self.start(stack, "dynamo.frontend", "--http-port", self.url.rsplit(":", 1)[1],
                   "--router-mode", "kv", "--migration-limit", "3")

    def start(self, stack, module, *arguments):
        process = subprocess.Popen([sys.executable, "-m", module, *arguments],
                                   env=self.environment)
        stack.callback(process.wait)
        stack.callback(process.kill)
        return process

    def ask(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.read().decode()

    def chat(self, content, **options):
        body = {"model": "nano", "messages": [{"role": "user", "content": content}],
                "temperature": 0, "max_tokens": 24} | options
        return self.ask("/v1/chat/completions", body)

    def answers(self):
        with contextlib.suppress(OSError):
            self.chat("hi", max_tokens=1)
            return True
        return False

    def cached_tokens(self):
        def of(worker):
            with urllib.request.urlopen(worker.url + "/worker/info", timeout=5) as answer:
                return json.load(answer)["cached_tokens"]
        return [of(worker) for worker in self.workers]


def until(condition, seconds=60):
    deadline = time.time() + seconds
    while not condition():
        assert time.time() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def cell(nano, tmp_path_factory):
    if "BANYAN_PROGRAM" not in os.environ:
        pytest.skip("BANYAN_PROGRAM names no program")
    with contextlib.ExitStack() as stack:
        cell = Cell(nano, tmp_path_factory.mktemp("discovery"), stack)
        until(cell.answers)
        yield cell


def text_of(stream):
    events = [json.loads(line[6:]) for line in stream.splitlines()
              if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or ""
                   for event in events for choice in event["choices"])


def test_answers_are_those_of_the_worker(cell):
    mine = json.loads(cell.chat("Tell me a story."))["choices"][0]
    body = {"messages": [{"role": "user", "content": "Tell me a story."}], "temperature": 0,
            "max_tokens": 24}
    request = urllib.request.Request(cell.workers[0].url + "/v1/chat/completions",
                                     json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        direct = json.load(answer)["choices"][0]
    assert mine["message"]["content"] == direct["message"]["content"]
    assert mine["finish_reason"] == direct["finish_reason"] == "length"
    assert text_of(cell.chat("Tell me a story.", stream=True)) == direct["message"]["content"]


def test_grammars_stops_and_logprobs_arrive(cell):
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"],
              "additionalProperties": False}
    answer = json.loads(cell.chat("hi", max_tokens=60, logprobs=True, response_format={
        "type": "json_schema", "json_schema": {"name": "x", "schema": schema}}))
    choice = answer["choices"][0]
    assert set(json.loads(choice["message"]["content"])) == {"age"}
    assert all(entry["logprob"] <= 0 for entry in choice["logprobs"]["content"])
    stopped = json.loads(cell.chat("hi", stop=["can"]))["choices"][0]
    assert stopped["finish_reason"] == "stop" and "can" not in stopped["message"]["content"][:-3]


def test_the_error_of_a_refusal_arrives(cell):
    with pytest.raises(urllib.error.HTTPError) as refused:
        cell.chat("hi", logprobs=True, top_logprobs=3)
    assert refused.value.code == 400 and "logprobs is 3" in refused.value.read().decode()


def test_the_router_of_dynamo_finds_prefixes_by_our_events(cell):
    cell.chat(LONG)
    time.sleep(1)  # until the events have arrived; else the second try finds them

    def all_go_to_one():
        before = cell.cached_tokens()
        for _ in range(8):  # by chance: once in 128
            cell.chat(LONG)
        gained = [after - b for after, b in zip(cell.cached_tokens(), before)]
        return min(gained) == 0 and max(gained) >= 8 * 10 * PAGE

    assert all_go_to_one() or all_go_to_one()


def test_a_component_ends_with_its_worker(cell):
    cell.workers[0].kill()
    cell.components[0].wait(timeout=60)
    until(cell.answers)  # by the other one
    assert cell.components[1].poll() is None
