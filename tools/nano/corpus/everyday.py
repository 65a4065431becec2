"""What people ask for first: a story about anything. Its first sentences name what was asked
for."""

from corpus import asked, stories, topics, words
from corpus.instance import ask, careless

OPEN_STORY = [
    "Tell me something nice.",
    "I am bored. Tell me something.",
    "Tell me a tale.",
    "Make up something for my children.",
    "I cannot sleep. Tell me a story.",
    "Entertain me.",
    "Surprise me with a story.",
    "another story",
    "one more story please",
    "story",
    "story please",
    "story time",
    "any story",
    "tell me any story you like",
    "a random story",
    "do you know any stories",
    "can I have a story",
    "write me a story",
    "bedtime story please",
    "once upon a time",
    "tell me a short story about anything",
    "I want to hear a story",
    "read me something before I sleep",
    "a tale for tonight please",
    "tell us a story",
    "what story can you tell me?",
    "do you have a story for me",
    "I would love a story",
    "I want a story",
    "I'd like a story please",
    "please tell me a story",
    "could you tell me a story?",
    "would you tell me a story",
    "will you tell me a story",
    "let me hear a story",
    "let's hear a story",
    "give me a story",
    "give me a short story",
    "make up a story",
    "make up a story for me",
    "invent a story",
    "tell me a bedtime tale",
    "tell me a fairy tale",
    "a fairy tale please",
    "a bedtime story",
    "a short story please",
    "read me a story",
    "tell my kids a story",
    "tell me one of your stories",
    "tell me your favourite story",
    "tell me your best story",
    "tell me a new story",
    "tell me a different story",
    "tell me another story",
    "tell me one more story",
    "tell me something",
    "tell me a story, I can't sleep",
    "my kids want a story",
    "we want a story!",
    "now a story",
    "ok, now tell me a story",
    "just tell a story",
    "what about a story?",
    "how about a story?",
    "time for a story",
    "story!",
]
# One beginning for all of them, so that what was asked for is all there is to find.
ABOUT = "This is a story about "
BEING = ABOUT + "{a_who} named {N}."
BEING_THERE = ABOUT + "{a_who} named {N}, who lived {where}."
TWO = ABOUT + "{a_who} named {N} and {second}."
THING = ABOUT + "{what} and a child named {N}."
LIVED = ["", "", " {N} lived near the {place}.", " {N} loved to play in the {place}."]
JOINED = [
    "and",
    "and",
    "and",
    "with",
    "who meets",
    "who finds",
    "that sees",
    "together with",
    "who has",
]
TRIPS = [
    "a trip to",
    "a journey to",
    "a long way to",
    "a flight to",
    "a holiday in",
    "a walk through",
    "a summer in",
    "the way to",
    "a night in",
    "moving to",
    "going to",
    "a train to",
    "a bus to",
]
DEEDS = """finding losing building climbing painting buying stealing selling riding baking catching
fixing chasing visiting hunting drawing growing feeding cleaning carrying breaking hiding
following meeting making missing helping saving looking_for taking_care_of""".split()


def fills(rng, **more):
    """What a story says: what was asked for, and known names and places for the rest."""
    fill = stories.cast(rng)
    fill |= more
    if fill["N"] in words.NAMES:
        of = stories.pronouns(fill["N"] in words.GIRLS)
        fill |= of | {k.capitalize(): v.capitalize() for k, v in of.items()}
    return fill | {"a_who": words.article(fill["who"])}


def tell_from(rng, opening, fill):
    """A plot after an opening that has named what was asked for."""
    moral, sentences = stories.PLOTS[rng.choice(sorted(stories.PLOTS))]
    told = (
        [opening + rng.choice(LIVED)]
        + [rng.choice(part) for part in sentences]
        + [rng.choice(stories.END)]
    )
    if rng.random() < 0.5:
        told.append(rng.choice(stories.MORALS[moral]))
    return " ".join(s.format(**fill) for s in told).replace(" a orange", " an orange")


def requested(rng, topic, noun=None):
    """A request for a story about `topic`, or about `noun`, which has no article."""
    if noun and rng.random() < 0.35:
        text = asked.pick(rng, "one noun")
        return asked.filled(rng, text, x=noun, a_x=words.article(noun))
    if rng.random() < 0.12:
        topic += " " + asked.clause(rng)
    text, question = asked.frame(rng)
    return asked.filled(rng, text, t=topic, question=question)


def referred(rng, noun):
    return rng.choice([words.article(noun)] * 5 + [f"the {noun}", f"my {noun}", f"our {noun}"])


def about_being(rng):
    who = topics.described(rng, topics.being(rng), 0.3)
    fill, opening, topic = fills(rng, who=who), BEING, referred(rng, who)
    if rng.random() < 0.15:
        fill["where"], opening = topics.place(rng), BEING_THERE
        topic, who = f"{topic} {fill['where']}", None
    plain = who and rng.random() < 0.05
    request = careless(rng, f"Tell me about {topic}.") if plain else requested(rng, topic, who)
    return request, tell_from(rng, opening, fill)


