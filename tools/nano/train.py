"""python train.py --out DIR [--steps N]: trains banyan-nano; the same command goes on where a run
stopped, on any machine that DIR is copied to. Workers share each step's rows and average their
gradients. Ends with a plot of losses and of the experts' load."""

import argparse
import csv
import json
import os
import shutil
import sys
import time
from pathlib import Path

import corpus
import export
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from data import Groups
from model import Nano
from muon import fast_type, optimizers
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

from text import Encoder, train_tokenizer

HERE = Path(__file__).parent
GROUP, LONG_GROUP = 2048, 4096  # tokens
MTP_WEIGHT, Z_WEIGHT, BIAS_RATE = 0.2, 1e-5, 2e-3


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument(
        "--out",
        type=Path,
        required=True,
        help="folder of the run: tokenizer, checkpoint, log, plot",
    )
    p.add_argument(
        "--from",
        dest="start",
        metavar="FOLDER",
        type=Path,
        help="begin with the weights and the tokenizer of an exported folder",
    )
    p.add_argument("--steps", type=int, default=6000)
    p.add_argument(
        "--decay-steps", type=int, default=1500, help="the last steps, in which the rate falls to 0"
    )
    p.add_argument(
        "--first-steps",
        type=int,
        default=400,
        help="the first steps, which learn to find and copy what was said",
    )
    p.add_argument(
        "--long-from",
        type=int,
        default=1500,
        help="the step from which some have long documents",
    )
    p.add_argument("--long-every", type=int, default=5, help="from there on: one step in so many")
    p.add_argument(
        "--mtp-from", type=int, default=3000, help="the step from which the MTP layer learns"
    )
    p.add_argument("--tokens", type=int, default=4096, help="of a worker in a step")
    p.add_argument("--device", default="cpu", help="of the workers: cpu, or cuda with --workers 1")
    p.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    p.add_argument("--matrix-lr", type=float, default=8e-3, help="of Muon's steps")
    p.add_argument("--lr", type=float, default=3e-3, help="of AdamW's")
    p.add_argument("--warmup", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--save-minutes", type=float, default=5)
    o = p.parse_args()
    if o.device != "cpu" and o.workers != 1:
        p.error(f"--device {o.device} takes one worker: add --workers 1 --tokens 8192")
    return o


def rate(o, step):
    """Warm-up, then even, then a straight fall."""
    return min(1.0, (step + 1) / o.warmup, max(0.0, (o.steps - step) / o.decay_steps))


def losses(model, ids, counts, mtp=True):
    """Summed over the positions whose next token counts ([rows, T], bool): of that token, and of
    the same token by the MTP layer, which sees one token less of its past, if asked for."""
    hidden = model.hidden(ids)
    targets = ids.roll(-1, 1)

    def loss(states, positions, of):
        logits = model.lm_head(states[positions]).float()
        return cross_entropy(logits, of[positions], reduction="sum")

    next_token = loss(hidden, counts, targets)
    if not mtp:
        return next_token, torch.zeros(())
    # at position i the layer sees token i + 1 and says token i + 2
    predicted = model.model.layers[-1].predict(
        model.model.word_embeddings(targets), hidden, model.turn(ids.shape[1])
    )
    before = counts.roll(-1, 1)
    before[:, -1] = False
    return next_token, loss(predicted, before, ids.roll(-2, 1))


def add_up(tensors):
    """Over the workers, in place."""
    flat = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(flat)
    for t, summed in zip(tensors, flat.split([t.numel() for t in tensors])):
        t.copy_(summed.view_as(t))


class Run:
    def __init__(self, o, worker):
        self.o, self.worker, self.step = o, worker, 0
        torch.manual_seed(o.seed)
        tokenizer = Tokenizer.from_file(str(o.out / "tokenizer.json"))
        self.model = Nano(json.loads((HERE / "config.json").read_text()))
        self.optimizers = optimizers(self.model, o.matrix_lr, o.lr)
        muon = self.optimizers[0]
        muon.workers, muon.worker, muon.exchange = o.workers, worker, add_up
        self.dtype = fast_type(o.device)
        encoder, seed = Encoder(tokenizer), f"{o.seed}/{worker}"
        self.streams = {
            "first": Groups(encoder, f"{seed}/first", corpus.FIRST, GROUP, 512),
            "short": Groups(encoder, f"{seed}/short", corpus.SHORT, GROUP, 512),
            "long": Groups(encoder, f"{seed}/long", corpus.LONG, LONG_GROUP, 32),
        }
        self.checkpoint = o.out / f"checkpoint-{worker}.pt"
        if self.checkpoint.exists():
            self.load()
        elif o.start:
            self.model.load_state_dict(export.load(o.start).state_dict())

    def load(self):
        state = torch.load(self.checkpoint, weights_only=True, map_location=self.o.device)
        self.step = state["step"]
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"]):
            optimizer.load_state_dict(saved)
        for name, stream in self.streams.items():
            stream.load(state["streams"][name])

    def save(self):
        state = {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimizers": [x.state_dict() for x in self.optimizers],
            "streams": {n: s.state() for n, s in self.streams.items()},
        }
        beside = self.checkpoint.with_suffix(".new")
        torch.save(state, beside)
        dist.barrier()  # all of a step, or none of it
        beside.replace(self.checkpoint)

    def average(self, tensors):
        add_up(tensors)
        for t in tensors:
            t /= self.o.workers

    def groups(self):
        """The step's documents, ids and which positions' next tokens count: a token of weight w
        counts with probability w."""
        long = self.step >= self.o.long_from and (self.step + 1) % self.o.long_every == 0
        first = self.step < self.o.first_steps
        stream = self.streams["long" if long else "first" if first else "short"]
        chance = torch.Generator(self.o.device)
        chance.manual_seed(self.step * self.o.workers + self.worker)
        groups = []
        for _ in range(max(1, self.o.tokens // stream.tokens)):
            ids, weights = stream.next()
            counts = torch.rand(weights.shape, generator=chance) < weights
            counts = counts.roll(-1, 1)
            counts[:, -1] = False
            groups.append((ids, counts))
        return groups, long

    def train_step(self):
        groups, long = self.groups()
        mtp = self.step >= self.o.mtp_from
        counted = sum(int(counts.sum()) for _, counts in groups)
        figures = torch.zeros(2)
        for ids, counts in groups:
            with torch.autocast(self.o.device, self.dtype, enabled=self.dtype != torch.float32):
                next_token, after = losses(self.model, ids, counts, mtp)
                z_loss = sum(m.z_loss for m in self.model.moe_layers()) / len(groups)
            ((next_token + MTP_WEIGHT * after) / counted + Z_WEIGHT * z_loss).backward()
            figures += torch.stack([next_token.detach(), after.detach()]) / counted
        learning = [p for p in self.model.parameters() if p.grad is not None]
        self.average(
            [p.grad for p in learning] + [m.load for m in self.model.moe_layers()] + [figures]
        )
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer, lr in zip(self.optimizers, (self.o.matrix_lr, self.o.lr)):
            for group in optimizer.param_groups:
                group["lr"] = lr * rate(self.o, self.step)
            optimizer.step()
            optimizer.zero_grad()
        uneven = max(
            float(m.load.max() / m.load.mean().clamp(min=1)) for m in self.model.moe_layers()
        )
        for moe in self.model.moe_layers():
            moe.follow_load(BIAS_RATE * min(1.0, rate(self.o, self.step) + 0.1))
        self.step += 1
        return {
            "loss": float(figures[0]),
            "mtp": float(figures[1]),
            "norm": float(norm),
            "load": uneven,
            "long": int(long),
        }


def report(o, run, row, seconds):
    log = o.out / "log.csv"
    fresh = not log.exists()
    with log.open("a") as file:
        writer = csv.DictWriter(file, ["step", "seconds", *row])
        if fresh:
            writer.writeheader()
        writer.writerow(
            {"step": run.step, "seconds": round(seconds, 2)}
            | {k: round(v, 4) for k, v in row.items()}
        )
    eta = (o.steps - run.step) * seconds
    line = (
        f"step {run.step}/{o.steps}  loss {row['loss']:.3f}  mtp {row['mtp']:.3f}  load "
        f"x{row['load']:.2f}  "
        f"{o.tokens * o.workers / seconds:,.0f} tokens/s  ETA {eta / 3600:.1f} h"
    )
    end = "\r" if sys.stderr.isatty() else "\n"
    if end == "\r" or run.step % 20 == 0:
        print(f"{line:<100}", end=end, file=sys.stderr, flush=True)


def work(worker, o):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.set_default_device(o.device)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{(o.out / 'meeting').absolute()}",
        rank=worker,
        world_size=o.workers,
    )
    run = Run(o, worker)
    saved = time.time()
    while run.step < o.steps:
        begin = time.time()
        row = run.train_step()
        if worker == 0:
            report(o, run, row, time.time() - begin)
        due = torch.tensor(
            [float(time.time() - saved > 60 * o.save_minutes or run.step == o.steps)]
        )
        dist.broadcast(due, 0)
        if due.item():
            run.save()
            saved = time.time()
    dist.destroy_process_group()


def plot(o):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = list(csv.DictReader((o.out / "log.csv").open()))
    steps = [int(r["step"]) for r in rows]
    _, (top, bottom) = pyplot.subplots(2, 1, figsize=(9, 8), sharex=True)
    for key, label in (("loss", "next token"), ("mtp", "the one after (MTP)")):
        short = [(s, float(r[key])) for s, r in zip(steps, rows) if r["long"] == "0"]
        top.plot(*zip(*short), label=label, linewidth=0.8)
    top.set(ylabel="loss (nats)", ylim=(0, 2.5))
    top.legend()
    bottom.plot(steps, [float(r["load"]) for r in rows], linewidth=0.8)
    bottom.set(xlabel="step", ylabel="busiest expert / mean, worst layer", ylim=(1, 4))
    pyplot.savefig(o.out / "training.png", dpi=110, bbox_inches="tight")


def main():
    o = options()
    o.out.mkdir(parents=True, exist_ok=True)
    (o.out / "meeting").unlink(missing_ok=True)
    if o.start:
        shutil.copy(o.start / "tokenizer.json", o.out)
    if not (o.out / "tokenizer.json").exists():
        print("training the tokenizer", file=sys.stderr)
        vocabulary = json.loads((HERE / "config.json").read_text())["vocab_size"]
        train_tokenizer(vocabulary, o.seed).save(str(o.out / "tokenizer.json"))
    mp.spawn(work, (o,), o.workers)
    plot(o)


if __name__ == "__main__":
    main()
