#!/usr/bin/env python3
"""Whether one build of banyan is slower than another: interleaved pairs, ratios, 95% intervals.

    python tools/compare_builds.py OLD/banyan NEW/banyan --model DIR [--quantization int8]

Starts `banyan serve` of both builds and asks them in turn, so that what else the machine does meets
both. DIR is a Hugging Face folder; without *.safetensors in it the weights are random. For each
setting prints the median of NEW's rate over OLD's by the clock and by processor time, which
neighbours of the machine disturb less, with the interval that order statistics give (of 15 pairs,
the fourth smallest and the fourth largest hold the median in 96 of 100 cases).

Needs Python's standard library alone. Takes some ten seconds a pair for 0.6 B parameters.
"""

import argparse
import concurrent.futures
import http.client
import json
import math
import os
import pathlib
import random
import socket
import statistics
import subprocess
import time

# name: sequences at once, prompt tokens, generated tokens
SETTINGS = {
    "prompt of 512": (1, 512, 1),
    "1 sequence": (1, 8, 64),
    "32 sequences": (32, 8, 16),
    "serving: 12 requests of 200 and 40, 4 at once": (4, 200, 40),
}
REQUESTS = {"serving: 12 requests of 200 and 40, 4 at once": 12}


class Server:
    def __init__(self, banyan: str, options: list[str]):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [banyan, "serve", "--port", str(self.port), *options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self.healthy():
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {self.process.returncode}")
            time.sleep(0.2)

    def healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def generate(self, prompt: list[int], tokens: int) -> None:
        body = {
            "input_ids": prompt,
            "sampling_params": {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True},
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(
            "POST", "/generate", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status != 200:
            raise SystemExit(f"/generate answered {response.status}: {answer[:500]}")

    def processor_s(self) -> float:
        """Seconds that all threads of the server have run."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cost(server: Server, name: str, prompts: list[list[int]]) -> tuple[float, float]:
    """Seconds by the clock and of the processors for one setting."""
    at_once, _, tokens = SETTINGS[name]
    begin, processor = time.perf_counter(), server.processor_s()
    with concurrent.futures.ThreadPoolExecutor(at_once) as clients:
        list(clients.map(lambda prompt: server.generate(prompt, tokens), prompts))
    return time.perf_counter() - begin, server.processor_s() - processor


def interval(ratios: list[float]) -> tuple[float, float]:
    """What holds the median in 95 of 100 cases, by the binomial distribution of ranks."""
    n, tail, rank = len(ratios), 0.0, 0
    while tail + math.comb(n, rank) / 2**n <= 0.025:
        tail += math.comb(n, rank) / 2**n
        rank += 1
    ordered = sorted(ratios)
    rank = max(rank, 1)
    return ordered[rank - 1], ordered[-rank]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--model", required=True)
    parser.add_argument("-q", "--quantization")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--settings", help="names with ; between them, of: " + "; ".join(SETTINGS))
    args = parser.parse_args()

    names = [name.strip() for name in args.settings.split(";")] if args.settings else SETTINGS
    for name in names:
        if name not in SETTINGS:
            parser.error(f"--settings: {name!r} is none of: {'; '.join(SETTINGS)}")
    options = ["--model", args.model, "--disable-radix-cache"]
    if not list(pathlib.Path(args.model).glob("*.safetensors")):
        options += ["--load-format", "dummy"]
    if args.quantization:
        options += ["--quantization", args.quantization]
    servers = [Server(args.old, options), Server(args.new, options)]
    rng = random.Random(1)
    ratios = {name: ([], []) for name in names}
    try:
        for pair in range(-1, args.pairs):  # the first warms both up
            for name in names:
                at_once, length, _ = SETTINGS[name]
                count = REQUESTS.get(name, at_once)
                prompts = [[rng.randrange(10, 1000) for _ in range(length)] for _ in range(count)]
                order = (0, 1) if pair % 2 else (1, 0)
                costs = {which: cost(servers[which], name, prompts) for which in order}
                for kind in range(2) if pair >= 0 else ():
                    ratios[name][kind].append(costs[0][kind] / costs[1][kind])
    finally:
        for server in servers:
            server.process.terminate()
    print(f"{args.pairs} pairs of {args.model}, {args.quantization or 'as stored'}: NEW over OLD")
    for name, kinds in ratios.items():
        clock, processor = (
            "{:.3f} [{:.3f}, {:.3f}]".format(statistics.median(kind), *interval(kind))
            for kind in kinds
        )
        print(f"{name}: clock {clock}, processor time {processor}")


if __name__ == "__main__":
    main()
