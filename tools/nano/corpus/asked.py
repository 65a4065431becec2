"""How people ask for a story: requests put together from their parts, so that what is asked for is
found in them wherever it stands."""

from corpus import topics, words
from corpus.instance import hurried
from corpus.phrases import read

FOR_ME = ["tell", "write", "give", "read", "send", "make", "make up", "spin", "compose"]
KINDS = """short little long funny sad happy scary spooky silly cute sweet nice good new quick
tiny simple magical exciting cosy very_short gentle calm wild true strange lovely small wonderful
one-minute three-sentence heart-warming really_good not_too_scary not_so_long very_funny
super_short two-minute unusual clever old brand_new""".split()
PEOPLE = """son daughter kid kids children niece nephew little_sister brother class pupils
grandson mother friend baby boy girl wife husband students cousin godchild two_kids toddler twins
dad granny""".split()
SAID = read("stories")


def pick(rng, part):
    """A phrase of a section of phrases/stories.txt."""
    return rng.choice(SAID[part])


def story_np(rng):
    """A story, of some kind."""
    noun = pick(rng, "nouns")
    if rng.random() < 0.35:
        noun = f"{rng.choice(KINDS).replace('_', ' ')} {noun}"
    first = rng.random()
    if first < 0.85:
        return words.article(noun)
    return f"{rng.choice(['another', 'one more', 'your', 'some', 'the', 'one'])} {noun}"


def imperative(rng):
    verb = pick(rng, "verbs")
    to = rng.choice(["", "", "us", "my {k}", "the {k}"]) if rng.random() < 0.4 else "me"
    if verb not in FOR_ME:
        to = ""
    made = " ".join(f"{verb} {to} {{np}}".split())
    ahead = rng.random()
    if ahead < 0.3:
        could = ["can you", "could you", "would you", "will you", "can u", "would you mind to"]
        made = f"{rng.choice(could)} {rng.choice(['', '', 'please '])}{made}"
    elif ahead < 0.4:
        made = f"{rng.choice(['please', 'I want you to', 'you should', 'go on,', 'just'])} {made}"
    return made


def frame(rng):
    """A request with a place {t} for what it is about."""
    kind = rng.random()
    if kind < 0.4:
        made = imperative(rng) + " " + ("{l} {t}" if rng.random() < 0.8 else pick(rng, "after"))
        question = made.split()[0] in ("can", "could", "would", "will")
    elif kind < 0.55:
        made, question = pick(rng, "questions"), True
    else:
        made, question = pick(rng, "statements" if kind < 0.7 else "bare"), False
    return made, question


def filled(rng, text, **fill):
    """A request with its parts, in the spelling of people in a hurry or not."""
    mark = rng.choice(["", "", "", "!", " ..."]) if rng.random() < 0.4 else "."
    if text.endswith(("?", ".", "!")):
        mark = ""
    elif fill.pop("question", False):
        mark = rng.choice(["?", "?", "?", ""])
    fill.pop("question", None)
    if rng.random() < 0.22:
        tail = pick(rng, "tails")
        if text[-1] in ".?!":
            tail = tail.strip(",.!?: ")
        text += tail if tail.startswith((",", ".", "!", "?")) else f" {tail}"
        mark = "" if text[-1] in ".?!" else mark
    if rng.random() < 0.14:
        text = f"{pick(rng, 'leads')} {text}"
    np, link = story_np(rng), pick(rng, "links")
    text = text.replace("{np}", np).replace(" {l}", link if link[0] == "," else f" {link}")
    fill = fill | {
        "noun": pick(rng, "nouns"),
        "k": rng.choice(PEOPLE).replace("_", " "),
        "n2": rng.randint(3, 12),
        "N2": topics.name(rng),
        "past": pick(rng, "past"),
        "did": pick(rng, "did"),
    }
    fill.setdefault("n", rng.randint(3, 12))
    text = hurried(rng, text.replace("{n} year", "{n2} year")).format(**fill)
    return spelled_fast(rng, text + mark)


def spelled_fast(rng, text):
    style = rng.random()
    if style < 0.02:
        return text.upper()
    if style < 0.55:
        return text[0].upper() + text[1:]
    if style < 0.75:
        return text.lower()
    return text.lower().rstrip(".!?") if style < 0.85 else text


def clause(rng):
    return pick(rng, "clauses")
