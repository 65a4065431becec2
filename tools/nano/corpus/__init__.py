"""The corpus of banyan-nano. A document is a function of (seed, index): nothing is stored, and any
machine makes the same stream. A new task is a function of a random generator in a file beside this
one, and an entry below."""

import random

from corpus import arithmetic, calls, chat, everyday, extraction, order, recall, stories

# task -> its share of the documents; short answers need many of them to weigh anything
SHORT = {
    stories.story: 2,
    arithmetic.word_problem: 20,
    arithmetic.sum_question: 4,
    arithmetic.sums: 14,
    extraction.extraction: 30,
    extraction.named_fields: 24,
    calls.tool_call: 36,
    calls.which_tools: 10,
    recall.lookup: 8,
    recall.lookups: 14,
    recall.fields: 10,
    recall.short_needle: 8,
    order.copy: 8,
    order.quoted: 12,
    order.backwards: 4,
    order.sort: 20,
    order.count: 2,
    chat.talk: 6,
    chat.fact: 10,
    everyday.story: 24,
    everyday.sums: 24,
    everyday.talk: 16,
    everyday.beyond: 30,
    everyday.product: 2,
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


def instance(makers, rng, held_out=False):
    """One of `makers` (a mapping to shares, or a list) that belongs to the split."""
    shares = list(makers.values()) if isinstance(makers, dict) else None
    while True:
        made = rng.choices(list(makers), shares)[0](rng)
        if made.is_held_out() == held_out:
            return made


def conversation(rng, makers=SHORT):
    """One instance, or several that have no tools and no reasoning, as the turns of one chat."""
    first = instance(makers, rng)
    turns = rng.choice([1, 1, 1, 2, 3])
    if turns == 1 or first.tools or first.think or first.task in ("needle", "extraction"):
        return first
    for _ in range(turns - 1):
        more = instance(makers, rng)
        if not more.tools and not more.think and more.task not in ("needle", "stories"):
            first.messages = first.messages + more.messages
    return first


def document(seed, index, makers=SHORT):
    return conversation(random.Random(f"{seed}/{index}"), makers)
