"""Trains the filter of --speculative-draft-filter: how likely a draft token is to be accepted.

    banyan bench speculation MODEL --speculative-algorithm NEXTN --draft-log drafts.jsonl
    python tools/train_draft_filter.py drafts.jsonl --out filter.safetensors
    banyan serve MODEL --speculative-algorithm NEXTN --speculative-draft-filter filter.safetensors

The filter is that of C2T (arXiv:2502.13652): two layers over the joint probability of a draft, the
confidence of its last token (where C2T has the entropy of the draft's distribution, which not every
drafter has) and the position. A fifth of the tokens is kept apart; for these the Brier score is
printed (mean squared error; lower is better), and for comparison that of their mean and of the
drafter's own confidence.
"""

import argparse
import json

import numpy
from safetensors.numpy import save_file

CHANCE_MIN, POSITION_MAX = 1e-6, 16


def read(paths):
    """Inputs [n, 3] as src/engine/drafters/draft_filter.cpp makes them, and 0 or 1 for each."""
    inputs, accepted = [], []
    for path in paths:
        for line in open(path, encoding="utf-8"):
            token = json.loads(line)
            chances = [numpy.log(max(token[name], CHANCE_MIN)) for name in ("joint", "confidence")]
            inputs.append([*chances, min(token["position"], POSITION_MAX)])
            accepted.append(token["accepted"])
    return numpy.array(inputs, numpy.float64), numpy.array(accepted, numpy.float64)


def forward(w, x):
    hidden = numpy.maximum(x @ w["0.weight"].T + w["0.bias"], 0)
    return hidden, 1 / (1 + numpy.exp(-(hidden @ w["2.weight"][0] + w["2.bias"][0])))


def gradients(w, x, y):
    """Of the mean cross entropy."""
    hidden, p = forward(w, x)
    error = (p - y) / len(y)
    back = error[:, None] * w["2.weight"][0] * (hidden > 0)
    return {
        "0.weight": back.T @ x,
        "0.bias": back.sum(0),
        "2.weight": (error @ hidden)[None],
        "2.bias": error.sum()[None],
    }


def train(x, y, units, epochs, random):
    """Adam over batches of 256; x has mean 0 and deviation 1."""
    w = {
        "0.weight": random.normal(0, 1, (units, x.shape[1])),
        "0.bias": numpy.zeros(units),
        "2.weight": random.normal(0, units**-0.5, (1, units)),
        "2.bias": numpy.zeros(1),
    }
    mean = {name: numpy.zeros_like(value) for name, value in w.items()}
    square = {name: numpy.zeros_like(value) for name, value in w.items()}
    step = 0
    for _ in range(epochs):
        order = random.permutation(len(y))
        for begin in range(0, len(y), 256):
            batch = order[begin : begin + 256]
            step += 1
            for name, g in gradients(w, x[batch], y[batch]).items():
                mean[name] = 0.9 * mean[name] + 0.1 * g
                square[name] = 0.999 * square[name] + 0.001 * g * g
                rate = 0.003 * (1 - 0.999**step) ** 0.5 / (1 - 0.9**step)
                w[name] -= rate * mean[name] / (square[name] ** 0.5 + 1e-8)
    return w


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()

    random = numpy.random.default_rng(1)
    x, y = read(args.logs)
    if len(y) < 100:
        parser.error(f"{len(y)} draft tokens are too few; record at least 100")
    apart = random.random(len(y)) < 0.2
    shift, scale = x[~apart].mean(0), x[~apart].std(0) + 1e-6
    w = train((x[~apart] - shift) / scale, y[~apart], args.units, args.epochs, random)
    # The filter takes inputs as they are.
    w["0.weight"] = w["0.weight"] / scale
    w["0.bias"] = w["0.bias"] - w["0.weight"] @ shift

    def brier(p):
        return ((p - y[apart]) ** 2).mean()

    print(f"{len(y)} draft tokens, {y.mean():.1%} accepted; Brier score of {apart.sum()} apart:")
    print(f"  mean        {brier(y[~apart].mean()):.4f}")
    print(f"  confidence  {brier(numpy.exp(x[apart, 1])):.4f}")
    print(f"  filter      {brier(forward(w, x[apart])[1]):.4f}")
    save_file({name: value.astype(numpy.float32) for name, value in w.items()}, args.out)


if __name__ == "__main__":
    main()
