"""Banyan under Ray: two replicas of which one is killed, and files of prompts that are resumed.

Skipped where Ray is not installed: `tests/python/run --ray` installs it, 300 MB with what it needs.
"""

import asyncio
import json
import os
import pathlib
import signal
import threading
import time
import types

import pytest

OURS = f"BANYAN_RAY_TEST={os.getpid()}"  # in the environment of all that this test starts
os.environ[OURS.split("=")[0]] = OURS.split("=")[1]
# A slow machine may take long to start a process of Ray.
os.environ.update(RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S="120", RAY_AUTH_MODE="disabled",
                  RAY_SERVE_PROXY_HEALTH_CHECK_TIMEOUT_S="120")
ray = pytest.importorskip("ray", reason="ray is not installed; see tests/python/run --ray")

import requests  # noqa: E402: only where there is Ray
from ray import serve  # noqa: E402
from ray.exceptions import RayActorError  # noqa: E402

from banyan.ray import batch  # noqa: E402
from banyan.ray.once import once  # noqa: E402
from banyan.ray.scaling import QueuedTokensPolicy  # noqa: E402
from banyan.ray.serving import Settings, build  # noqa: E402

PORT = 18265
URL = f"http://127.0.0.1:{PORT}"
ENGINE = {"threads": 1, "max_total_tokens": 16384, "log_level": "warn"}


@pytest.fixture(scope="module")
def cluster():
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False,
             object_store_memory=100 << 20)
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def application(cluster, nano):
    """Two replicas, always."""
    serve.start(http_options={"port": PORT, "host": "127.0.0.1"})
    serve.run(build(Settings(model_path=nano, min_replicas=2, max_replicas=2, engine=ENGINE)))
    yield
    serve.shutdown()


def pids(name):
    """Of this test's actors of a class, whose processes Ray gives a title."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            title = (folder / "cmdline").read_text()
            own = OURS.encode() in (folder / "environ").read_bytes()
        except OSError:  # it has ended
            continue
        if own and title.startswith("ray::") and name in title:
            found.append(int(folder.name))
    return found


def generate(number, tokens=64, **more):
    body = {"text": f"Once upon a time, number {number}",
            "sampling_params": {"max_new_tokens": tokens, "sampling_seed": number,
                                "ignore_eos": True}, **more}
    return requests.post(URL + "/generate", json=body, timeout=120, stream=bool(more))


def streamed(number, tokens):
    """The texts of a stream's events, and whether it came to its end."""
    lines = [line[6:] for line in generate(number, tokens, stream=True).iter_lines() if line]
    return [json.loads(line)["text"] for line in lines[:-1]], lines[-1] == b"[DONE]"


def test_a_killed_replica_loses_no_request(application):
    """Streams of both replicas go on with the same text, each character once."""
    expected = [generate(number, 300).json()["text"] for number in range(8)]
    answers = [None] * len(expected)

    def ask(number):
        answers[number] = streamed(number, 300)

    threads = [threading.Thread(target=ask, args=[number]) for number in range(len(expected))]
    for thread in threads:
        thread.start()
    time.sleep(0.4)
    victims = pids("BanyanWorker")
    assert len(victims) == 2
    os.kill(victims[0], signal.SIGKILL)
    for thread in threads:
        thread.join()
    for texts, ended in answers:
        assert ended and all(late.startswith(early) for early, late in zip(texts, texts[1:]))
    assert [texts[-1] for texts, _ in answers] == expected
    assert generate(3, 300).json()["text"] == expected[3]  # the other one, or its successor


def test_openai_clients_are_answered(application):
    body = {"prompt": "Once", "max_tokens": 8, "seed": 5, "ignore_eos": True}
    answer = requests.post(URL + "/v1/completions", json=body, timeout=60).json()
    assert answer["usage"]["completion_tokens"] == 8
    assert answer["choices"][0]["finish_reason"] == "length"
    lines = requests.post(URL + "/v1/completions", json={**body, "stream": True}, timeout=60,
                          stream=True).iter_lines()
    parts = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    text = "".join(part["choices"][0]["text"] for part in parts)
    assert text == answer["choices"][0]["text"]
    assert parts[-1]["usage"] == answer["usage"]


@pytest.mark.parametrize("path, body, status, word", [
    ("/v1/completions", {"prompt": "x", "logprobs": 1}, 400, "logprobs"),
    ("/v1/completions", {"prompt": "x", "n": 2}, 400, "n must be 1"),
    ("/generate", {}, 400, "exactly one of text and input_ids"),
    ("/generate", {"text": "x", "sampling_params": {"temperatur": 1}}, 400, "temperatur"),
    ("/generate", {"input_ids": [1 << 20]}, 400, ""),
    ("/v1/chat/completions", {}, 404, "/v1/completions"),
])
def test_what_is_wrong_with_a_request_is_said(application, path, body, status, word):
    answer = requests.post(URL + path, json=body, timeout=60)
    assert answer.status_code == status and word in answer.json()["error"]["message"]


def context(queued, requests_now):
    return types.SimpleNamespace(aggregated_metrics={"queued_tokens": queued},
                                 total_num_requests=requests_now)


def test_replicas_follow_queued_tokens():
    policy = QueuedTokensPolicy(target_queued_tokens=1000, requests_per_replica=8)
    assert policy(context({}, 0))[0] == 0  # Ray Serve raises it to min_replicas
    assert policy(context({"a": 0.0}, 3))[0] == 1
    assert policy(context({"a": 30000.0}, 1))[0] == 30  # one long prompt counts as what it is
    assert policy(context({"a": 900.0, "b": 1200.0}, 2))[0] == 3
    assert policy(context({"a": 10.0}, 40))[0] == 5


