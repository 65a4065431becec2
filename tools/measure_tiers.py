#!/usr/bin/env python3
"""What a long prompt costs after a restart, when its prefix is on disk.

    python tools/measure_tiers.py build/release/banyan tools/shapes/ling3-tiny \\
        --quantization int4 --tokens 32768

Starts `banyan serve` with a disk tier and random weights, sends two long prompts, stops it with
SIGTERM, drops the page cache and starts it again. Prints

1. the time to the first token of a prefix and 64 tokens: computed, resumed from memory, restored
   from the cold disk; and the restored one over its floor, bytes / bandwidth of the disk + the
   time from memory. The bandwidth is measured on the same files, by direct reads of 4 MB;
2. the gaps between tokens of another stream, alone and while a prefix is restored (median, p99).

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
    def __init__(self, options, folder: str):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        tier = {"backend": "disk", "dir": folder, "size": options.storage_size}
        command = [options.banyan, "serve", options.model, "--load-format", "dummy"]
        command += ["--port", str(self.port), "--max-total-tokens", str(4 * options.tokens)]
        command += ["--context-length", str(options.tokens + 4096)]
        command += ["--enable-hierarchical-cache", "--log-level", "warn"] + options.serve_option
        for name, value in tier.items():
            command += [f"--hicache-storage-{name}", str(value)]
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

    def first_token_s(self, ids: list[int]) -> tuple[float, int]:
        """Seconds, and how many tokens of the prompt were cached."""
        began = time.monotonic()
        sampling = {"max_new_tokens": 1, "temperature": 0, "ignore_eos": True}
        answer = self.request("POST", "/generate", {"input_ids": ids, "sampling_params": sampling})
        meta = json.loads(answer.read())["meta_info"]
        return time.monotonic() - began, meta["cached_tokens"]

    def gaps_s(self, ids: list[int], stop: threading.Event) -> list[float]:
        """Between the tokens of a stream, until `stop`."""
        body = {"prompt": ids, "max_tokens": 100_000, "ignore_eos": True, "stream": True}
        answer = self.request("POST", "/v1/completions", body)
        times = []
        while not stop.is_set():
            if answer.readline().startswith(b"data:"):
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


def options() -> argparse.Namespace:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("banyan", help="the program")
    p.add_argument("model", help="a folder with a config.json; the weights are random")
    p.add_argument("--quantization", default="", help="of the weights, as for serve")
    p.add_argument("--tokens", type=int, default=32768, help="of the prefix")
    p.add_argument("--storage-size", type=int, default=16, help="GB of the tier")
    p.add_argument("--folder", default=None, help="on the disk to measure; default: a new one")
    p.add_argument(
        "--serve-option", action="append", default=[], help="passed on to serve; repeatable"
    )
    return p.parse_args()


def main():
    o = options()
    rng = random.Random(1)

    def tokens(count: int) -> list[int]:
        return [rng.randrange(1000) for _ in range(count)]

    first, second = tokens(o.tokens), tokens(o.tokens)
    with tempfile.TemporaryDirectory(dir=o.folder) as folder:
        server = Server(o, folder)
        computed_s, _ = server.first_token_s(first + tokens(TAIL))
        # A recurrent model leaves a snapshot at the end of the prefix when a second prompt has it.
        server.first_token_s(first + tokens(TAIL))
        memory_s, in_memory = server.first_token_s(first + tokens(TAIL))
        for _ in range(2):
            server.first_token_s(second + tokens(TAIL))
        stop_s = server.stop()
        drop_page_cache(folder)
        bandwidth = disk_bytes_per_s(folder)
        drop_page_cache(folder)

        server = Server(o, folder)
        restored_s, restored = server.first_token_s(first + tokens(TAIL))
        loaded = server.read_bytes()
        floor_s = loaded / bandwidth + memory_s
        print(f"prefix of {o.tokens} tokens and {TAIL} more, time to the first token:")
        print(f"  computed    {computed_s:8.2f} s")
        print(f"  from memory {memory_s:8.2f} s  ({in_memory} tokens cached)")
        print(f"  from disk   {restored_s:8.2f} s  ({restored} tokens cached)")
        print(
            f"  {restored_s / floor_s:.2f} of the floor ({loaded / 1e6:.0f} MB at "
            f"{bandwidth / 1e6:.0f} MB/s + memory), {computed_s / restored_s:.1f} times as fast "
            f"as computing; stopping took {stop_s:.1f} s"
        )

        gaps = {}
        for what in ("alone", "while a prefix is restored"):
            stop = threading.Event()
            prompt = tokens(64)
            reader = threading.Thread(
                target=lambda: gaps.update({what: server.gaps_s(prompt, stop)})
            )
            reader.start()
            time.sleep(3)
            if what == "alone":
                time.sleep(5)
            else:
                server.first_token_s(second + tokens(TAIL))
            stop.set()
            reader.join()
            print(f"gaps between tokens of another stream, {what}: {quantiles_ms(gaps[what])}")
        server.stop()


if __name__ == "__main__":
    main()
