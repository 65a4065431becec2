"""Short stories from a grammar: who, where, a wish, a trouble, a help, an end. Every plot keeps its
people, things and feelings consistent from the first sentence to the last."""

from corpus import words
from corpus.instance import Instance, assistant, user

WEATHER = [
    "sunny",
    "warm",
    "windy",
    "cold",
    "bright",
    "rainy",
    "quiet",
    "cloudy",
    "lovely",
    "snowy",
]
KIND = [
    "kind",
    "brave",
    "curious",
    "shy",
    "clever",
    "gentle",
    "cheerful",
    "lazy",
    "proud",
    "little",
]
RELATIVES = ["mother", "father", "grandmother", "grandfather", "sister", "brother", "aunt", "uncle"]
TREATS = ["a warm cake", "a bowl of soup", "some sweet bread", "a big cookie", "a cup of milk"]
MORALS = {
    "share": [
        "It is good to share.",
        "Sharing made both of them happy.",
        "A shared toy is twice the fun.",
    ],
    "truth": [
        "It is best to tell the truth.",
        "{N} never told a lie again.",
        "The truth made {p_obj} feel light.",
    ],
    "help": [
        "Helping others feels good.",
        "A small friend can be a big help.",
        "When you help, you make a friend.",
    ],
    "patience": ["Good things take time.", "{N} learned to wait.", "With time, small things grow."],
    "brave": [
        "{N} was brave after all.",
        "Being brave does not mean you feel no fear.",
        "From then on {N} was not afraid.",
    ],
    "care": [
        "{N} promised to be more careful.",
        "From then on {N} always looked twice.",
        "It pays to be careful.",
    ],
}
END = [
    "{They} went home happy.",
    "{They} laughed and walked home together.",
    "That night {N} slept very well.",
    "It was the best day of the week.",
    "{N} smiled all the way home.",
    "And they stayed friends for a long time.",
]

OPENING = [
    "Once upon a time, there was {a_kind} {who} named {N}.",
    "There once was {a_kind} {who} called {N}.",
    "{N} was {a_kind} {who}.",
    "One {weather} day, {a_kind} {who} named {N} went to the {place}.",
    "In a small house near the {place} lived {a_kind} {who} named {N}.",
]
LIVES = [
    "{N} lived near the {place}.",
    "{N} loved to play in the {place}.",
    "Every day {p_sub} walked to the {place}.",
    "{N} liked {colour} things most of all.",
    "{P_sub} had {a_friend_kind} friend, {a_animal2} named {F}.",
    "",
]

