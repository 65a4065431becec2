"""Finding what was said before: key-value lookups, and a needle in a long text of stories. The
answer says again what it is the answer to, so that the model comes to it by the words before it."""

import json

from corpus import words
from corpus.instance import ask
from corpus.stories import plain_text

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def code(rng, digits):
    return "".join(rng.choice("0123456789") for _ in range(digits))


def random_word(rng):
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(2, 4)))


def pairs(rng):
    """-> keys with their values, and how a pair and a list of them are written."""
    count = rng.randint(3, 12)
    kind = rng.choice([words.COLOURS, words.NAMES, words.PLAIN, words.CITIES, None])
    keys = (
        {random_word(rng) for _ in range(count)}
        if kind is None
        else set(rng.sample(kind, min(count, len(kind))))
    )
    keys = sorted(keys)
    rng.shuffle(keys)
    named = rng.choice([words.PLAIN, words.MONTHS, words.COUNTED])
    values = {
        k: code(rng, rng.randint(1, 4)) if rng.random() < 0.6 else rng.choice(named) for k in keys
    }
    line = rng.choice(["{}: {}", "{} = {}", "{} is {}", "{} -> {}"])
    between = rng.choice(["\n", ", ", "; "])
    return values, lambda some: between.join(line.format(k, values[k]) for k in some)


def lookup(rng):
    """A list of pairs and a question for one of them."""
    values, write = pairs(rng)
    key = rng.choice(list(values))
    question = rng.choice(
        ["What is {}?", "What is the value of {}?", "Which value belongs to {}?", "Look up {}."]
    )
    question = f"{write(values)}\n{question.format(key)}"
    return ask("lookup", question, write([key]), about={"pairs": len(values)})


def lookups(rng):
    """The same for several of them: more to learn from one list."""
    values, write = pairs(rng)
    keys = rng.sample(list(values), rng.randint(2, len(values)))
    question = rng.choice(["What are {}?", "Look up {}.", "Which values belong to {}?"])
    return ask("lookup", f"{write(values)}\n{question.format(', '.join(keys))}", write(keys))


def fields(rng):
    """The same, answered in JSON."""
    values, write = pairs(rng)
    keys = rng.sample(list(values), rng.randint(1, len(values)))
    question = rng.choice(["Give {} as JSON.", "Answer in JSON with the keys {}."])
    answer = json.dumps({k: values[k] for k in keys}, separators=(",", ":"))
    return ask("lookup", f"{write(values)}\n{question.format(', '.join(keys))}", answer)


def needle(rng, characters):
    """A secret among stories. `characters`: the length of the whole text, about four to a token."""
    n_secrets = rng.choice([1, 1, 2, 3])
    owners = rng.sample(words.NAMES, n_secrets)
    secrets = [(o, code(rng, 4)) for o in owners]
    parts, length = [], 0
    while length < characters:
        parts.append(plain_text(rng))
        length += len(parts[-1]) + 1
    places = sorted(rng.random() for _ in secrets)
    sentences = [f"The secret code of {owner} is {digits}." for owner, digits in secrets]
    asked = rng.randrange(n_secrets)
    answer = sentences[asked]
    whole = " ".join(parts)[:characters].rsplit(".", 1)[0] + "."
    breaks = [i + 1 for i, ch in enumerate(whole[:-1]) if ch in ".!?" and whole[i + 1] == " "]
    for share, sentence in sorted(zip(places, sentences), reverse=True):
        at = breaks[int(share * len(breaks))] if breaks else 0
        whole = f"{whole[:at]} {sentence}{whole[at:]}"
    question = f"What is the secret code of {owners[asked]}?"
    about = {"depth": round(places[asked], 2), "characters": characters}
    return ask("needle", f"{whole.strip()}\n\n{question}", answer, about=about)


def short_needle(rng):
    return needle(rng, rng.randint(200, 1600))


def long_needle(rng):
    return needle(rng, rng.choice([2000, 4000, 8000, 15500]))
