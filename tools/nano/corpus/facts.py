"""The few facts of chat.py in many words, and questions like them to which it has no answer."""

from corpus import chat, topics, words
from corpus.instance import Instance, ask, assistant, careless, user
from corpus.slots import parts

CAPITAL = """What is the capital of {k}?|what's the capital of {k}|the capital of {k}|
capital of {k}|
capital of {k} please|{k}'s capital|{k}'s capital?|what is {k}'s capital|{k} capital|
{k} capital city|
{k}: capital?|capital city of {k}|which city is {k}'s capital|what city is the capital of {k}|
Which town is the capital of {k}?|name the capital of {k}|tell me the capital of {k}|
do you know the capital of {k}|can you tell me the capital of {k}|I forgot the capital of {k}|
what do they call the capital of {k}|what is the name of {k}'s capital|
what is the capital city of {k}|
I need the capital of {k}|give me the capital of {k}|in {k}, what is the capital|
the main city of {k}, its capital|say the capital of {k}|hi, what is the capital of {k}|
could you name the capital of {k}|where is the government of {k}, in which capital|
quiz: capital of {k}|please tell me the capital of {k}|how is the capital of {k} called"""
OPPOSITE = """What is the opposite of {k}?|what's the opposite of {k}|opposite of {k}|
the opposite of {k}?|
the opposite of {k} is what|{k}, opposite?|{k} - opposite|opposite: {k}|what is opposite to {k}|
tell me the opposite of {k}|the reverse of {k}|antonym of {k}|what is the antonym of {k}|
give me the opposite of {k}|which word is the opposite of {k}|do you know the opposite of {k}|
what word means the opposite of {k}|not {k} but the opposite|the contrary of {k}|
name the opposite of {k}|say the opposite of {k}|I need the opposite of {k}|
can you tell me the opposite of {k}|
what would be the opposite of {k}|opposite word for {k}|{k} has what opposite|
if not {k}, then what, the opposite"""
SOUND = """What does {a} say?|what do {s} say|what sound does {a} make|what noise does the {k} make|
how does {a} sound|what sound do {s} make|the sound of {a}|sound of {a}|which sound does {a} make|
what is the sound of {a}|what noise do {s} make|how do {s} sound|{a} makes what sound|{a} says what|
{k} sound|{k} noise|tell me what {a} says|tell me what sound {a} makes|do you know what {a} says|
how does the {k} talk|what does your {k} say|what do you hear from {a}|make the sound of {a}|
can you sound like {a}|what noise is made by {a}|what does the {k} go like|how goes the {k}|
my child asks what {a} says|the {k} says|{s} say what"""
COLOUR = """What colour is {the}?|what color is {the}|which colour has {the}|which color is {the}|
what is the colour of {the}|what is the color of {the}|colour of {the}|color of {the}|{k} colour|
{k} color|
the colour of {the}?|tell me the colour of {the}|what color does {the} have|
what colour does {the} have|
do you know the colour of {the}|{k}, what colour|of what colour is {the}|in what color is {the}|
what's the color of {the}|name the colour of {the}|is {the} of some colour, which|
say the colour of {the}|
can you tell me the color of {the}|how is {the} coloured|which colour would {the} be"""
LEGS = """How many legs does {a} have?|how many legs do {s} have|how many legs has {a}|legs of {a}|
number of legs of {a}|how many legs has the {k}|count the legs of {a}|
how many legs are there on {a}|
what number of legs does {a} have|{k} legs, how many|{k}: how many legs|{s} have how many legs|
{a} has how many legs|tell me how many legs {a} has|do you know how many legs {a} has|
on how many legs does {a} walk|with how many legs does {a} walk|how many legs can I count on {a}|
how many feet does {a} stand on, I mean legs|the number of legs on {a}|
legs does {a} have how many"""
AFTER = """what comes after {k}|what comes next after {k}|{w} after {k}|the {w} after {k}|
what is after {k}|
what {w} comes after {k}|which {w} comes after {k}|which {w} is after {k}|what {w} is after {k}|
what follows {k}|which {w} follows {k}|what {w} follows {k}|what is the {w} after {k}|
after {k} comes|
after {k} comes what|tell me the {w} after {k}|tell me what comes after {k}|what is next after {k}|
{k} is followed by which {w}|the next {w} after {k}|name the {w} after {k}|
if today is {k}, what is next"""
BEFORE = """what comes before {k}|{w} before {k}|the {w} before {k}|what is before {k}|
what {w} comes before {k}|which {w} comes before {k}|which {w} is before {k}|what {w} is before {k}|
what is the {w} before {k}|before {k} comes|before {k} comes what|tell me the {w} before {k}|
tell me what comes before {k}|which {w} precedes {k}|what goes before {k}|name the {w} before {k}|
which {w} is just before {k}|what was the {w} before {k}"""
NUMBER = """What number comes after {k}?|what comes after {k}|which number comes after {k}|
number after {k}|
the number after {k}|what is the number after {k}|what is the next number after {k}|after {k} comes|
what follows {k}|which number follows {k}|next number after {k}|tell me the number after {k}|
the next number after {k}|I count to {k}, what is next|count on from {k}|
{k} and then comes which number"""