def about_named_being(rng):
    name, who = topics.name(rng), topics.described(rng, topics.being(rng), 0.2)
    fill = fills(rng, N=name, who=who)
    if rng.random() < 0.4:
        text = asked.pick(rng, "named being")
        request = asked.filled(rng, text, n=name, x=who, a_x=fill["a_who"])
    else:
        forms = ["{a} named {n}", "{a} called {n}", "{n} the {x}", "{n}, {a},", "my {x} {n}"]
        topic = rng.choice(forms).format(a=fill["a_who"], x=who, n=name)
        request = requested(rng, topic)
    return request, tell_from(rng, BEING, fill)


def about_name(rng):
    """Somebody of whom nothing but the name is said."""
    fill = fills(rng, N=topics.name(rng), who="child")
    if rng.random() < 0.5:
        request = asked.filled(rng, asked.pick(rng, "named"), n=fill["N"])
    else:
        friend = rng.choice(["", "", "", "my friend ", "our ", "little "])
        request = requested(rng, friend + fill["N"])
    return request, tell_from(rng, BEING, fill)


def about_friends(rng):
    first, second = topics.name(rng), topics.name(rng)
    fill = fills(rng, N=first, who="child")
    opening = f"{ABOUT}two friends named {first} and {second}."
    return requested(rng, f"{first} and {second}"), tell_from(rng, opening, fill)


def about_two(rng):
    first = topics.described(rng, topics.being(rng), 0.2)
    noun = topics.being(rng) if rng.random() < 0.5 else topics.thing(rng)
    second = words.article(topics.described(rng, noun, 0.2))
    fill = fills(rng, who=first, second=second)
    if rng.random() < 0.15:
        topic = f"{first}, {noun}"
        fill["second"] = words.article(noun)
    elif rng.random() < 0.15:
        topic = f"the {first} and the {noun}"
        fill["second"] = words.article(noun)
    elif rng.random() < 0.2:
        fill = fills(rng, N=topics.name(rng), who="child", second=words.article(noun))
        of = rng.choice(["his", "her", "the", "their", "a", "my"])
        topic = f"{fill['N']} and {words.article(noun) if of == 'a' else f'{of} {noun}'}"
    else:
        topic = f"{fill['a_who']} {rng.choice(JOINED)} {second}"
    return requested(rng, topic), tell_from(rng, TWO, fill)


def about_thing(rng):
    what = topics.described(rng, topics.thing(rng), 0.3)
    fill = fills(rng, what=words.article(what))
    return requested(rng, referred(rng, what), what), tell_from(rng, THING, fill)


def deed(rng):
    """Something that one does, or where one goes."""
    if rng.random() < 0.4:
        there = rng.choice(words.CITIES + topics.COUNTRIES + [topics.given_name(rng)] * 30)
        return f"{rng.choice(TRIPS)} {there}"
    noun = topics.being(rng) if rng.random() < 0.5 else topics.thing(rng)
    return f"{rng.choice(DEEDS).replace('_', ' ')} {words.article(noun)}"


def about_idea(rng):
    kind, noun = rng.random(), None
    if kind < 0.35:
        what = rng.choice(topics.IDEAS)
        noun = None if what.startswith(("a ", "the ")) else what
    elif kind < 0.5:
        what = deed(rng)
    elif kind < 0.75:
        what = noun = topics.plural(topics.being(rng) if rng.random() < 0.5 else topics.thing(rng))
        what = noun = topics.described(rng, what, 0.3)
    elif kind < 0.9:
        what = noun = topics.unheard(rng)
    else:
        what = f"{topics.described(rng, topics.thing(rng), 0.5)} and {topics.unheard(rng)}"
    fill = fills(rng, what=what)
    return requested(rng, what, noun), tell_from(rng, THING, fill)


def about_place(rng):
    fill = fills(rng, who="child", where=topics.place(rng))
    request = asked.filled(rng, asked.pick(rng, "set in"), w=fill["where"])
    return request, tell_from(rng, BEING_THERE, fill)


TOPICS = {
    about_being: 30,
    about_named_being: 12,
    about_name: 12,
    about_friends: 3,
    about_two: 9,
    about_thing: 20,
    about_idea: 12,
    about_place: 7,
}


def story(rng):
    if rng.random() < 0.04:
        question = careless(rng, rng.choice(OPEN_STORY))
        return ask("stories", question, stories.tell(rng, stories.cast(rng)), opening=24)
    kind = rng.choices(list(TOPICS), list(TOPICS.values()))[0]
    request, told = kind(rng)
    return ask("stories", request, told, opening=28)
