"""How people ask for a story: requests put together from their parts, so that what is asked for is
found in them wherever it stands."""

from corpus import topics, words
from corpus.instance import hurried

VERBS = """tell|tell|tell|write|write|make up|invent|create|give|narrate|compose|spin|share|read|
think up|come up with|produce|craft|send|do|start|begin|improvise|make""".replace("\n", "")
FOR_ME = ["tell", "write", "give", "read", "send", "make", "make up", "spin", "compose"]
KINDS = """short little long funny sad happy scary spooky silly cute sweet nice good new quick
tiny simple magical exciting cosy very_short gentle calm wild true strange lovely small wonderful
one-minute three-sentence heart-warming really_good""".split()
NOUNS = """story|story|story|story|story|story|tale|tale|fairy tale|bedtime story|fable|yarn|
adventure story|children's story|kids story|good night story|adventure|short story|fairy story|
legend|narrative|night story|story book page""".replace("\n", "")
LINKS = """about|about|about|about|about|with|with|of|featuring|starring|on|involving|concerning|
that has|that is about|all about|based on|around|centred on|dealing with|which includes|
with the topic|, topic:|, theme:|, main character:|, the hero is|whose hero is""".replace("\n", "")
AFTER = [
    "in which {t} appears",
    "where {t} is the hero",
    "in which {t} plays a part",
    "with {t} in it",
    "that {t} is in",
    "where {t} finds something",
    "where {t} makes a friend",
    "that has {t} in it",
    "where the main character is {t}",
    "in which {t} goes on a journey",
    "and put {t} in it",
    "and make it about {t}",
    "but with {t} in it",
]
PEOPLE = """son daughter kid kids children niece nephew little_sister brother class pupils
grandson mother friend baby boy girl wife husband students cousin godchild two_kids toddler twins
dad granny""".split()
LEADS = """hi,|hello!|hey,|please|ok,|now|so,|well,|hey Banyan,|good evening,|Hi there.|
I am bored.|I can't sleep.|It is late.|It's bedtime.|We are in bed now.|story time!|
next one:|My {k} cannot sleep.|My {k} is tired.|Hello Banyan!|alright,|then|
I have an idea.|quick,|one more please:|again,|I liked that.|Another one:""".replace("\n", "")
TAILS = """please|, please|for my {k}|for a {n} year old|for kids|, thanks|before bed|tonight|
for tonight|to help me sleep|with a happy end|in simple words|, not too long|in five sentences|
, ok?|if you can|if you like|for my {k}, please|for bedtime|for school|, would you|for a child|
for the {k}|for children|right now|for us|for {n} year olds|that ends well|for my {k} {N2}|
, a short one|, keep it short|, make it funny|in English|, my friend|for a rainy day|pls|plz|
, thank you|for little children|, just a few lines|, but not scary|this time""".replace("\n", "")
CLAUSES = """who cannot sleep|who learns to dance|who wants to see the sea|who is afraid of water|
who lost a shoe|who finds a map|who lives alone|who cannot fly|who likes cheese|who went to school|
who is always late|who helps everybody|who has no friends|who gets lost|who dreams of the stars|
that could talk|that nobody wanted|that was magic|that fell from the sky|in the snow|at night|
in a far country|on a boat|in space|under the bed|with three legs|with a big nose|and their friends|
on a rainy day|from the north|who loves music|who hates mornings|who becomes king|that got lost|
who builds a house|and what happened next|who meets a stranger|who wakes up one day|
who saves the day|
trying to find a home|looking for a friend|on the way home|at school|who is very hungry|
who wants to win a race|who can't swim|who plays football|who tells lies|
who forgot everything""".replace("\n", "")
SPLIT = {
    name: [part.strip() for part in text.split("|")]
    for name, text in dict(
        verbs=VERBS, nouns=NOUNS, links=LINKS, leads=LEADS, tails=TAILS, clauses=CLAUSES
    ).items()
}
QUESTIONS = [
    "do you know {np} {l} {t}",
    "do you have {np} {l} {t}",
    "have you heard {np} {l} {t}",
    "is there {np} {l} {t}",
    "how about {np} {l} {t}",
    "what about {np} {l} {t}",
    "got {np} {l} {t}",
    "can I hear {np} {l} {t}",
    "may I get {np} {l} {t}",
    "could we get {np} {l} {t}",
    "may we read {np} {l} {t}",
    "shall we have {np} {l} {t}",
    "can {t} be the hero of {np}",
    "could {t} appear in {np}",
    "can there be {np} {l} {t}",
    "would {t} fit into {np}",
    "any stories {l} {t}",
    "any {noun} {l} {t} today",
    "what happened to {t} in the story",
    "what does {t} do in {np}",
    "what did {t} do in the story",
    "how does the story of {t} go",
    "how does the tale of {t} begin",
    "do you know the story of {t}",
    "can you do one about {t}",
    "can you do {np} {l} {t}",
    "could you put {t} in {np}",
    "will you do {np} {l} {t} for me",
    "can you make one up about {t}",
    "can you think of {np} {l} {t}",
    "what would {np} {l} {t} be like",
    "are there stories about {t}",
    "who will tell me {np} {l} {t}",
]
STATEMENTS = [
    "I want {np} {l} {t}",
    "I want to hear {np} {l} {t}",
    "I would like {np} {l} {t}",
    "I'd like to read {np} {l} {t}",
    "I need {np} {l} {t}",
    "I'd enjoy {np} {l} {t}",
    "I would love {np} {l} {t}",
    "I'm looking for {np} {l} {t}",
    "I am in the mood for {np} {l} {t}",
    "I feel like {np} {l} {t}",
    "I'd be happy to hear {np} {l} {t}",
    "I love to hear about {t} before I sleep",
    "I want to read about {t}",
    "I'd love to hear about {t}",
    "we want {np} {l} {t}",
    "we would love {np} {l} {t}",
    "my {k} wants {np} {l} {t}",
    "my {k} asks for {np} {l} {t}",
    "my {k} would like {np} {l} {t}",
    "my {k} wants to hear about {t}",
    "the {k} would like {np} {l} {t}",
    "my {k} loves {t}, so tell a story",
    "my {k} likes {t} very much. Any story?",
    "my {k} is mad about {t}. Please make a story",
    "my {k} wants {t} in {np}",
    "let me hear {np} {l} {t}",
    "let us have {np} {l} {t}",
    "let me read {np} {l} {t}",
    "let's hear {np} {l} {t}",
    "give {np} {l} {t} a try",
    "it should be {np} {l} {t}",
    "try {np} {l} {t}",
]
BARE = [
    "{np} {l} {t}",
    "{np} {l} {t}",
    "{noun} {l} {t}",
    "{noun} about {t}",
    "{noun}: {t}",
    "{noun}, {t}",
    "{noun}. {t}.",
    "{noun} - {t}",
    "the story of {t}",
    "the tale of {t}",
    "the adventures of {t}",
    "the life of {t} as a story",
    "one day in the life of {t}, a story",
    "something about {t}, as a story",
    "something with {t} for bedtime",
    "one about {t}",
    "another one about {t}",
    "one more about {t}",
    "the same with {t}",
    "now with {t}",
    "now one about {t}",
    "make it about {t}",
    "make one with {t}",
    "this time about {t}",
    "topic: {t}. Write a story",
    "subject: {t}. Format: story",
    "theme {t}, tell a story",
    "{t}, as a story",
    "{t}: a story",
    "{t} - story please",
    "{t}. A story.",
    "{t} in a story",
    "{t}! Tell a story!",
    "{t} is the hero. Go",
    "{t} is the main character. Tell the story",
    "the hero is {t}. Begin",
    "the main character should be {t}, write a story",
    "there was {t}. Go on with the story",
    "there once was {t}. Continue",
    "once upon a time there was {t}. What happened?",
    "once upon a time, {t}",
    "once there lived {t}. Tell me more",
    "imagine {t}. Now tell a story",
    "think of {t} and tell a story",
    "take {t} and write a story",
    "use {t} in {np}",
    "write about {t}",
    "write something about {t}",
    "write a few lines about {t}",
    "write a paragraph of fiction about {t}",
    "write a little something with {t}",
    "make something up about {t}",
    "invent something with {t}",
    "tell me something about {t}, like in a story",
    "tell about {t}, as a story",
    "tell me about {t} in a story",
    "tell me of {t}",
    "tell me what happened to {t}",
    "tell me what {t} did one day",
    "tell the story of {t}",
    "narrate the story of {t}",
    "narrate something about {t}",
    "tell the tale of {t}",
    "tell me about the day {t} came to town, a story",
    "tell how {t} found a friend",
    "I wish to know how {t} found a friend, as a story",
    "let {t} have an adventure",
    "send {t} on an adventure",
    "give {t} a story",
]
ONE_NOUN = [  # around a noun without its article
    "{a_x} story",
    "{a_x} story please",
    "{x} story",
    "{x} story!",
    "{x} tale",
    "tell me {a_x} story",
    "tell {a_x} story",
    "write {a_x} story for my {k}",
    "I want {a_x} story",
    "can we have {a_x} story",
    "give me {a_x} tale",
    "I'd love {a_x} story",
    "my {k} wants {a_x} story",
    "another {x} story",
    "one more {x} story please",
    "do {a_x} story",
    "let's do {a_x} story",
    "how about {a_x} story",
    "a short {x} story",
    "a funny {x} story",
    "bedtime {x} story",
    "a {x} bedtime story",
    "story {x}",
    "story: {x}",
    "story topic {x}",
    "story, {x}",
    "short story {x}",
    "fairy tale {x}",
    "story about {x}",
    "tell story about {x}",
    "{x}, story",
    "{x} - tell a story",
    "may I hear your {x} story",
    "got {a_x} story",
    "a very short story, {x}",
    "a story. {x}.",
    "i want story about {x}",
    "a story on the subject of {x}",
    "write a story, the topic is {x}",
    "a tale whose subject is {x}",
    "use the word {x} in a story",
    "story with the word {x}",
    "kids story, {x}",
]
NAMED = [  # somebody of whom only the name is said
    "{n} should be the hero",
    "tell me about {n}, as a story",
    "my friend {n} is in the story",
    "my name is {n}. Make me the hero of a story",
    "I am {n}. Tell a story about me",
    "I'm {n}, put me in a story",
    "call the hero {n}. A story please",
    "the hero's name is {n}. Tell a story",
    "a story for {n} about {n}",
    "a story for my {k}, the name is {n}",
    "my {k} is called {n}. Tell a story with that name",
    "my {k} {n} wants to be in a story",
    "a bedtime story for my {k} {n}, with {n} in it",
    "write a story where {n} goes to school",
    "tell a story where {n} learns something",
    "tell a story about my {k} {n}",
    "write {n} into a story",
    "what did {n} do today? A story",
    "write a story about somebody named {n}",
    "story: {n} and the lost key",
    "story for {n}, who is {n2} years old, and in it",
    "{n} and the big surprise, a story",
    "{n}'s story",
    "tell {n}'s story",
    "story about {n}",
    "story of {n}",
]
NAMED_BEING = [
    "write about {a_x}. The name is {n}",
    "write about {a_x}. It is called {n}",
    "a story: {n} is {a_x}",
    "{n} is {a_x}. Tell me {n}'s story",
    "my {x} is called {n}. Tell me a story",
    "my {x}'s name is {n}. What did {n} do one day? Tell it",
    "I have {a_x}, {n}. Make up a story",
    "story about {n}, {a_x}",
    "what did {n} the {x} do? A story please",
    "tell me what {n} the {x} did yesterday",
    "story about {n} the {x}",
    "the adventures of {n} the {x}",
    "{n}, {a_x}, goes on a trip. Write the story",
    "{a_x} by the name of {n}, a story please",
    "a story. {a_x}. Name: {n}",
    "tell me about {n} the {x}",
    "the hero is {a_x} called {n}",
]
SET_IN = [
    "a story set {w}",
    "tell me a story set {w}",
    "tell a story that takes place {w}",
    "write a story that happens {w}",
    "{np} which plays {w}",
    "tell me what happened {w}, as a story",
    "something that happened {w}, as a story",
    "one night {w}, a story",
    "a day {w}, tell it as a story",
    "{np} {w}",
    "a tale from {w}",
    "story, place: {w}",
    "let {np} happen {w}",
    "once upon a time {w}",
]


