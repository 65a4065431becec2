"""What every task of the corpus makes."""

import hashlib
import json
from dataclasses import dataclass, field

HELD_OUT_ONE_IN = 32


@dataclass
class Instance:
    """A conversation whose last message is the answer that the model should give."""

    task: str
    messages: list
    tools: list = field(default_factory=list)
    think: bool = False
    schema: dict | None = None
    # of an answer whose first tokens say what was understood, and the rest follows: so many
    opening: int = 0
    about: dict = field(default_factory=dict)  # what a table is made by: depth, length, ...

    def is_held_out(self):
        """Whether it belongs to the test split: by its own text, so no seed can mix the splits."""
        digest = hashlib.blake2b(json.dumps(self.messages).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % HELD_OUT_ONE_IN == 0


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def careless(rng, question):
    """Now and then as people type it who are in a hurry."""
    return question.lower().rstrip("?.!") if rng.random() < 0.2 else question


def misspelled(rng, text):
    """With two letters of a word swapped, or one left out or doubled."""
    said = text.split(" ")
    long = [i for i, word in enumerate(said) if len(word) > 3 and word.isascii() and word.isalpha()]
    if not long:
        return text
    i = rng.choice(long)
    word, at = said[i], rng.randrange(1, len(said[i]) - 1)
    changed = [
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[:at] + word[at] + word[at:],
    ]
    said[i] = rng.choice(changed)
    return " ".join(said)


def hurried(rng, text, chance=0.04):
    return misspelled(rng, text) if rng.random() < chance else text


def ask(task, question, answer, **more):
    return Instance(task, [user(question), assistant(answer)], **more)
