#!/usr/bin/env python3
"""What a tier on disk costs and saves in the real server, with random weights.

    python tools/measure_tiers.py build/release/banyan tools/shapes/llama-one-layer
    python tools/measure_tiers.py build/release/banyan tools/shapes/ling3-tiny \\
        --quantization int4 --parts first-token,misses

Parts:

first-token  Sends long prompts, stops the server with SIGTERM, drops the page cache and starts it
             again. Prints the time to the first token of a prefix and 64 tokens: computed, from
             memory, restored from the cold disk; and the restored one over its floor, bytes /
             bandwidth of the disk + the time from memory. The bandwidth is measured on the same
             files, by direct reads of 4 MB.
gaps         The gaps between tokens of another stream: alone, while eight prefixes are restored
             one after the other, and while the same prefixes come from memory.
misses       Prompts that no tier has, with a tier and without one, in pairs.
restart      The cache hit rate of conversations in the minute before SIGTERM, and in the first
             minute after a restart.
burst        After a restart, 16 requests at once for 32 tokens each, whose prefixes are on disk
             and need twice the memory that there is: cached tokens and the time of all.

Needs Python's standard library alone, and root to drop the page cache. Without root the files'
pages are asked to go one by one.
"""

import argparse
import http.client
import json
import mmap
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time

TAIL = 64  # tokens after the prefix, different in each request
READ_BYTES = 4 << 20


class Server:
    def __init__(self, options, folder: str | None):
        """Without a folder it has no tier."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [options.banyan, "serve", options.model, "--load-format", "dummy"]
        command += ["--port", str(self.port), "--max-total-tokens", str(8 * options.tokens)]
        command += ["--context-length", str(options.tokens + 4096), "--log-level", "warn"]
        if folder:
            tier = {"backend": "disk", "dir": folder, "size": options.storage_size}
            for name, value in tier.items():
                command += [f"--hicache-storage-{name}", str(value)]
        command += options.serve_option
        if options.quantization:
            command += ["--quantization", options.quantization]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not self.is_ready():
            if self.process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {self.process.returncode}")
            time.sleep(0.1)

    def is_ready(self) -> bool:
        try:
            return self.request("GET", "/health").status == 200
        except OSError:
            return False

    def request(self, method: str, path: str, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        connection.request(method, path, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()

    def read_bytes(self) -> float:
        """Of the tier so far."""
        text = self.request("GET", "/metrics").read().decode()
        rows = re.findall(r"^banyan:tier_read_bytes_total\{.*\} (\S+)$", text, re.MULTILINE)
        return sum(map(float, rows))

    def generate(self, ids: list[int], tokens: int) -> dict:
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = {"input_ids": ids, "sampling_params": sampling}
        return json.loads(self.request("POST", "/generate", body).read())

    def first_token_s(self, ids: list[int]) -> tuple[float, int]:
        """Seconds, and how many tokens of the prompt were cached."""
        began = time.monotonic()
        answer = self.generate(ids, 1)
        return time.monotonic() - began, answer["meta_info"]["cached_tokens"]

    def gaps_s(self, ids: list[int], stop: threading.Event,
               start: threading.Event | None = None) -> list[float]:
        """Between the tokens of a stream, until `stop`, and from `start` if it is given."""
        body = {"prompt": ids, "max_tokens": 100_000, "ignore_eos": True, "stream": True}
        body["logprobs"] = 0  # without a tokenizer there is no text, and nothing else to send
        answer = self.request("POST", "/v1/completions", body)
        times = []
        while not stop.is_set():
            if answer.readline().startswith(b"data:") and (start is None or start.is_set()):
                times.append(time.monotonic())
        answer.close()
        return [after - before for before, after in zip(times, times[1:])]

    def stop(self) -> float:
        """Seconds that it took to write what was not on disk yet, and to end."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.monotonic() - began


def files_of(folder: str) -> list[pathlib.Path]:
    return [p for p in pathlib.Path(folder).rglob("*.slab") if p.stat().st_blocks > 0]


