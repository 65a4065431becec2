#!/usr/bin/env python3
"""What attention to a few blocks of keys costs models that were not trained for it.

    python tools/measure_moba.py BANYAN MODEL TEXT [--tokens N] [--piece N]

Scores the first N tokens of TEXT in pieces, in f32, with all keys and with --moba-block-size and
--moba-topk, and prints the loss per character of each in nats.
"""

import argparse
import json
import pathlib

from measure_cache import logprobs, run

BLOCKS = (8, 16, 32)
TOP = (1, 2, 3, 4, 8)


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
    pieces = [ids[i : i + a.piece] for i in range(0, len(ids) - 1, a.piece)]

    def loss(*options):
        values = logprobs(a.banyan, pieces, *model, "--kv-cache-dtype", "f32", *options)
        return -sum(values) / len(spelled["text"])

    print("| block | " + " | ".join(f"top-k {k}" for k in TOP) + " | all keys |")
    print("|---" * (len(TOP) + 2) + "|")
    dense = loss()
    for block in BLOCKS:
        cells = [
            f"{loss('--moba-block-size', str(block), '--moba-topk', str(k)):.4f}" for k in TOP
        ]
        print(f"| {block} | " + " | ".join(cells) + f" | {dense:.4f} |", flush=True)


if __name__ == "__main__":
    main()
