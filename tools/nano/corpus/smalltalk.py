"""Small talk in many words: greetings, thanks, feelings, and who is there."""

from corpus import chat, topics
from corpus.instance import ask, hurried
from corpus.phrases import read
from corpus.slots import parts

NO = "No. " + chat.ABOUT
GLAD = ["I am glad. What would you like to do next?"]
SORRY = ["I am sorry. I am a very small model and make mistakes."]
COMFORT = ["I am sorry to hear that. Would you like to hear a story?"]
JOY = ["That is good to hear! What would you like to do next?"]
JOKES = [
    "Why did the bicycle fall over? It was two tired.",
    "What has hands but cannot clap? A clock.",
]
ENGINE = [
    "Banyan is an engine that runs language models. A banyan is also a large tree with many roots."
]
# what is meant (a section of phrases/smalltalk.txt), and the answers
TALK = {
    "greeting": ["Hello! How can I help you?", "Hi! What can I do for you?"],
    "who": [chat.ABOUT, chat.ABOUT + " " + chat.CAN],
    "can": [chat.CAN + " I know little else."],
    "thanks": ["You are welcome!"],
    "bye": ["Goodbye! Have a nice day.", "Goodbye!"],
    "fine": ["I am fine, thank you. How can I help you?"],
    "maker": ["I was trained from scratch on two cores for the Banyan engine."],
    "size": ["I have about ten million parameters. That is very small."],
    "praise": GLAD,
    "here": ["I am here. How can I help you?"],
    "complaint": SORRY,
    "joke": JOKES,
    "no": [NO],
    "banyan": ENGINE,
    "meet": ["Nice to meet you, too! How can I help you?"],
}
SAD = """sad lonely tired angry sick ill stressed unhappy bored_and_sad afraid scared worried
nervous depressed upset hurt exhausted heartbroken frustrated anxious miserable down blue hopeless
lost confused_and_sad so_alone disappointed_today in_pain not_well not_feeling_well not_ok
overwhelmed homesick hungry_and_cold ashamed jealous broke fed_up not_happy really_low
a_bit_down""".split()
HAPPY = """happy glad excited delighted cheerful thrilled joyful proud in_love content pleased
overjoyed so_lucky on_holiday feeling_great feeling_good in_a_good_mood full_of_joy great
super_happy very_well fine_and_happy well_rested relaxed on_top_of_the_world""".split()
HOW = ["", "", "", "so ", "very ", "a bit ", "really ", "quite ", "just ", "feeling ", "too "]
WHEN = [
    "",
    "",
    "",
    " today",
    " now",
    " right now",
    " tonight",
    " again",
    " this week",
    " these days",
]
FILLS = {
    "day": "day|morning|week|evening|night|time|year|weekend|afternoon",
    "one": """mother|father|friend|brother|sister|wife|husband|girlfriend|boyfriend|grandmother|
grandfather|son|daughter|boss|teacher|aunt|uncle|best friend|mom|dad|child|neighbour|cousin""",
    "pet": "dog|cat|hamster|rabbit|puppy|kitten|bird|fish|horse|parrot|turtle|guinea pig",
    "part": "leg|arm|foot|back|tooth|hand|knee|finger|stomach|ear",
}
INTRODUCED = [
    "my name is {}",
    "I am {}",
    "I'm {}",
    "I'm {}, nice to meet you",
    "hi, I am {}",
    "hi, I'm {}",
    "hello, my name is {}",
    "hello, I'm {}",
    "hey, I'm {}",
    "you can call me {}",
    "please call me {}",
    "call me {}",
    "just call me {}",
    "people call me {}",
    "everybody calls me {}",
    "my friends call me {}",
    "hey, {} here",
    "hi, {} here",
    "this is {}",
    "hello, this is {}",
    "it's {}",
    "hi, it's {}",
    "{} is my name",
    "the name is {}",
    "name's {}",
    "my name's {}",
    "I am called {}",
    "I'm called {}",
    "I go by {}",
    "hi! my name is {}, what's up",
    "hello Banyan, I am {}",
    "good morning, I am {}",
    "good evening, my name is {}",
    "let me introduce myself: I am {}",
    "may I introduce myself, {}",
    "so, I am {}",
    "by the way, I'm {}",
    "my name is {}, nice to meet you",
    "hi Nano, {} is my name",
    "I'm {} and I am new here",
    "you are talking to {}",
    "my parents named me {}",
    "I was named {}",
    "remember my name: {}",
]
BEFORE = """hi, |hello, |hey, |so, |well, |ok, |oh, |please, |and |but |um, |hey Banyan, |
now """.replace("\n", "").split("|")
AFTER = """ please| then| today| now|, friend|, Banyan|, my friend|, dear| ok| again|, bot| really|
 by the way|, man|, buddy| here| for me|, please""".replace("\n", "").split("|")
QUESTION_WORDS = """who what how are do can is may where which will got did have when why does am
would could has was were whom""".split()


SAID = read("smalltalk")
FILLS = {slot: parts(texts) for slot, texts in FILLS.items()}


def introduction(rng):
    name = topics.name(rng)
    return rng.choice(INTRODUCED).format(name), [f"Nice to meet you, {name}!"]


def feeling(rng):
    sad = rng.random() < 0.55
    if rng.random() < 0.45:
        state = rng.choice(SAD if sad else HAPPY).replace("_", " ")
        said = rng.choice(["I am ", "I'm ", "I feel ", "im ", "we are ", "I am feeling "])
        how = "" if " " in state else rng.choice(HOW)
        said = (said + how + state + rng.choice(WHEN)).replace("feel feeling", "feel")
        if rng.random() < 0.15:
            said += f" because of my {rng.choice(FILLS['one'])}"
        return said.replace("feeling feeling", "feeling"), COMFORT if sad else JOY
    fill = {slot: rng.choice(texts) for slot, texts in FILLS.items()}
    said = rng.choice(SAID["sad news" if sad else "good news"])
    said = said.format(**fill, thing=topics.thing(rng)) + rng.choice(WHEN[:6])
    return said.replace(" today today", " today"), COMFORT if sad else JOY


def phrase(rng):
    meant = rng.choice(list(TALK))
    question, answers = rng.choice(SAID[meant]), TALK[meant]
    if question[0].isalpha() and rng.random() < 0.12:
        question = rng.choice(BEFORE) + question
    if question[-1].isalpha() and rng.random() < 0.12:
        question += rng.choice(AFTER)
    return hurried(rng, question), answers


def marked(rng, said):
    """With a capital and a mark at its end, or without."""
    style = rng.random()
    if style < 0.55:
        said = said[0].upper() + said[1:]
    elif style < 0.75:
        said = said.lower()
    if rng.random() < 0.55 and said[-1].isalnum():
        first = said.lower().split()[0].removesuffix("'s")
        said += "?" if first in QUESTION_WORDS else rng.choice([".", ".", "!", "!!", "..."])
    return said


def talk(rng):
    kind = rng.random()
    made = introduction if kind < 0.13 else feeling if kind < 0.3 else phrase
    said, answers = made(rng)
    opening = 0 if made is introduction else 8
    return ask("chat", marked(rng, said), rng.choice(answers), opening=opening)