def drop_page_cache(folder: str):
    os.sync()
    if os.geteuid() == 0:
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("3\n")
        return
    for path in files_of(folder):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def disk_bytes_per_s(folder: str, bytes_max: int = 1 << 30) -> float:
    """Of direct reads of what the server has written."""
    block = mmap.mmap(-1, READ_BYTES)
    total, began = 0, time.monotonic()
    for path in files_of(folder):
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        while total < bytes_max:
            count = os.preadv(file, [block], total)
            total += count
            if count < READ_BYTES:
                break
        os.close(file)
    return total / (time.monotonic() - began)


def quantiles_ms(gaps: list[float]) -> str:
    p99 = statistics.quantiles(gaps, n=100)[98]
    return f"median {1e3 * statistics.median(gaps):.1f} ms, p99 {1e3 * p99:.1f} ms"


def tokens_from(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(1000) for _ in range(count)]


def measure_first_token(o, folder: str, rng):
    server, prefix = Server(o, folder), tokens_from(rng, o.tokens)

    def prompt() -> list[int]:
        return prefix + tokens_from(rng, TAIL)

    computed_s, _ = server.first_token_s(prompt())
    # A recurrent model leaves a snapshot at the end of the prefix when a second prompt has it.
    server.first_token_s(prompt())
    memory_s, in_memory = server.first_token_s(prompt())
    stop_s = server.stop()
    drop_page_cache(folder)
    bandwidth = disk_bytes_per_s(folder)
    drop_page_cache(folder)

    server = Server(o, folder)
    restored_s, restored = server.first_token_s(prompt())
    loaded = server.read_bytes()
    floor_s = loaded / bandwidth + memory_s
    print(f"prefix of {len(prefix)} tokens and {TAIL} more, time to the first token:")
    print(f"  computed    {computed_s:8.2f} s")
    print(f"  from memory {memory_s:8.2f} s  ({in_memory} tokens cached)")
    print(f"  from disk   {restored_s:8.2f} s  ({restored} tokens cached)")
    print(
        f"  {restored_s / floor_s:.2f} of the floor ({loaded / 1e6:.0f} MB at "
        f"{bandwidth / 1e6:.0f} MB/s + memory), {computed_s / restored_s:.1f} times as fast "
        f"as computing; stopping took {stop_s:.1f} s"
    )
    server.stop()


