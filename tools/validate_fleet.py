#!/usr/bin/env python3
"""Is `banyan bench fleet` to be believed? Real workers beside simulated ones, on one trace.

    python tools/validate_fleet.py build/release/banyan conversation_trace.jsonl

Plays a slice of a Mooncake trace twice: by `banyan bench serving` through `banyan route` to workers
that emulate their steps (`banyan serve --emulate-steps`), and by `banyan bench fleet` with the same
step times. Prints both, and ends with 1 unless hits differ by at most a point, the mean time to the
first token by 10% and its 99th percentile by 20%.

Step times are of a made-up machine, or of --step-times FILE (`banyan bench one-batch --json`).
Needs Python's standard library alone. Nothing else should run: the workers, the router and the load
share the machine, and time that they lack is time that the simulation does not know of.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
    "vocab_size": 3072, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 262144,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "torch_dtype": "float32"}
TOKENIZER = pathlib.Path(__file__).parent.parent / "models" / "banyan-nano"
LIMITS = {"hits": 0.01, "ttft_mean_s": 0.10, "ttft_p99_s": 0.20}  # hits: points; relative


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Process:
    """A server of the program under test, ended at the end."""

    def __init__(self, command: list[str], port: int):
        self.url = f"http://127.0.0.1:{port}"
        self.command = command + ["--port", str(port), "--log-level", "warn"]
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)

    def wait(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(self.command)} ended with {self.process.returncode}")
            try:
                with urllib.request.urlopen(self.url + "/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"{' '.join(self.command)} is not ready after a minute")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def run_json(command: list[str]) -> dict:
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    return json.loads(done.stdout)


def make_model(folder: pathlib.Path):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(MODEL))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / name, folder)


def simulate(options, trace: pathlib.Path, times: pathlib.Path, pace: list[str]) -> dict:
    command = [options.banyan, "bench", "fleet", "--json", "--trace", str(trace)]
    command += ["--policy", options.policy, "--workers", str(options.workers)]
    command += ["--step-times", str(times), "--capacity-tokens", str(options.capacity_tokens)]
    command += ["--chunked-prefill-size", str(options.chunked_prefill_size)]
    command += ["--max-running-requests", str(options.max_running_requests)] + pace
    return run_json(command)


def spread(requests: list[dict]) -> list[dict]:
    """Spreads requests of one timestamp evenly until the next one.

    The trace has a timestamp each 3 s. In which order a router gets requests that are sent at one
    moment is chance, and with it who gets which.
    """
    stamps = sorted({request["timestamp"] for request in requests})
    following = dict(zip(stamps, stamps[1:] + [2 * stamps[-1] - stamps[-2]]))
    counts = collections.Counter(request["timestamp"] for request in requests)
    seen: collections.Counter = collections.Counter()
    for request in requests:
        stamp = request["timestamp"]
        request["timestamp"] += (following[stamp] - stamp) * seen[stamp] / counts[stamp]
        seen[stamp] += 1
    return requests


def cut_trace(options, whole: pathlib.Path, times: pathlib.Path, cut: pathlib.Path):
    """The first requests, as fast as the load asks for."""
    lines = whole.read_text().splitlines()[:options.requests]
    requests = spread([json.loads(line) for line in lines])
    cut.write_text("".join(json.dumps(request) + "\n" for request in requests))
    speedup = simulate(options, cut, times, ["--load", str(options.load)])["speedup"]
    for request in requests:
        request["timestamp"] /= speedup
    cut.write_text("".join(json.dumps(request) + "\n" for request in requests))
    print(f"{len(requests)} requests in {requests[-1]['timestamp'] / 1000:.0f} s")


def emulate(options, model: pathlib.Path, trace: pathlib.Path, times: pathlib.Path) -> dict:
    serve = [options.banyan, "serve", str(model), "--load-format", "dummy", "--threads", "1"]
    serve += ["--emulate-steps", str(times), "--max-total-tokens", str(options.capacity_tokens)]
    serve += ["--chunked-prefill-size", str(options.chunked_prefill_size)]
    serve += ["--max-running-requests", str(options.max_running_requests)]
    serve += ["--max-queued-requests", "65536"] + options.serve_option
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(Process(serve, free_port())) for _ in range(options.workers)]
        for worker in workers:
            worker.wait()
        route = [options.banyan, "route", str(model), "--policy", options.policy]
        route += ["--queue-size", "65536", "--queue-timeout-secs", "600", "--worker-urls"]
        router = Process(route + [worker.url for worker in workers], free_port())
        stack.enter_context(router).wait()
        load = [options.banyan, "bench", "serving", "--json", "--base-url", router.url]
        load += ["--dataset", "mooncake", str(trace), "--num-prompts", str(options.requests)]
        return run_json(load + ["--warmup-requests", "0"])


def compare(real: dict, simulated: dict) -> bool:
    """Prints the figures of both; whether they are near enough."""
    if real["failed"] or simulated["lost"]:
        print(f"{real['failed']} requests failed, {simulated['lost']} were lost")
        return False
    pairs = {"hits": (real["total_cached_tokens"] / real["total_input_tokens"],
                      simulated["hit_rate"]),
             "ttft_mean_s": (real["mean_ttft_ms"] / 1000, simulated["ttft_mean_s"]),
             "ttft_p99_s": (real["p99_ttft_ms"] / 1000, simulated["ttft_p99_s"]),
             "latency_mean_s": (real["mean_e2e_latency_ms"] / 1000, simulated["latency_mean_s"])}
    near = True
    print(f"{'':16}{'workers':>10}{'simulated':>11}{'difference':>12}{'allowed':>9}")
    for name, (a, b) in pairs.items():
        difference = b - a if name == "hits" else b / a - 1
        limit = LIMITS.get(name)
        near = near and (limit is None or abs(difference) <= limit)
        allowed = f"{limit:.0%}" if limit else ""
        print(f"{name:16}{a:10.4f}{b:11.4f}{difference:+12.2%}{allowed:>9}")
    return near


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("banyan", help="the program")
    parser.add_argument("trace", type=pathlib.Path, help="a Mooncake trace")
    parser.add_argument("--requests", type=int, default=600, help="of its beginning")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--policy", default="round_robin", help="one that both know")
    parser.add_argument("--load", type=float, default=0.6, help="of the workers, uncached")
    parser.add_argument("--capacity-tokens", type=int, default=1_000_000, help="of a worker")
    parser.add_argument("--chunked-prefill-size", type=int, default=2048)
    parser.add_argument("--max-running-requests", type=int, default=64)
    parser.add_argument("--step-times", type=pathlib.Path, help="`bench one-batch --json`'s file")
    parser.add_argument("--serve-option", action="append", default=[], help="for the workers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        times = options.step_times or scratch / "times.json"
        if options.step_times is None:
            made_up = {"step_ms": 10, "row_us": 25, "decode_row_us": 100}
            times.write_text(json.dumps({"step_times": made_up}))
        make_model(scratch / "model")
        cut_trace(options, options.trace, times, scratch / "trace.jsonl")
        simulated = simulate(options, scratch / "trace.jsonl", times, ["--speedup", "1"])
        real = emulate(options, scratch / "model", scratch / "trace.jsonl", times)
        return 0 if compare(real, simulated["results"][0]) else 1


if __name__ == "__main__":
    sys.exit(main())
