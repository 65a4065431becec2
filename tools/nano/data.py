"""Groups of documents. A group is a function of (seed, stream, number), so a run that is resumed,
or spread over workers, sees what an unbroken one would."""

import random

import torch
from model import CHUNK


class Groups:
    """Documents of about one length, side by side, each in a row of its own: what one document says
    about a name never meets another's. A row's rest repeats its document, with no weight."""

    def __init__(self, encoder, seed, makers, tokens, pool):
        self.encoder, self.seed, self.makers = encoder, seed, makers
        self.tokens, self.pool = tokens, pool
        self.waiting, self.index = [], 0

    def document(self):
        made = self.encoder.document(self.seed, self.index, self.makers)
        self.index += 1
        return made

    def fill(self):
        """`pool` documents, cut by length into groups of at most `tokens`, in random order."""
        drawn = (self.document() for _ in range(self.pool))
        documents = [d for d in drawn if len(d[0]) <= self.tokens]
        group = []
        for document in sorted(documents, key=lambda d: len(d[0])):
            if (len(group) + 1) * rounded(len(document[0])) > self.tokens:
                self.waiting.append(group)
                group = []
            group.append(document)
        self.waiting.append(group)
        random.Random(f"{self.seed}/{self.index}").shuffle(self.waiting)

    def next(self):
        """-> ids and weights [documents, T]."""
        if not self.waiting:
            self.fill()
        group = self.waiting.pop()
        length = rounded(max(len(ids) for ids, _ in group))
        ids = [(ids * (length // len(ids) + 1))[:length] for ids, _ in group]
        weights = [weights + [0.0] * (length - len(weights)) for _, weights in group]
        return torch.tensor(ids), torch.tensor(weights)

    def state(self):
        return {"waiting": self.waiting, "index": self.index}

    def load(self, state):
        self.waiting = [[tuple(d) for d in group] for group in state["waiting"]]
        self.index = state["index"]


def rounded(length):
    return -(-length // CHUNK) * CHUNK