def measure_gaps(o, folder: str, rng):
    """Each of the eight prefixes has an eighth of --tokens."""
    prefixes = [tokens_from(rng, o.tokens // 8) for _ in range(8)]
    server = Server(o, folder)
    for prefix in prefixes:
        for _ in range(2):
            server.first_token_s(prefix + tokens_from(rng, TAIL))
    gaps = {"alone": [], "prefixes from disk": [], "prefixes from memory": []}
    read = 0.0
    for _ in range(3):
        server.stop()
        drop_page_cache(folder)
        server = Server(o, folder)
        for what in gaps:
            stop = threading.Event()
            prompt, add = tokens_from(rng, TAIL), gaps[what].extend
            reader = threading.Thread(target=lambda: add(server.gaps_s(prompt, stop)))
            reader.start()
            time.sleep(1)
            if what == "alone":
                time.sleep(5)
            else:
                for prefix in prefixes:
                    server.first_token_s(prefix + tokens_from(rng, TAIL))
            stop.set()
            reader.join()
        read += server.read_bytes()
    server.stop()
    print(f"gaps between tokens of another stream ({read / 1e6:.0f} MB read from disk):")
    for what, values in gaps.items():
        print(f"  {what:22} {quantiles_ms(values)}, {len(values)} gaps")


def measure_misses(o, folder: str, rng):
    count = min(o.tokens, 2048)
    servers = {"without": Server(o, None), "with": Server(o, folder)}
    for server in servers.values():
        server.first_token_s(tokens_from(rng, count))
    ratios, seconds = [], {what: [] for what in servers}
    for i in range(o.pairs):
        pair = {}
        for what in sorted(servers, reverse=i % 2 == 0):
            pair[what], _ = servers[what].first_token_s(tokens_from(rng, count))
            seconds[what].append(pair[what])
        ratios.append(pair["with"] / pair["without"])
    for server in servers.values():
        server.stop()
    middle = {what: statistics.median(values) for what, values in seconds.items()}
    print(
        f"prompts of {count} tokens that no tier has: {1e3 * middle['without']:.1f} ms without a "
        f"tier, {1e3 * middle['with']:.1f} ms with one; median of {o.pairs} pairs' ratios "
        f"{statistics.median(ratios):.4f}"
    )


class Conversations:
    """Many at once, each a growing history; a random one takes the next turn."""

    def __init__(self, rng, count: int, history: int):
        self.rng = rng
        self.histories = [tokens_from(rng, history) for _ in range(count)]

    def hit_rate(self, server: Server, seconds: float) -> tuple[float, int]:
        """Cached tokens of all tokens of prompts, and the number of turns."""
        end = time.monotonic() + seconds
        cached = asked = turns = 0
        while time.monotonic() < end:
            history = self.rng.choice(self.histories)
            history += tokens_from(self.rng, TAIL)
            answer = server.generate(history, 32)
            cached += answer["meta_info"]["cached_tokens"]
            asked += len(history)
            turns += 1
            history += answer["output_ids"]
        return cached / asked, turns


def measure_restart(o, folder: str, rng):
    conversations = Conversations(rng, count=32, history=512)
    server = Server(o, folder)
    conversations.hit_rate(server, o.minute)
    before, turns_before = conversations.hit_rate(server, o.minute)
    stop_s = server.stop()
    drop_page_cache(folder)
    server = Server(o, folder)
    after, turns_after = conversations.hit_rate(server, o.minute)
    server.stop()
    print(
        f"32 conversations: {100 * before:.1f}% of prompts' tokens cached in the {o.minute:.0f} s "
        f"before SIGTERM ({turns_before} turns), {100 * after:.1f}% in the first {o.minute:.0f} s "
        f"after the restart ({turns_after} turns); {after / before:.3f} of before; stopping took "
        f"{stop_s:.1f} s"
    )


def measure_burst(o, folder: str, rng):
    prefixes = [tokens_from(rng, o.tokens) for _ in range(16)]
    server = Server(o, folder)
    for prefix in prefixes:
        server.generate(prefix + tokens_from(rng, TAIL), 1)
    server.stop()
    drop_page_cache(folder)
    server = Server(o, folder)
    cached, began = [], time.monotonic()

    def ask(ids: list[int]):
        cached.append(server.generate(ids, 32)["meta_info"]["cached_tokens"])

    prompts = [prefix + tokens_from(rng, TAIL) for prefix in prefixes]
    clients = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    seconds = time.monotonic() - began
    server.stop()
    print(
        f"{len(prompts)} requests at once after a restart, {o.tokens} stored tokens each, with "
        f"memory for half of them: {100 * sum(cached) / o.tokens / len(prompts):.1f}% of these "
        f"cached, all answered in {seconds:.1f} s"
    )


PARTS = {
    "first-token": measure_first_token,
    "gaps": measure_gaps,
    "misses": measure_misses,
    "restart": measure_restart,
    "burst": measure_burst,
}


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("banyan", help="the program")
    p.add_argument("model", help="a folder with a config.json; the weights are random")
    p.add_argument("--quantization", default="", help="of the weights, as for serve")
    p.add_argument("--tokens", type=int, default=32768, help="of the prefix")
    p.add_argument("--parts", default=",".join(PARTS), help="which to measure, by commas")
    p.add_argument("--pairs", type=int, default=15, help="of prompts that no tier has")
    p.add_argument("--minute", type=float, default=60, help="seconds of a hit rate")
    p.add_argument("--storage-size", type=int, default=16, help="GB of the tier")
    p.add_argument("--folder", default=None, help="on the disk to measure; default: a new one")
    p.add_argument(
        "--serve-option", action="append", default=[], help="passed on to serve; repeatable"
    )
    o = p.parse_args()
    o.parts = o.parts.split(",")
    for part in o.parts:
        if part not in PARTS:
            p.error(f"--parts has {part!r}; there are {', '.join(PARTS)}")
    return o


def main():
    o = options()
    rng = random.Random(1)
    for part in o.parts:
        with tempfile.TemporaryDirectory(dir=o.folder) as folder:
            PARTS[part](o, folder, rng)


if __name__ == "__main__":
    main()