def pick(rng, part):
    return rng.choice(SPLIT[part])


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
        made = imperative(rng) + " " + ("{l} {t}" if rng.random() < 0.8 else rng.choice(AFTER))
        question = made.split()[0] in ("can", "could", "would", "will")
    elif kind < 0.55:
        made, question = rng.choice(QUESTIONS), True
    else:
        made, question = rng.choice(STATEMENTS if kind < 0.7 else BARE), False
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
        text += ("" if tail.startswith(",") or text[-1] in ".?!" else " ") + (
            tail if text[-1] not in ".?!" else " " + tail.strip(", ")
        )
    if rng.random() < 0.14:
        text = f"{pick(rng, 'leads')} {text}"
    np, link = story_np(rng), pick(rng, "links")
    text = text.replace("{np}", np).replace(" {l}", link if link[0] == "," else f" {link}")
    fill = fill | {
        "noun": pick(rng, "nouns"),
        "k": rng.choice(PEOPLE).replace("_", " "),
        "n2": rng.randint(3, 12),
        "N2": topics.name(rng),
    }
    fill.setdefault("n", rng.randint(3, 12))
    text = hurried(rng, text.replace("{n} year", "{n2} year")).format(**fill)
    return spelled_fast(rng, text + mark)


def spelled_fast(rng, text):
    style = rng.random()
    if style < 0.55:
        return text[0].upper() + text[1:]
    if style < 0.75:
        return text.lower()
    return text.lower().rstrip(".!?") if style < 0.85 else text


def clause(rng):
    return pick(rng, "clauses")
