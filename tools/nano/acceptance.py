"""python acceptance.py [--model DIR]: what no suite tells. How often the MTP layer says the token
that the model itself says next, over held-out answers of each task, and how much busier than even
the busiest expert of each layer is."""

import argparse
import random
from pathlib import Path

import corpus
import torch
from export import load
from model import CHUNK
from tokenizers import Tokenizer

from text import HERE, Encoder, render

CASES = 24


@torch.no_grad()
def agreement(model, ids, weights):
    """-> of the answer's tokens, how many both say, and how many there are."""
    x = torch.tensor([ids + [1] * (-len(ids) % CHUNK)])
    hidden = model.hidden(x)
    says = model.lm_head(hidden)[0].argmax(-1)
    embedded = model.model.word_embeddings(x.roll(-1, 1))
    draft = model.model.layers[-1].predict(embedded, hidden, model.turn(x.shape[1]))
    drafts = model.lm_head(draft)[0].argmax(-1)
    answers = [i for i in range(len(ids) - 2) if weights[i + 2] == 1.0]
    return sum(int(drafts[i] == says[i + 1]) for i in answers), len(answers)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--model", type=Path, default=HERE.parent.parent / "models" / "banyan-nano")
    o = p.parse_args()
    model = load(o.model).eval().train()  # which counts what experts do
    encoder = Encoder(Tokenizer.from_file(str(o.model / "tokenizer.json")))
    for maker in corpus.SHORT:
        rng = random.Random(f"acceptance/{maker.__name__}")
        good = of = 0
        for _ in range(CASES):
            ids = encoder.ids(render(corpus.instance([maker], rng, held_out=True)))
            agreed, all_of = agreement(model, ids, encoder.weigh(ids))
            good, of = good + agreed, of + all_of
        print(f"{maker.__name__:<14} MTP acceptance {100 * good / of:5.1f}%")
    busiest = [float(m.load.max() / m.load.mean()) for m in model.moe_layers()]
    print("busiest expert, of even:", ", ".join(f"x{b:.2f}" for b in busiest))


if __name__ == "__main__":
    main()
