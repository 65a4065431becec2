#!/usr/bin/env python3
"""What quantising a model's keys and values costs on real text.

    python tools/measure_cache.py BANYAN MODEL TEXT [--tokens N] [--piece N]

Scores the first N tokens of TEXT in pieces of the model's context, with weights as they are stored,
and prints for each --kv-cache-dtype: bytes for each token, perplexity, the mean loss of a token's
log-probability in nats against f32, the mean of its absolute change, and the loss per character.
"""

import argparse
import json
import math
import pathlib
import subprocess

CACHES = ("f32", "bf16", "fp8_e4m3", "int8")


def run(*command, **options):
    return json.loads(subprocess.run(command, check=True, capture_output=True, **options).stdout)


def logprobs(banyan, pieces, *options):
    """log p of every token but the first of each piece."""
    values = []
    for piece in pieces:
        ids = ",".join(map(str, piece))
        values += run(banyan, "score", "--json", "--ids", ids, *options)["logprobs"][1:]
    return values


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("banyan", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--piece", type=int, default=256)
    a = parser.parse_args()
    text = a.text.read_text(errors="replace")[: a.tokens * 6]
    model = ("--model", a.model)
    ids = run(a.banyan, "tokenize", "--json", *model, "-", input=text.encode())["ids"][: a.tokens]
    numbers = json.dumps(ids)[1:-1].encode()
    spelled = run(a.banyan, "detokenize", "--json", *model, "-", input=numbers)
    characters = len(spelled["text"])
    pieces = [ids[i : i + a.piece] for i in range(0, len(ids) - 1, a.piece)]
    print("| keys and values | bytes a token | perplexity | loss | change | loss per character |")
    print("|---|---|---|---|---|---|")
    exact = None
    for cache in CACHES:
        options = (*model, "--kv-cache-dtype", cache)
        values = logprobs(a.banyan, pieces, *options)
        exact = exact or values
        token_bytes = run(a.banyan, "inspect", "--json", *options)["state_bytes_per_token"]
        loss = mean(x - y for x, y in zip(exact, values))
        change = mean(abs(x - y) for x, y in zip(exact, values))
        cells = [cache, token_bytes, f"{math.exp(-mean(values)):.4f}", f"{loss:.5f}"]
        cells += [f"{change:.5f}", f"{-sum(values) / characters:.5f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
