#!/usr/bin/env python3
"""What streams gain where another server computes long prompts, on one machine's processors.

    python tools/measure_disaggregation.py build/release/banyan tools/shapes/qwen3-0.6b

Short streams decode while long prompts arrive, one after the other. In alternation: one server with
two threads that reads prompts in whole chunks (--prefill-step-ms 0), the same server in shorter
steps, and a decode server and a prefill server (--disaggregation-mode) with one thread each.
Prints the gaps between the streams' tokens and the time to the long prompts' first token. Weights
are random. Needs Python's standard library alone.
"""

import argparse
import copy
import random
import statistics
import threading
import time

from measure_tiers import Server


def start(options, *more: str) -> Server:
    own = copy.copy(options)
    own.serve_option = [*options.serve_option, *more]
    return Server(own, None)


def start_together(options) -> list[Server]:
    return [start(options, "--threads", "2")]


def start_whole(options) -> list[Server]:
    return [start(options, "--threads", "2", "--prefill-step-ms", "0")]


def start_apart(options) -> list[Server]:
    """The decode server is the last one."""
    prefill = start(options, "--threads", "1", "--disaggregation-mode", "prefill")
    url = f"http://127.0.0.1:{prefill.port}"
    decode = start(options, "--threads", "1", "--disaggregation-mode", "decode",
                   "--disaggregation-prefill-urls", url, "--disaggregation-min-tokens", "256")
    return [prefill, decode]


KINDS = {"whole": start_whole, "together": start_together, "apart": start_apart}


def measure(server: Server, options, seed: int) -> dict:
    rng = random.Random(seed)
    start, stop, gaps = threading.Event(), threading.Event(), []

    def stream():
        ids = [rng.randrange(1000, 60000) for _ in range(64)]
        gaps.extend(server.gaps_s(ids, stop, start))

    streams = [threading.Thread(target=stream) for _ in range(options.streams)]
    for each in streams:
        each.start()
    time.sleep(options.pause + 64 * options.streams / 50)  # until all have begun
    start.set()
    first_tokens = []
    for _ in range(options.prompts):
        ids = [rng.randrange(1000, 60000) for _ in range(options.tokens)]
        first_tokens.append(server.first_token_s(ids)[0])
        time.sleep(options.pause)
    stop.set()
    for each in streams:
        each.join()
    gaps.sort()
    return {
        "tokens": len(gaps),
        "median gap": statistics.median(gaps),
        "p99 gap": gaps[len(gaps) * 99 // 100],
        "longest gap": gaps[-1],
        "first token": statistics.median(first_tokens),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("banyan")
    parser.add_argument("model")
    parser.add_argument("--tokens", type=int, default=2048, help="of a long prompt")
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--streams", type=int, default=4)
    parser.add_argument("--pause", type=float, default=2, help="seconds between prompts")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quantization", default="")
    parser.add_argument("--serve-option", action="append", default=[])
    options = parser.parse_args()
    options.storage_size = 0
    heads = ("tokens", "median gap", "p99 gap", "longest gap", "first token")
    print(f"{'':10}" + "".join(f"{head:>13}" for head in heads))
    for seed in range(options.rounds):
        for name, start_servers in KINDS.items():
            servers = start_servers(options)
            row = measure(servers[-1], options, seed)
            tokens = row.pop("tokens")
            times = "".join(f"{1e3 * value:>10.1f} ms" for value in row.values())
            print(f"{name:10}{tokens:>13}{times}", flush=True)
            for server in servers:
                server.stop()


if __name__ == "__main__":
    main()
