"""The corpus of banyan-nano. A document is a function of (seed, index): nothing is stored, and any
machine makes the same stream. A new task is a function of a random generator in a file beside this
one, and an entry below."""

import random
from pathlib import Path

from corpus import (
    arithmetic,
    beyond,
    calls,
    chat,
    everyday,
    extraction,
    facts,
    order,
    recall,
    smalltalk,
    stories,
    sums,
)

# task -> its share of the documents; short answers need many of them to weigh anything
SHORT = {
    stories.story: 1,
    arithmetic.word_problem: 11,
    arithmetic.sum_question: 2,
    arithmetic.sums: 4,
    extraction.extraction: 8,
    extraction.named_fields: 4,
    calls.tool_call: 14,
    calls.which_tools: 3,
    recall.lookup: 3,
    recall.lookups: 3,
    recall.fields: 2,
    recall.short_needle: 2,
    order.copy: 4,
    order.quoted: 3,
    order.backwards: 2,
    order.sort: 14,
    order.count: 1,
    chat.fact: 5,
    facts.fact: 24,
    everyday.story: 290,
    sums.sums: 170,
    smalltalk.talk: 110,
    beyond.beyond: 60,
    beyond.product: 8,
}
LONG = {recall.long_needle: 1}
# What a run begins with. To find and copy what was said is learned slowly beside everything else
# and fast alone, and most other tasks need it.
FIRST = {
    stories.story: 2,
    extraction.named_fields: 10,
    recall.lookup: 10,
    recall.lookups: 20,
    recall.short_needle: 10,
    order.copy: 30,
    order.backwards: 10,
    order.sort: 5,
}
# what `banyan eval nano` measures: suite -> its makers
SUITES = {
    "arithmetic": [arithmetic.word_problem],
    "needle": [recall.long_needle],
    "extraction": [extraction.extraction],
    "tools": [calls.tool_call],
    "lookup": [recall.lookup],
    "copy": [order.copy, order.backwards],
    "sort": [order.sort],
    "stories": [stories.story],
    "chat": [chat.fact],
}


def plain(text):
    return "".join(c for c in text.lower() if c.isalnum())


# prompts that no run may see, though other words for the same are there (see suites.py)
PROMPTS = {
    plain(line.split("|", 1)[1])
    for file in ("everyday.txt", "fresh.txt")
    for line in (Path(__file__).parent.parent / file).read_text().splitlines()
    if "|" in line and not line.startswith("#")
}


def is_asked_of_it(made):
    return any(m["role"] == "user" and plain(m["content"]) in PROMPTS for m in made.messages)


def instance(makers, rng, held_out=False):
    """One of `makers` (a mapping to shares, or a list) that belongs to the split."""
    shares = list(makers.values()) if isinstance(makers, dict) else None
    while True:
        made = rng.choices(list(makers), shares)[0](rng)
        if made.is_held_out() == held_out and not is_asked_of_it(made):
            return made


def conversation(rng, makers=SHORT):
    """One instance, or several that have no tools and no reasoning, as the turns of one chat."""
    first = instance(makers, rng)
    turns = rng.choice([1] * 28 + [2, 3])
    if turns == 1 or first.tools or first.think or first.task in ("needle", "extraction"):
        return first
    for _ in range(turns - 1):
        more = instance(makers, rng)
        if not more.tools and not more.think and more.task != "needle":
            first.messages, first.opening = first.messages + more.messages, 0
    return first


def document(seed, index, makers=SHORT):
    return conversation(random.Random(f"{seed}/{index}"), makers)
