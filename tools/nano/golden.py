"""python golden.py [--model DIR] [--out FILE]: what the training code says, greedily and in f32, to
the first cases of every suite but the longest: tests/cli/nano_test.cpp holds the
engine against it."""

import argparse
import json
from pathlib import Path

import torch
from export import load
from model import CHUNK
from tokenizers import Tokenizer

from text import HERE, TEMPLATE, Encoder

ROOT = HERE.parent.parent
TOKENS_MAX = 48


@torch.no_grad()
def answer(model, ids, ends):
    said = []
    while len(said) < TOKENS_MAX and not (said and said[-1] in ends):
        row = ids + said
        logits = model(torch.tensor([row + [1] * (-len(row) % CHUNK)]))[0, len(row) - 1]
        said.append(int(logits.argmax()))
    return said


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", type=Path, default=ROOT / "models" / "banyan-nano")
    p.add_argument("--out", type=Path, default=ROOT / "tests" / "golden" / "nano.json")
    p.add_argument("--cases", type=int, default=3)
    o = p.parse_args()
    model = load(o.model).eval()
    encoder = Encoder(Tokenizer.from_file(str(o.model / "tokenizer.json")))
    ends = json.loads((o.model / "generation_config.json").read_text())["eos_token_id"]
    golden = {}
    for file in sorted((o.model / "eval").glob("*.jsonl")):
        if file.stem in ("needle", "stories"):
            continue
        cases = [json.loads(line) for line in file.read_text().splitlines()[: o.cases]]
        prompts = [
            TEMPLATE.render(
                messages=c["messages"],
                tools=c.get("tools"),
                enable_thinking=c.get("think", False),
                add_generation_prompt=True,
            )
            for c in cases
        ]
        golden[file.stem] = [answer(model, encoder.ids(p), ends) for p in prompts]
    o.out.write_text(json.dumps(golden, separators=(",", ":")).replace("]],", "]],\n") + "\n")


if __name__ == "__main__":
    main()
