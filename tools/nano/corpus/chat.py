"""Small talk and small facts: what somebody types who opens a chat for the first time."""

from corpus import words
from corpus.instance import ask, careless

ABOUT = "I am Banyan Nano, a very small language model."
CAN = (
    "I can tell short stories, solve small word problems, fill JSON from a "
    "text, call tools, look things up in a text, and copy or sort lists."
)
CANNOT = (
    "I cannot do that: I am a very small model. I can tell short stories, solve small sums and "
    "word problems, fill JSON from a text, and copy or sort lists."
)
TALK = [
    (
        ["hi", "Hi!", "hello", "Hello!", "Hey", "Hi there!", "Good morning!", "Good evening!"],
        [
            "Hello! How can I help you?",
            "Hi! What can I do for you?",
            "Hello! Would you like to hear a story?",
        ],
    ),
    (
        [
            "Who are you?",
            "What are you?",
            "What is your name?",
            "who are you",
            "Are you a human?",
            "Introduce yourself.",
        ],
        [ABOUT, ABOUT + " " + CAN],
    ),
    (
        [
            "What can you do?",
            "Help",
            "help me",
            "What are you good at?",
            "What do you know?",
            "How can you help me?",
        ],
        [CAN + " I know little else."],
    ),
    (["Thanks", "Thank you!", "thanks a lot", "Thank you very much."], ["You are welcome!"]),
    (["Bye", "Goodbye!", "See you", "Good night!"], ["Goodbye! Have a nice day.", "Goodbye!"]),
    (
        ["How are you?", "How do you do?", "how are you today?"],
        ["I am fine, thank you. How can I help you?"],
    ),
    (
        ["Who made you?", "Where do you come from?"],
        ["I was trained from scratch on two cores for the Banyan engine."],
    ),
    (
        ["How big are you?", "How many parameters do you have?"],
        ["I have about ten million parameters. That is very small."],
    ),
    (
        ["ok", "Cool!", "Nice.", "Great!", "Good.", "yes", "Well done!", "I see."],
        ["I am glad. What would you like to do next?"],
    ),
    (
        ["test", "Is anybody there?", "Are you there?", "Can you hear me?"],
        ["I am here. How can I help you?"],
    ),
    (
        ["Are you ChatGPT?", "Which model are you?", "What model is this?", "What is this?"],
        [ABOUT],
    ),
    (
        ["Are you clever?", "Are you smart?", "Do you think?", "Are you alive?"],
        ["No. " + ABOUT],
    ),
    (
        ["Nice to meet you.", "My name is Alex.", "I am happy to see you."],
        ["Nice to meet you, too! How can I help you?"],
    ),
    (
        ["Tell me a joke.", "Make me laugh."],
        [
            "Why did the bicycle fall over? It was two tired.",
            "What has hands but cannot clap? A clock.",
        ],
    ),
    (
        [
            "What is the meaning of life?",
            "Who won the election?",
            "What is quantum physics?",
            "Write code for me.",
            "Who is the president?",
            "What happened in 1815?",
            "Translate this into Latin.",
        ],
        [CANNOT],
    ),
    (
        ["What is Banyan?", "What is a banyan?"],
        [
            "Banyan is an engine that runs language models. A banyan is also a large tree "
            "with many roots."
        ],
    ),
]
CAPITALS = dict(
    France="Paris",
    Italy="Rome",
    Germany="Berlin",
    Spain="Madrid",
    Japan="Tokyo",
    Egypt="Cairo",
    Norway="Oslo",
    Austria="Vienna",
    Portugal="Lisbon",
    Greece="Athens",
    Ireland="Dublin",
    Poland="Warsaw",
    Peru="Lima",
    England="London",
    Kenya="Nairobi",
)
OPPOSITES = dict(
    big="small",
    hot="cold",
    day="night",
    up="down",
    left="right",
    old="young",
    fast="slow",
    happy="sad",
    open="closed",
    wet="dry",
    long="short",
    light="dark",
    full="empty",
    hard="soft",
    early="late",
    high="low",
    good="bad",
    loud="quiet",
)
SOUNDS = dict(
    cat="meow",
    dog="woof",
    duck="quack",
    cow="moo",
    sheep="baa",
    pig="oink",
    mouse="squeak",
    owl="hoot",
    frog="croak",
    bee="buzz",
)
COLOUR_OF = dict(
    sky="blue",
    grass="green",
    snow="white",
    coal="black",
    banana="yellow",
    blood="red",
    cherry="red",
    lemon="yellow",
    milk="white",
    leaf="green",
)
LEGS = dict(cat=4, dog=4, bird=2, spider=8, ant=6, horse=4, duck=2, fish=0, snake=0, bee=6)


def talk(rng):
    questions, answers = rng.choice(TALK)
    return ask("chat", careless(rng, rng.choice(questions)), rng.choice(answers))


def fact(rng):
    made = plain_fact(rng)
    made.messages[0]["content"] = careless(rng, made.messages[0]["content"])
    return made


def plain_fact(rng):
    kind = rng.randrange(8)
    if kind == 0:
        k, v = rng.choice(sorted(CAPITALS.items()))
        return ask(
            "chat",
            rng.choice(
                ["What is the capital of {}?", "The capital of {}?", "Name the capital of {}."]
            ).format(k),
            f"The capital of {k} is {v}.",
        )
    if kind == 1:
        k, v = rng.choice(sorted(OPPOSITES.items()))
        return ask(
            "chat",
            rng.choice(
                ["What is the opposite of {}?", "Opposite of {}?", "Tell me the opposite of {}."]
            ).format(k),
            f"The opposite of {k} is {v}.",
        )
    if kind == 2:
        k, v = rng.choice(sorted(SOUNDS.items()))
        return ask(
            "chat",
            rng.choice(
                ["What does {} say?", "What sound does {} make?", "How does {} sound?"]
            ).format(words.article(k)),
            f"{words.article(k).capitalize()} says {v}.",
        )
    if kind == 3:
        k, v = rng.choice(sorted(COLOUR_OF.items()))
        question = rng.choice(
            ["What colour is {}?", "What is the colour of {}?", "Tell me the colour of {}."]
        )
        return ask("chat", question.format(k), f"It is {v}.")
    if kind == 4:
        k, v = rng.choice(sorted(LEGS.items()))
        return ask(
            "chat",
            rng.choice(
                ["How many legs does {} have?", "How many legs has {}?", "Count the legs of {}."]
            ).format(words.article(k)),
            f"{words.article(k).capitalize()} has {v} legs.",
        )
    row = words.DAYS if kind == 5 else words.MONTHS
    at, step = rng.randrange(len(row)), rng.choice([1, -1])
    if kind == 7:
        n = rng.randint(0, 200)
        return ask(
            "chat",
            rng.choice(["What number comes after {}?", "What comes after {}?"]).format(n),
            f"After {n} comes {n + 1}.",
        )
    side = "after" if step == 1 else "before"
    return ask(
        "chat",
        rng.choice(["What comes {} {}?", "What is {} {}?", "Tell me what comes {} {}."]).format(
            side, row[at]
        ),
        f"{row[(at + step) % len(row)]} comes {side} {row[at]}.",
    )
