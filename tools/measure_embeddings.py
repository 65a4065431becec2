#!/usr/bin/env python3
"""Measures how fast a server embeds texts and ranks documents.

    python tools/measure_embeddings.py BANYAN MODEL [--texts 256] [--tokens 128] [--repeat 3]
        [--options="--load-format dummy --quantization int8"]

Starts `banyan serve` and sends one request of random token ids to /v1/embeddings: texts of one
length, first without a common beginning, then with one of three quarters of their length, as
instructions or a document's title are. Prints the median of the tokens per second over the repeats,
and next to it what `banyan bench one-batch` measures for prefill alone, which is the limit.
"""

import argparse
import http.client
import json
import random
import shlex
import statistics
import subprocess
import sys
import time


def ask(port, path, body=None):
    """The status and the answer's JSON, if it is one."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None)
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, json.loads(text) if text[:1] == b"{" else None


def wait_until_ready(port, server):
    """Returns once /health is 200; ends the program if the server ends before."""
    for _ in range(3000):
        if server.poll() is not None:
            sys.exit(f"the server ended with {server.returncode}")
        try:
            if ask(port, "/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    sys.exit("the server was not ready within five minutes")


def embed(port, texts):
    """Seconds for one request, and how many of its tokens came from the cache."""
    begin = time.monotonic()
    status, answer = ask(port, "/v1/embeddings", {"input": texts, "encoding_format": "base64"})
    seconds = time.monotonic() - begin
    if status != 200:
        sys.exit(f"{status}: {answer}")
    return seconds, answer["usage"]["prompt_tokens_details"]["cached_tokens"]


def measure(arguments, shared):
    """Medians over the repeats: tokens per second, and the share that was cached."""
    rates, cached = [], []
    for repeat in range(arguments.repeat):
        draw = random.Random(f"{repeat} {shared}")
        common = [draw.randrange(1, arguments.vocabulary) for _ in range(shared)]
        texts = [common + [draw.randrange(1, arguments.vocabulary)
                           for _ in range(arguments.tokens - shared)]
                 for _ in range(arguments.texts)]
        seconds, found = embed(arguments.port, texts)
        rates.append(arguments.texts * arguments.tokens / seconds)
        cached.append(found / (arguments.texts * arguments.tokens))
    return statistics.median(rates), statistics.median(cached)


def prefill_rate(arguments, options):
    """Tokens per second of prompts of that length, by `banyan bench one-batch`."""
    command = [arguments.banyan, "bench", "one-batch", arguments.model, "--batch-size", "16",
               "--input-len", str(arguments.tokens), "--output-len", "2", "--no-limits", "--json",
               *options]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(out)["results"][0]["prefill_tokens_per_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("banyan")
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--vocabulary", type=int, default=30000, help="ids are below this")
    parser.add_argument("--port", type=int, default=31878)
    parser.add_argument("--options", default="", help="of the model, in one word")
    arguments = parser.parse_args()
    options = shlex.split(arguments.options)
    limit = prefill_rate(arguments, options)
    server = subprocess.Popen([arguments.banyan, "serve", arguments.model, "--port",
                               str(arguments.port), "--log-level", "error",
                               "--max-running-requests", "16", *options])
    try:
        wait_until_ready(arguments.port, server)
        print(f"prefill alone: {limit:.0f} tokens/s")
        for shared in (0, arguments.tokens * 3 // 4):
            rate, cached = measure(arguments, shared)
            print(f"{arguments.texts} texts of {arguments.tokens} tokens, {shared} in common: "
                  f"{rate:.0f} tokens/s, {rate / limit:.2f} of that; {cached:.0%} cached")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
