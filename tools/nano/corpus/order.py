"""Copying, quoting, turning round and sorting."""

import json

from corpus import words
from corpus.instance import Instance, ask, assistant, user


def some_words(rng, low, high):
    return rng.sample(words.PLAIN + words.ANIMALS + words.FRUITS, rng.randint(low, high))


def copy(rng):
    text = (
        rng.choice([" ", ", "]).join(some_words(rng, 3, 10))
        if rng.random() < 0.7
        else "".join(
            rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(rng.randint(4, 12))
        )
    )
    form = rng.choice(["Repeat: {}", "Copy this: {}", "Say exactly: {}", "Repeat after me: {}"])
    return ask("copy", form.format(text), text, about={"kind": "copy"})


QUOTED = [
    words.COUNTED,
    words.MONTHS,
    words.PLAIN + words.THINGS + words.FOODS,
    words.CITIES + words.NAMES + words.DAYS,
]


def quoted(rng):
    """Words without the space before them, which JSON asks for and a text does not have."""
    chosen = rng.sample(rng.choice(QUOTED), rng.randint(2, 8))
    form = rng.choice(["As a JSON list: {}", "Write as JSON: {}", "{} as a JSON list, please."])
    joined = rng.choice([", ", " ", " and ", f" {rng.randint(2, 60)} "]).join(chosen)
    answer = json.dumps(chosen, separators=(",", ":"))
    return ask("copy", form.format(joined), answer, about={"kind": "quote"})


def backwards(rng):
    chosen = some_words(rng, 3, 7)
    form = rng.choice(["Say these words in reverse order: {}", "Reverse this list: {}"])
    return ask(
        "copy",
        form.format(", ".join(chosen)),
        ", ".join(reversed(chosen)),
        about={"kind": "reverse"},
    )


def sort(rng):
    if rng.random() < 0.6:
        chosen = [str(n) for n in rng.sample(range(100), rng.randint(3, 8))]
        ordered = sorted(chosen, key=int)
        form = rng.choice(
            [
                "Sort these numbers: {}",
                "Put these numbers in order: {}",
                "Sort from small to large: {}",
            ]
        )
    else:
        chosen = some_words(rng, 3, 6)
        ordered = sorted(chosen)
        form = rng.choice(["Sort these words: {}", "Put these words in alphabetical order: {}"])
    return ask(
        "sort", form.format(", ".join(chosen)), ", ".join(ordered), about={"items": len(chosen)}
    )


def count(rng):
    chosen = some_words(rng, 2, 9)
    answer = str(len(chosen))
    steps = "\n".join(f"{i}. {w}" for i, w in enumerate(chosen, 1))
    question = f"How many words are in this list: {', '.join(chosen)}?"
    return Instance(
        "sort",
        [user(question), assistant(answer, reasoning_content=steps)],
        think=True,
        about={"items": len(chosen)},
    )