def test_a_queue_of_tokens_starts_replicas(cluster, nano):
    serve.shutdown()  # the application of the tests above
    serve.start(http_options={"port": PORT, "host": "127.0.0.1"})
    serve.run(build(Settings(model_path=nano, max_replicas=2, requests_per_replica=4,
                             target_queued_tokens=300, upscale_delay_s=0.5, engine=ENGINE)))
    try:
        assert len(pids("BanyanWorker")) == 1
        stop = threading.Event()

        def ask(number):
            while not stop.is_set():
                generate(number, 200)

        threads = [threading.Thread(target=ask, args=[number]) for number in range(40)]
        for thread in threads:
            thread.start()
        end = time.time() + 60
        while len(pids("BanyanWorker")) < 2 and time.time() < end:
            time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
        assert len(pids("BanyanWorker")) == 2
    finally:
        serve.shutdown()


def pieces(text, sizes, lost_at=None):
    """An attempt: the text in pieces; lost before the piece `lost_at`."""
    async def attempt():
        begin = 0
        for i, size in enumerate(sizes):
            if i == lost_at:
                raise RayActorError()
            end = begin + size
            reason = {"type": "stop"} if end >= len(text) else None
            yield {"text": text[begin:end], "meta_info": {"finish_reason": reason}}
            begin = end
    return attempt


def collect(attempts, limit=3):
    rest = iter(attempts)

    async def run():
        return [piece["text"] async for piece in once(lambda: next(rest)(), limit)]
    return asyncio.run(run())


def test_each_character_comes_once_whatever_is_lost():
    text = "abcdefghij"
    whole = pieces(text, [3, 3, 4])
    assert collect([whole]) == ["abc", "def", "ghij"]
    assert collect([pieces(text, [4, 4, 2], lost_at=0), whole]) == ["abc", "def", "ghij"]
    assert collect([pieces(text, [4, 4, 2], lost_at=1), whole]) == ["abcd", "ef", "ghij"]
    assert collect([pieces(text, [4, 4, 2], lost_at=2), pieces(text, [2, 8], lost_at=1),
                    pieces(text, [9, 1])]) == ["abcd", "efgh", "i", "j"]


def test_what_cannot_go_on_is_an_error():
    with pytest.raises(RuntimeError, match="another text"):
        collect([pieces("abcdef", [4, 2], lost_at=1), pieces("abXdef", [6])])
    lost = pieces("abcdef", [4, 2], lost_at=1)
    with pytest.raises(RayActorError):
        collect([lost, lost, lost], limit=2)


@pytest.fixture
def prompts(tmp_path):
    rows = [{"id": f"row {i}", "prompt": f"A story about {i} cats"} for i in range(40)]
    rows[7]["sampling_params"] = {"max_new_tokens": 3}
    rows[9]["prompt"] = "word " * 30000  # longer than the context
    path = tmp_path / "prompts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answer(prompts, folder, nano):
    return batch.answer(str(prompts), str(folder), nano, engines=2, batch_size=4, engine=ENGINE,
                        sampling_params={"max_new_tokens": 12, "ignore_eos": True})


def by_id(folder):
    rows = [json.loads(line) for file in pathlib.Path(folder).glob("answers-*.jsonl")
            for line in file.read_text().splitlines()]
    assert len({row["id"] for row in rows}) == len(rows), "a row is there twice"
    return {row["id"]: row for row in rows}


def test_a_file_is_answered_and_resumed(cluster, prompts, nano, tmp_path):
    folder = tmp_path / "answers"
    assert answer(prompts, folder, nano) == {"answered": 39, "failed": 1, "skipped": 0}
    whole = by_id(folder)
    assert len(whole) == 40 and "error" in whole["row 9"]
    assert whole["row 7"]["completion_tokens"] == 3
    assert whole["row 8"]["completion_tokens"] == 12 and whole["row 8"]["text"]
    # As if it had been stopped: some batches are missing, and a file was never finished.
    files = sorted(folder.glob("answers-*.jsonl"))
    gone = {json.loads(line)["id"] for file in files[:4] for line in file.read_text().splitlines()}
    for file in files[:4]:
        file.unlink()
    (folder / ".unfinished").write_text('{"id": "row 1", "te')
    asked = len(gone | {"row 9"})
    assert answer(prompts, folder, nano) == {
        "answered": asked - 1, "failed": 1, "skipped": 40 - asked}
    again = {}
    for file in folder.glob("answers-*.jsonl"):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            again[row["id"]] = row
    texts = {name: row.get("text") for name, row in whole.items()}
    assert {name: row.get("text") for name, row in again.items()} == texts  # the same seeds


def test_a_killed_engine_loses_no_row(cluster, prompts, nano, tmp_path):
    """Its batch is done by another one, or by its successor."""
    killed = []

    def kill():
        while not killed:
            for pid in pids("Answerer")[:1]:
                if list((tmp_path / "answers").glob("answers-*")):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            time.sleep(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    batch.answer(str(prompts), str(tmp_path / "answers"), nano, engines=2, batch_size=2,
                 engine=ENGINE, sampling_params={"max_new_tokens": 200, "ignore_eos": True})
    killed.append(None)
    thread.join()
    assert killed[0] is not None
    assert len(by_id(tmp_path / "answers")) == 40


def test_rows_without_an_id_get_one_by_what_they_ask():
    one, same = {"prompt": "a"}, {"prompt": "a", "id": None}
    assert batch.row_id(one) == batch.row_id(same) != batch.row_id({"prompt": "b"})
    assert batch.row_id({"prompt": "a", "sampling_params": {"n": 1}}) != batch.row_id(one)
    assert batch.row_id({"prompt": "a", "id": 7}) == "7"