# name of the plot -> its moral, and the sentences: each a list to choose from
PLOTS = {
    "lost": (
        "help",
        [
            [
                "One {weather} day, {N} lost {p_pos} {colour} {thing}.",
                "One morning, {N} could not find {p_pos} {colour} {thing}.",
                "{N} had a {colour} {thing}, but one day it was gone.",
            ],
            [
                "{P_sub} looked under the bed and behind the door.",
                "{P_sub} looked everywhere, but it was not there.",
                "{P_sub} looked in the house and in the {place}.",
            ],
            [
                "{N} felt sad and began to cry.",
                '"Oh no! Where is my {thing}?" said {N}.',
                "{N} sat down and felt very sad.",
            ],
            [
                'Then {F} the {animal2} came by. "Why are you sad?" asked {F}.',
                '{F} the {animal2} saw {p_obj}. "What is wrong?" {F} asked.',
            ],
            ['"I lost my {thing}," said {N}.', "{N} told {F} about the {colour} {thing}."],
            [
                '"I will help you look," said {F}.',
                '"Do not worry. We will find it together," said {F}.',
            ],
            [
                "They found it under a big tree.",
                "They found the {thing} next to an old wall.",
                "At last {F} saw something {colour} in the grass. It was the {thing}!",
            ],
            [
                '"Thank you, {F}!" said {N}.',
                "{N} gave {F} a big hug.",
                "{N} was so happy that {p_sub} jumped up and down.",
            ],
        ],
    ),
    "share": (
        "share",
        [
            [
                "{N} got a new {colour} {thing} from {p_pos} {relative}.",
                "{P_pos} {relative} gave {N} a {colour} {thing}.",
            ],
            ["{N} played with it all morning.", "{N} took the {thing} to the {place}."],
            [
                '{F} the {animal2} came and asked, "Can I play too?"',
                "{F} the {animal2} wanted to play with it too.",
                '"What a nice {thing}! May I try?" asked {F} the {animal2}.',
            ],
            [
                '"No, it is mine!" said {N}.',
                "{N} held the {thing} tight and said no.",
                "{N} did not want to share.",
            ],
            ["{F} was sad and walked away.", "{F} looked at the ground and went home."],
            [
                "Soon {N} was lonely. Playing alone was no fun.",
                "After a while, {N} had no one to play with.",
            ],
            [
                '{N} ran to {F}. "I am sorry. Let us play together," {p_sub} said.',
                '"Please come back, {F}. You can have a turn," said {N}.',
            ],
            [
                "They played with the {thing} until the sun went down.",
                "{F} smiled, and they took turns all day.",
            ],
        ],
    ),
    "truth": (
        "truth",
        [
            [
                "One day, {N} played with a ball in the house.",
                "One {weather} day, {N} ran through the house.",
            ],
            [
                "Crash! {P_sub} broke the {colour} cup of {p_pos} {relative}.",
                "The {colour} cup of {p_pos} {relative} fell down and broke.",
            ],
            ["{N} was afraid and hid the pieces.", "{N} put the pieces in a box and said nothing."],
            [
                '"Where is my cup?" asked {p_pos} {relative}.',
                "That evening, {p_pos} {relative} looked for the cup.",
            ],
            [
                '"I do not know," said {N}, but {p_sub} felt bad.',
                "{N} looked away and felt bad inside.",
            ],
            [
                'At last {N} said, "I broke it. I am sorry."',
                "{N} could not sleep, so {p_sub} got up and told the truth.",
            ],
            [
                '"Thank you for telling me," said {p_pos} {relative}.',
                '{P_pos} {relative} was not angry. "I am glad you told me," came the answer.',
            ],
            [
                "They fixed the cup together.",
                "Together they made a new cup and painted it {colour}.",
            ],
        ],
    ),
    "seed": (
        "patience",
        [
            [
                "{P_pos} {relative} gave {N} a small seed.",
                "One {weather} day, {N} found a small seed in the {place}.",
            ],
            [
                "{N} put it in the ground and gave it water.",
                "{N} made a hole in the ground and put the seed inside.",
            ],
            [
                "The next day {p_sub} looked, but nothing was there.",
                "{N} waited and waited, but nothing grew.",
            ],
            ['"Why does it not grow?" asked {N}.', '"It is too slow!" said {N}.'],
            [
                '"You must wait," said {F} the {animal2}.',
                '{F} the {animal2} said, "Give it water and time."',
            ],
            [
                "Every day {N} gave the seed some water.",
                "So {N} came back every morning with water.",
            ],
            [
                "One day a little green leaf came up.",
                "After many days, a green leaf looked out of the ground.",
            ],
            [
                "In the summer there was a big {colour} flower.",
                "It grew and grew until it was a tall {colour} flower.",
            ],
        ],
    ),
    "storm": (
        "brave",
        [
            [
                "One night there was a big storm.",
                "One evening the sky grew dark and the wind was loud.",
            ],
            ["{N} was afraid of the noise.", "Boom! {N} hid under the blanket."],
            ["Then {p_sub} heard a small cry outside.", "Then somebody called for help."],
            [
                "It was {F} the {animal2}, wet and cold.",
                "It was {F} the {animal2}, who could not find the way home.",
            ],
            [
                "{N} took a deep breath and opened the door.",
                "{N} was scared, but {p_sub} took a lamp and went out.",
            ],
            ['"Come in, quick!" said {N}.', "{P_sub} took {F} by the hand and led {f_obj} inside."],
            ["{N} gave {F} {treat} and a dry blanket.", "They sat by the fire and had {treat}."],
            [
                "In the morning the storm was gone and the sky was blue.",
                "When the sun came up, everything was quiet again.",
            ],
        ],
    ),
    "race": (
        "care",
        [
            [
                "{N} and {F} the {animal2} wanted to have a race.",
                '"I am faster than you," said {N} to {F} the {animal2}.',
            ],
            [
                "They would run from the {place} to the big tree.",
                "They would run to the {place} and back.",
            ],
            ['"One, two, three, go!"', '"Ready? Go!" said {F}.'],
            [
                "{N} ran very fast and did not look at the road.",
                "{N} ran and ran and looked back at {F}.",
            ],
            ["Oh no! {N} fell over a {thing}.", "Then {N} fell into the mud."],
            [
                '{F} stopped and came back. "Are you hurt?"',
                "{F} could win now, but {F} stopped to help.",
            ],
            [
                '"I am fine. Thank you for stopping," said {N}.',
                "{N} was not hurt, only dirty. Both began to laugh.",
            ],
            [
                "They walked the rest of the way side by side.",
                "They crossed the line together, and both won.",
            ],
        ],
    ),
    "birthday": (
        "share",
        [
            [
                "It was the birthday of {F} the {animal2}.",
                "Tomorrow was the birthday of {F} the {animal2}.",
            ],
            [
                "{N} wanted to give {F} a present, but {p_sub} had no money.",
                "{N} did not know what to give.",
            ],
            [
                '"You can make something," said {p_pos} {relative}.',
                '{P_pos} {relative} had an idea: "Why not make a present?"',
            ],
            [
                "So {N} took some paper and made a {colour} {thing}.",
                "{N} worked all day and made a little {colour} {thing} of wood.",
            ],
            [
                "{N} put it in a box with a {colour2} ribbon.",
                "{P_sub} tied a {colour2} ribbon around it.",
            ],
            ["At the party, {F} opened the box.", "{F} opened the box and looked inside."],
            [
                '"It is the best present of all!" said {F}.',
                '"You made it for me? I love it!" said {F}.',
            ],
            ["Then everyone had {treat} and danced.", "They all sang a song and ate {treat}."],
        ],
    ),
    "cook": (
        "patience",
        [
            [
                "{N} was hungry and wanted to make {food}.",
                "One {weather} day, {N} wanted to cook {food} for {p_pos} {relative}.",
            ],
            [
                "{P_sub} went to the market and bought {fruit1} and {fruit2}.",
                "First {p_sub} looked for a big pot.",
            ],
            [
                "{N} was in a hurry and made the fire too hot.",
                "{N} did not want to wait and took the pot off too soon.",
            ],
            ["The first {food} was black and tasted bad.", "The {food} did not taste good at all."],
            [
                '"Let me show you," said {p_pos} {relative}.',
                '{F} the {animal2} said, "Try again, but slowly."',
            ],
            ["This time {N} waited and watched.", "So {N} started again and took {p_pos} time."],
            ["Soon the whole house smelled good.", "After an hour, the {food} was ready."],
            [
                '"This is the best {food} I ever had," said {p_pos} {relative}.',
                "They ate the {food} together and wanted more.",
            ],
        ],
    ),
    "wish": (
        "help",
        [
            ["{N} wished to fly like a bird.", "{N} had one wish: to see the sea."],
            [
                "Every evening {p_sub} looked at the sky and thought about it.",
                "{P_sub} talked about it every day.",
            ],
            [
                "One day {N} met {F} the {animal2} by the {place}.",
                "In the {place}, {p_sub} met an old {animal2} named {F}.",
            ],
            [
                '{F} was stuck under a branch. "Please help me," said {F}.',
                "{F} had hurt a foot and could not walk.",
            ],
            [
                "{N} pulled with all {p_pos} strength until {F} was free.",
                "{N} helped {F} get up and brought some water.",
            ],
            [
                '"You are kind. What do you wish for?" asked {F}.',
                '"How can I thank you?" asked {F}.',
            ],
            ["{N} told {F} about the wish.", "{N} said {p_pos} wish in a low voice."],
            [
                "{F} smiled and took {N} to the top of the hill, where the wish came true.",
                "{F} knew a secret way, and that very day the wish came true.",
            ],
        ],
    ),
    "bridge": (
        "help",
        [
            [
                "{N} wanted to cross the river, but the bridge was broken.",
                "A storm had broken the bridge over the river.",
            ],
            ['"How will I get to the {place}?" asked {N}.', "No one could get to the {place} now."],
            [
                "{N} tried to build a new one alone, but the wood was too heavy.",
                "{N} pulled at a long piece of wood, but it did not move.",
            ],
            [
                '{F} the {animal2} came to look. "That is too much for one," said {F}.',
                '{F} the {animal2} laughed. "You need friends for that," said {F}.',
            ],
            ["{F} called all the animals of the {place}.", "Soon many animals came to help."],
            [
                "Some carried wood and some carried stones.",
                "The big ones pulled and the small ones tied the ropes.",
            ],
            [
                "By the evening the bridge was ready.",
                "After three days there was a strong new bridge.",
            ],
            ["{N} was the first to walk over it.", "Everyone walked over the bridge and cheered."],
        ],
    ),
}

