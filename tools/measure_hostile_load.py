#!/usr/bin/env python3
"""What a server makes of clients that mean it harm: waiting times of others, and memory.

    python tools/measure_hostile_load.py build/release/banyan [MODEL]

Starts `banyan serve` and prints

1. the time of a plain completion alone, and while 30 clients ask for regexes of 20,000
   alternatives, each its own, as medians over completions;
2. resident memory at the start, at its highest and at rest after each round of hostile requests:
   such regexes, choices of 1 MB, schemas of 20,000 properties, prompts that fill the context,
   500 idle connections; then after two minutes without requests, with the parts that /metrics
   names. A server that leaks grows from round to round.

Needs Python's standard library alone. Takes about four minutes.
"""

import argparse
import concurrent.futures
import http.client
import json
import pathlib
import random
import re
import socket
import statistics
import subprocess
import time

ROUNDS = 4
REST_S = 120
CLIENTS = 30


class Server:
    def __init__(self, banyan: str, model: str):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [banyan, "serve", "--model", model, "--port", str(self.port)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while self.status("GET", "/health") != 200:
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {self.process.returncode}")
            time.sleep(0.1)

    def status(self, method: str, path: str, body=None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(
                method, path, json.dumps(body), {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            response.read()
            return response.status
        except OSError:
            return 0
        finally:
            connection.close()

    def memory_parts(self) -> dict[str, float]:
        """MB by part, from /metrics."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        parts = re.findall(r'^banyan:memory_bytes\{.*part="(\w+)".*\} (\S+)$', text, re.MULTILINE)
        return {part: float(value) / 2**20 for part, value in parts}

    def complete(self, **fields) -> int:
        body = {"prompt": "Once upon a time", "max_tokens": 32, "temperature": 0}
        return self.status("POST", "/v1/completions", body | fields)

    def memory_kb(self, name: str) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(f"{name}:")[1].split()[0])


def word(random_: random.Random, length: int) -> str:
    return "".join(random_.choices("abcdefghijklmnopqrstuvwxyz", k=length))


def slow_regex(seed: int) -> dict:
    r = random.Random(seed)
    return {"regex": "|".join(f"{word(r, 5)}[a-z]+{word(r, 5)}" for _ in range(20_000))}


def large_choice(seed: int) -> dict:
    r = random.Random(seed)
    return {"guided_choice": [word(r, 20) for _ in range(45_000)]}


def large_schema(seed: int) -> dict:
    r = random.Random(seed)
    properties = {word(r, 8): {"type": "string"} for _ in range(20_000)}
    return {"guided_json": {"type": "object", "properties": properties}}


def long_prompt(seed: int) -> dict:
    r = random.Random(seed)
    return {"prompt": " ".join(word(r, 3) for _ in range(300)), "n": 8, "temperature": 1}


def plain_times(server: Server, until) -> list[float]:
    times = []
    while not until(times):
        begin = time.perf_counter()
        status = server.complete()
        if status != 200:
            raise SystemExit(f"a plain completion was answered with {status}")
        times.append(time.perf_counter() - begin)
    return times


def measure_waiting(server: Server) -> None:
    alone = plain_times(server, lambda times: len(times) == 40)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        hostile = [
            pool.submit(lambda s=s: server.complete(**slow_regex(s))) for s in range(CLIENTS)
        ]
        time.sleep(1)
        beside = plain_times(server, lambda _: all(h.done() for h in hostile))
    answers = sorted({h.result() for h in hostile})
    if not beside:
        raise SystemExit("the regexes were compiled before a plain completion began")
    print(f"plain completion alone: {1e3 * statistics.median(alone):.1f} ms")
    print(
        f"beside {CLIENTS} slow regexes: {1e3 * statistics.median(beside):.1f} ms, slowest "
        f"{1e3 * max(beside):.1f} ms ({len(beside)} completions; ratio of the medians "
        f"{statistics.median(beside) / statistics.median(alone):.2f}; the regexes' statuses "
        f"{answers})"
    )


def hostile_round(server: Server, seed: int) -> None:
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(500)]
    makers = [slow_regex, large_choice, large_schema, long_prompt]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for i in range(CLIENTS * 2):
            pool.submit(lambda i=i: server.complete(**makers[i % 4](1_000 * seed + i)))
    for connection in idle:
        connection.close()


def measure_memory(server: Server) -> None:
    print("resident memory, MB:")
    print(f"  at the start       {server.memory_kb('VmRSS') / 1024:6.0f}")
    for i in range(ROUNDS):
        hostile_round(server, i + 1)
        time.sleep(10)
        print(
            f"  after round {i + 1}      {server.memory_kb('VmRSS') / 1024:6.0f}"
            f"   (highest so far {server.memory_kb('VmHWM') / 1024:.0f})"
        )
    time.sleep(REST_S)
    print(f"  after {REST_S} s of rest {server.memory_kb('VmRSS') / 1024:6.0f}")
    parts = server.memory_parts()
    print("  of these           " + ", ".join(f"{part} {mb:.0f}" for part, mb in parts.items()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("banyan")
    parser.add_argument("model", nargs="?", default="models/banyan-nano")
    arguments = parser.parse_args()
    server = Server(arguments.banyan, arguments.model)
    try:
        measure_memory(server)
        measure_waiting(server)
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
