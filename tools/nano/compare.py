"""python compare.py --model DIR --banyan build/release/banyan: log-probabilities of a few documents
by the training code and by the engine, both in f32 from the folder's weights: how far apart."""

import argparse
import json
import subprocess
from pathlib import Path

import corpus
import torch
from export import load
from model import CHUNK
from tokenizers import Tokenizer

from text import Encoder, render


@torch.no_grad()
def by_torch(model, ids):
    padded = ids + [1] * (-len(ids) % CHUNK)
    logprobs = model(torch.tensor([padded])).log_softmax(-1)[0]
    return [float(logprobs[i - 1, ids[i]]) for i in range(1, len(ids))]


def by_banyan(banyan, folder, ids):
    command = [
        banyan,
        "score",
        "--model",
        folder,
        "--dtype",
        "f32",
        "--json",
        "--ids",
        ",".join(map(str, ids)),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["logprobs"][
        1:
    ]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", type=Path, required=True)
    p.add_argument("--banyan", type=Path, required=True)
    p.add_argument("--documents", type=int, default=20)
    o = p.parse_args()
    model = load(o.model).eval()
    encoder = Encoder(Tokenizer.from_file(str(o.model / "tokenizer.json")))
    worst = 0.0
    for i in range(o.documents):
        ids = encoder.ids(render(corpus.document("compare", i)))
        pairs = zip(by_torch(model, ids), by_banyan(o.banyan, o.model, ids))
        worst = max(worst, max(abs(a - b) for a, b in pairs))
    print(f"{o.documents} documents, largest difference of a log-probability {worst:.2e}")


if __name__ == "__main__":
    main()
