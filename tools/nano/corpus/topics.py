"""What people ask stories about, and words that nobody has heard: a model that learns from them has
to spell what it is asked for by copying it."""

from corpus import words
from corpus.phrases import read

SAID = read("topics")
BEINGS, OBJECTS = SAID["beings"] + words.ANIMALS, SAID["objects"] + words.THINGS
PAIRS, IDEAS, ADJECTIVES = SAID["pairs"], SAID["ideas"], SAID["adjectives"]
COUNTRIES, SPOTS, MORE_NAMES = SAID["countries"], SAID["spots"], SAID["names"]
ONSETS = "b br ch d dr f fl g gr h j k kl l m n p pl qu r s sh sk sn t th tr v w x y z zr".split()
VOWELS = "a e i o u aa ee oo ai ou".split()
ENDS = ["", "", "n", "m", "r", "l", "x", "nd", "rt", "sk", "p", "b", "zz", "th"]


def syllable(rng):
    return rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(ENDS)


def unheard(rng):
    """A word that nobody has heard."""
    return "".join(syllable(rng) for _ in range(rng.choice([1, 2, 2, 2, 3])))


def halves(word):
    """What a word can be cut into: before a vowel or a consonant that one follows."""
    return [i for i in range(2, len(word) - 1) if word[i] in "aeiouy" or word[i - 1] in "aeiouy"]


def blend(rng, known):
    """The beginning of one word and the end of another: spelled as a real word that the corpus
    lacks would be."""
    while True:
        ahead, behind = rng.choice(known), rng.choice(known)
        cuts, ends = halves(ahead), halves(behind)
        if cuts and ends:
            return ahead[: rng.choice(cuts)] + behind[rng.choice(ends) :].lower()


def joined(rng, known):
    """Two words in one, or beside each other."""
    return rng.choice(known) + rng.choice(["", "", " "]) + rng.choice(known).lower()


def one_of(rng, known):
    """A noun: mostly a known one, or a word that nobody has heard."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(known)
    if kind < 0.58:
        return rng.choice(PAIRS)
    if kind < 0.78:
        return blend(rng, known)
    return joined(rng, known) if kind < 0.86 else unheard(rng)


TITLES = """Mr Mr Mrs Miss Doctor Captain Princess Prince King Queen Sir Lady Uncle Aunt Grandpa
Grandma Old Little Baby Professor Saint Big""".split()


def given_name(rng):
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(words.NAMES)
    if kind < 0.5:
        return rng.choice(MORE_NAMES)
    return blend(rng, MORE_NAMES) if kind < 0.8 else unheard(rng).capitalize()


def name(rng):
    made, kind = given_name(rng), rng.random()
    if kind < 0.05:
        return f"{rng.choice(TITLES)} {made}"
    return f"{made} {rng.choice(words.SURNAMES)}" if kind < 0.08 else made


def being(rng):
    return one_of(rng, BEINGS)


def thing(rng):
    return one_of(rng, OBJECTS)


def place(rng):
    """A place with its preposition."""
    if rng.random() < 0.3:
        return f"{rng.choice(['in', 'near', 'at'])} {rng.choice(['a', 'the', 'an old'])} " + (
            rng.choice(SPOTS) if rng.random() < 0.7 else thing(rng)
        )
    if rng.random() < 0.5:
        return f"in {rng.choice(words.CITIES + COUNTRIES + [unheard(rng).capitalize()] * 20)}"
    return rng.choice(["in the", "near the", "by the"]) + " " + rng.choice(words.PLACES)


def described(rng, noun, chance):
    """Now and then with what it is like before it."""
    return f"{rng.choice(ADJECTIVES)} {noun}" if rng.random() < chance else noun


def plural(noun):
    if noun.endswith(("s", "x", "ch", "sh", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"
