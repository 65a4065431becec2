#!/usr/bin/env python3
"""What a router adds: to the time to the first token, and to streams.

    python tools/measure_router.py build/release/banyan

Workers emulate their steps (`banyan serve --emulate-steps`), so nothing is computed. First one
request after another goes to a worker, and then to the same worker through `banyan route`: how much
later does the first token come, by the length of the prompt? Then 256 streams run through a router
that has one processor to itself, while workers and clients have the other: once as fast as the goal
asks (20,000 tokens/s), once as fast as the router can. Prompts are token ids, and all are new.

Nothing else should run. Python's standard library is all it needs; two processors at least.
"""

import argparse
import contextlib
import json
import os
import pathlib
import tempfile
import time

from validate_fleet import Process, free_port, make_model, run_json


class Rig:
    """Workers, and a router over them, each on its processor."""

    def __init__(self, options, scratch, step_ms, workers, pinned, stack):
        times = scratch / f"times-{step_ms}.json"
        times.write_text(json.dumps(
            {"step_times": {"step_ms": step_ms, "row_us": 0, "decode_row_us": 0}}))
        serve = [options.banyan, "serve", str(scratch / "model"), "--load-format", "dummy",
                 "--threads", "1", "--emulate-steps", str(times), "--state-digest",
                 "--max-total-tokens", "2000000", "--max-running-requests", "256",
                 "--chunked-prefill-size", "65536"]
        self.banyan, self.processors = options.banyan, [{0}, {1}] if pinned else [None, None]
        with self.on(1):
            self.workers = [stack.enter_context(Process(serve, free_port()))
                            for _ in range(workers)]
        for worker in self.workers:
            worker.wait()
        route = [options.banyan, "route", str(scratch / "model"), "--worker-urls",
                 *(worker.url for worker in self.workers)]
        with self.on(0):
            self.router = stack.enter_context(Process(route, free_port()))
        self.router.wait()
        time.sleep(1)  # until it hears the workers' events

    @contextlib.contextmanager
    def on(self, which):
        """Processes that start here stay on one processor, where that was asked for."""
        before = os.sched_getaffinity(0)
        if self.processors[which]:
            os.sched_setaffinity(0, self.processors[which])
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def load(self, url, arguments):
        with self.on(1):
            result = run_json([self.banyan, "bench", "serving", "--json", "--base-url", url,
                               "--random-range-ratio", "1", *map(str, arguments)])
        if result["failed"]:
            raise SystemExit(f"{result['failed']} requests failed")
        return result

    def router_cpu_s(self):
        stat = pathlib.Path(f"/proc/{self.router.process.pid}/stat").read_text()
        user, system = stat.rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def measure_first_tokens(options, scratch):
    """Alternately with and without the router, so that whatever else changes hits both."""
    with contextlib.ExitStack() as stack:
        rig = Rig(options, scratch, 1, 1, False, stack)
        for tokens in (32, 1024, 8192, 32768):
            medians = {rig.workers[0].url: [], rig.router.url: []}
            for turn in range(options.turns):
                for url, found in medians.items():
                    result = rig.load(url, ["--num-prompts", 40, "--max-concurrency", 1,
                                            "--random-input-len", tokens,
                                            "--random-output-len", 2, "--seed", 2 * turn + 1
                                            + (url == rig.router.url)])
                    found.append((result["median_ttft_ms"], result["p99_ttft_ms"]))
            alone, routed = (sorted(found)[len(found) // 2] for found in medians.values())
            print(f"prompts of {tokens} tokens: first token after {alone[0]:.2f} ms (p99 "
                  f"{alone[1]:.2f}), through the router {routed[0]:.2f} ms (p99 {routed[1]:.2f}): "
                  f"{routed[0] - alone[0]:+.2f} ms")


def measure_streams(options, scratch, step_ms, backend):
    with contextlib.ExitStack() as stack:
        rig = Rig(options, scratch, step_ms, 2, True, stack)
        before = rig.router_cpu_s()
        result = rig.load(rig.router.url, ["--num-prompts", 256 * options.rounds,
                                           "--max-concurrency", 256, "--random-input-len", 32,
                                           "--random-output-len", 256, "--backend", backend])
        cpu_s = rig.router_cpu_s() - before
        tokens = result["total_output_tokens"]
        print(f"{backend}, steps of {step_ms} ms: {result['output_throughput']:.0f} tokens/s; gaps "
              f"p50 {result['median_itl_ms']:.1f}, p99 {result['p99_itl_ms']:.1f} ms; the router "
              f"takes {1e6 * cpu_s / tokens:.1f} us of a processor for a token, "
              f"{100 * cpu_s / result['duration']:.0f}% of one")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("banyan", help="the program")
    parser.add_argument("--turns", type=int, default=3, help="of first tokens")
    parser.add_argument("--rounds", type=int, default=4, help="answers of each stream")
    parser.add_argument("--only", choices=["first-tokens", "streams"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        make_model(scratch / "model")
        if options.only != "streams":
            measure_first_tokens(options, scratch)
        if options.only != "first-tokens":
            for step_ms in (12, 3):
                for backend in ("sglang", "openai-completions"):
                    measure_streams(options, scratch, step_ms, backend)


if __name__ == "__main__":
    main()
