"""Rows of packed documents. A row is a function of (seed, length, stream, number), so a run that is
resumed, or spread over workers, sees what an unbroken one would."""

import random

import corpus
import torch

WAITING = 48  # documents to choose from when a row is filled


class Rows:
    """Documents packed side by side in rows of `length` tokens, whole; the rest is left empty."""

    def __init__(self, encoder, seed, length, long):
        self.encoder, self.seed, self.length = encoder, f"{seed}/{length}", length
        self.long, self.waiting, self.index = long, [], 0

    def next_document(self):
        makers = corpus.SHORT
        if self.long and random.Random(f"{self.seed}/{self.index}/long").random() < 0.12:
            makers = corpus.LONG
        ids, weights = self.encoder.document(self.seed, self.index, makers)
        self.index += 1
        return ids, weights

    def row(self):
        ids, weights = [], []
        while len(self.waiting) < WAITING:
            document = self.next_document()
            if len(document[0]) <= self.length:
                self.waiting.append(document)
        at = 0
        while at < len(self.waiting):
            if len(ids) + len(self.waiting[at][0]) <= self.length:
                more = self.waiting.pop(at)
                ids, weights = ids + more[0], weights + more[1]
            else:
                at += 1
        empty = self.length - len(ids)
        return ids + [1] * empty, weights + [0.0] * empty

    def batch(self, tokens):
        rows = [self.row() for _ in range(tokens // self.length)]
        return torch.tensor([r[0] for r in rows]), torch.tensor([r[1] for r in rows])

    def state(self):
        return {"waiting": self.waiting, "index": self.index}

    def load(self, state):
        self.waiting, self.index = [tuple(d) for d in state["waiting"]], state["index"]