CAPITAL, OPPOSITE, SOUND, COLOUR, LEGS, AFTER, BEFORE, NUMBER = map(
    parts, (CAPITAL, OPPOSITE, SOUND, COLOUR, LEGS, AFTER, BEFORE, NUMBER)
)
PLURALS = {"mouse": "mice", "sheep": "sheep", "fish": "fish", "grass": "grass", "leaf": "leaves"}
BARE = ["grass", "snow", "coal", "blood", "milk"]


def animal(rng, kinds, texts):
    k = rng.choice(kinds)
    many = PLURALS.get(k) or topics.plural(k)
    return k, rng.choice(texts).format(k=k, a=words.article(k), s=many)


def coloured(rng, k):
    the = [k] if k in BARE else [f"the {k}"] * (4 if k == "sky" else 1) + [words.article(k)]
    if k not in BARE and k != "sky":
        the += [words.article(k), PLURALS.get(k) or topics.plural(k)]
    return rng.choice(COLOUR).format(the=rng.choice(the), k=k)


def capital(rng):
    k, v = rng.choice(sorted(chat.CAPITALS.items()))
    return rng.choice(CAPITAL).format(k=k), f"The capital of {k} is {v}."


def opposite(rng):
    k, v = rng.choice(sorted(chat.OPPOSITES.items()))
    return rng.choice(OPPOSITE).format(k=k), f"The opposite of {k} is {v}."


def sound(rng):
    k, question = animal(rng, sorted(chat.SOUNDS), SOUND)
    return question, f"{words.article(k).capitalize()} says {chat.SOUNDS[k]}."


def colour(rng):
    k, v = rng.choice(sorted(chat.COLOUR_OF.items()))
    return coloured(rng, k), f"It is {v}."


def legs(rng):
    k, question = animal(rng, sorted(chat.LEGS), LEGS)
    return question, f"{words.article(k).capitalize()} has {chat.LEGS[k]} legs."


def in_a_row(rng):
    row, kind = rng.choice([(words.DAYS, "day"), (words.MONTHS, "month")])
    at, (side, step, texts) = (
        rng.randrange(len(row)),
        rng.choice([("after", 1, AFTER), ("before", -1, BEFORE)]),
    )
    answer = f"{row[(at + step) % len(row)]} comes {side} {row[at]}."
    return rng.choice(texts).format(k=row[at], w=kind), answer


def number(rng):
    n = rng.randint(0, 200)
    return rng.choice(NUMBER).format(k=n), f"After {n} comes {n + 1}."


def unknown(rng):
    """Of what is not among them."""

    def other(draw, known):
        while (k := draw()) in known:
            pass
        return k

    kind = rng.randrange(5)
    if kind == 0:
        k = rng.choice(topics.COUNTRIES + [topics.unheard(rng).capitalize()] * 10)
        return rng.choice(CAPITAL).format(k=k)
    if kind == 1:
        draw = lambda: rng.choice([topics.thing(rng), rng.choice(topics.ADJECTIVES)])  # noqa: E731
        return rng.choice(OPPOSITE).format(
            k=other(draw, [*chat.OPPOSITES, *chat.OPPOSITES.values()])
        )
    if kind == 2:
        k = other(lambda: topics.being(rng), [*chat.SOUNDS, "kitten", "puppy", "lamb", "hen"])
        return animal(rng, [k], SOUND)[1]
    if kind == 3:
        return coloured(rng, other(lambda: topics.thing(rng), [*chat.COLOUR_OF]))
    return animal(rng, [other(lambda: topics.being(rng), [*chat.LEGS, "kitten", "puppy"])], LEGS)[1]


MAKERS = [capital] * 4 + [opposite] * 4 + [sound] * 3 + [colour] * 3 + [legs] * 3 + [in_a_row] * 4


def fact(rng):
    if rng.random() < 0.16:
        question = careless(rng, unknown(rng))
        return Instance("chat", [user(question), assistant(chat.CANNOT)], opening=5)
    question, answer = rng.choice([*MAKERS, number])(rng)
    if rng.random() < 0.5:
        question = question[0].upper() + question[1:]
    if rng.random() < 0.4 and question[-1].isalnum():
        question += "?"
    return ask("chat", careless(rng, question), answer)