REQUESTS = [
    "Tell me a story about {a_who} named {N}.",
    "Write a short story about {a_who} called {N}.",
    "Please tell me a story with {a_who} named {N} in it.",
    "Can you write a story about {N} the {who}?",
    "I want a story about {a_who}. The name is {N}.",
]
THINGS_REQUESTS = [
    "Tell me a story about {a_who} named {N} and a {colour} {thing}.",
    "Write a story about {N} the {who} and a {thing}. Use the word {colour}.",
]
OPEN_REQUESTS = [
    "Tell me a story.",
    "Write a short story.",
    "Can you tell me a story?",
    "A story, please!",
    "Tell me a bedtime story.",
    "I would like to hear a story.",
]


def pronouns(girl):
    return (
        {"p_sub": "she", "p_obj": "her", "p_pos": "her"}
        if girl
        else {"p_sub": "he", "p_obj": "him", "p_pos": "his"}
    )


def cast(rng):
    girl, friend_girl = rng.random() < 0.5, rng.random() < 0.5
    name = rng.choice(words.GIRLS if girl else words.BOYS)
    friend = rng.choice([n for n in (words.GIRLS if friend_girl else words.BOYS) if n != name])
    who = rng.choice(words.ANIMALS) if rng.random() < 0.6 else ("girl" if girl else "boy")
    kind, colour = rng.choice(KIND), rng.choice(words.COLOURS)
    fill = pronouns(girl) | {
        "N": name,
        "F": friend,
        "who": who,
        "a_who": words.article(who),
        "a_kind": words.article(kind),
        "f_obj": "her" if friend_girl else "him",
        "animal2": rng.choice([a for a in words.ANIMALS if a != who]),
        "colour": colour,
        "colour2": rng.choice([c for c in words.COLOURS if c != colour]),
        "place": rng.choice(words.PLACES),
        "thing": rng.choice(words.THINGS),
        "weather": rng.choice(WEATHER),
        "relative": rng.choice(RELATIVES),
        "treat": rng.choice(TREATS),
        "food": rng.choice(words.FOODS),
        "fruit1": rng.choice(["milk", "flour", "salt", "butter"]),
        "fruit2": rng.choice(["eggs", "honey", "lemons", "herbs"]),
        "a_friend_kind": words.article(rng.choice(["good", "old", "funny", "dear"])),
        "They": "They",
    }
    fill["a_animal2"] = words.article(fill["animal2"])
    return fill | {k.capitalize(): v.capitalize() for k, v in fill.items() if k.startswith("p_")}


def tell(rng, fill):
    moral, sentences = PLOTS[rng.choice(sorted(PLOTS))]
    told = [rng.choice(OPENING)]
    lives = rng.choice(LIVES)
    if "{F}" in lives:
        sentences = [[s.replace("{F} the {animal2}", "{F}") for s in part] for part in sentences]
    told.append(lives)
    told += [rng.choice(part) for part in sentences]
    told.append(rng.choice(END))
    if rng.random() < 0.7:
        told.append(rng.choice(MORALS[moral]))
    text = " ".join(s.format(**fill) for s in told if s)
    return text.replace(" a orange", " an orange")


def story(rng):
    fill = cast(rng)
    text = tell(rng, fill)
    kinds = [REQUESTS] * 5 + [OPEN_REQUESTS] * 2
    if fill["colour"] in text and fill["thing"] in text:
        kinds += [THINGS_REQUESTS] * 3
    request = rng.choice(rng.choice(kinds)).format(**fill)
    return Instance("stories", [user(request), assistant(text)])


def plain_text(rng):
    """A story with nothing around it."""
    return tell(rng, cast(rng))
