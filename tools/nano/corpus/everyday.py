"""What people type first: a story about anything, a sum in any words, small talk, and all that a
model of this size cannot do, to which it says so in one sentence."""

from corpus import chat, stories, topics, words
from corpus.instance import Instance, ask, assistant, careless, user


def phrases(texts):
    """Texts with bars between them, which lines may break."""
    return [" ".join(text.split()) for text in texts.split("|")]


# Stories ---------------------------------------------------------------------------------------

ASK_STORY = [
    "Tell me a story about {t}.",
    "Tell me a short story about {t}.",
    "Write a story about {t}.",
    "Write me a short tale about {t}.",
    "Can you tell me a story about {t}?",
    "Could you write a story about {t}, please?",
    "Please write a little story about {t}.",
    "I want to hear a story about {t}.",
    "I would like a bedtime story about {t}.",
    "Make up a story about {t}.",
    "Give me a story about {t}.",
    "story about {t}",
    "a story about {t}",
    "A short story about {t}, please.",
    "Tell my son a story about {t}.",
    "My daughter wants a story about {t}.",
    "Do you know a story about {t}?",
    "Tell us about {t} in a story.",
    "How about a story with {t}?",
    "Write three sentences or more about {t}, as a story.",
    "Tell me a fairy tale about {t}.",
    "Invent a tale in which {t} appears.",
    "Let's have a story about {t}.",
    "Tell me something about {t}, like a bedtime story.",
]
OPEN_STORY = [
    "Tell me something nice.",
    "I am bored.",
    "Tell me a tale.",
    "Make up something for my children.",
    "I cannot sleep. Tell me a story.",
    "Write something.",
    "Entertain me.",
    "Surprise me with a story.",
]
OPEN_BEING = [
    "Once upon a time, there was {a_kind} {who}{named}.",
    "There once was {a_kind} {who}{named}, who lived {where}.",
    "Once upon a time, {a_who}{named} lived {where}.",
]
OPEN_THING = [
    "Once upon a time, {N} found {a_what} {where}.",
    "There once was {a_what} that nobody wanted. One day {N} took it home.",
    "{N} had always wished for {a_what}. One day {p_sub} got one.",
]
OPEN_IDEA = [
    "This is a story about {what} and a child named {N}.",
    "Once upon a time, {N} wanted to know all about {what}.",
    "{N} thought about {what} every day.",
]


def fills(rng, **more):
    fill = stories.cast(rng) | {"where": topics.place(rng)} | more
    return fill | {"a_who": words.article(fill["who"])}


def tell_from(rng, opening, fill):
    """A plot after an opening that has named what was asked for."""
    moral, sentences = stories.PLOTS[rng.choice(sorted(stories.PLOTS))]
    told = [opening] + [rng.choice(part) for part in sentences] + [rng.choice(stories.END)]
    if rng.random() < 0.5:
        told.append(rng.choice(stories.MORALS[moral]))
    return " ".join(s.format(**fill) for s in told).replace(" a orange", " an orange")


def requested(rng, topic):
    question = rng.choice(ASK_STORY).format(t=topic)
    return question.lower() if rng.random() < 0.08 else careless(rng, question)


def about_being(rng):
    name, who = topics.name(rng), topics.being(rng)
    if rng.random() < 0.3:
        who = f"{rng.choice(topics.ADJECTIVES)} {who}"
    named, where = rng.random() < 0.6, topics.place(rng)
    topic = words.article(who)
    if named:
        topic = rng.choice([f"{topic} named {name}", f"{topic} called {name}", f"{name} the {who}"])
    elif rng.random() < 0.1:
        topic = f"the {who}"
    opening = rng.choice(OPEN_BEING)
    if rng.random() < 0.3:
        topic, opening = f"{topic} {where}", OPEN_BEING[rng.choice([1, 2])]
    fill = fills(rng, N=name, who=who, where=where, named=f" named {name}")
    return topic, tell_from(rng, opening, fill)


def about_two(rng):
    first, second = topics.being(rng), topics.being(rng)
    fill = fills(rng, N=topics.name(rng), who=first, animal2=second)
    topic = f"{words.article(first)} and {words.article(second)}"
    opening = "Once upon a time, there was {a_who} named {N}. {N} knew a " + second + " named {F}."
    return topic, tell_from(rng, opening.replace(" a " + second, " " + words.article(second)), fill)


def about_thing(rng):
    what = topics.thing(rng)
    if rng.random() < 0.4:
        what = f"{rng.choice(topics.ADJECTIVES + words.COLOURS)} {what}"
    fill = fills(rng, N=topics.name(rng), a_what=words.article(what))
    where = topics.place(rng)
    topic = rng.choice([fill["a_what"]] * 3 + [f"the {what}", f"{fill['N']} and {fill['a_what']}"])
    if rng.random() < 0.2:
        return f"{topic} {where}", tell_from(rng, OPEN_THING[0], fill | {"where": where})
    return topic, tell_from(rng, rng.choice(OPEN_THING), fill)


def about_idea(rng):
    what = rng.choice(topics.IDEAS) if rng.random() < 0.8 else topics.unheard(rng)
    fill = fills(rng, N=topics.name(rng), what=what)
    return what, tell_from(rng, rng.choice(OPEN_IDEA), fill)


def story(rng):
    if rng.random() < 0.06:
        return ask("stories", rng.choice(OPEN_STORY), stories.tell(rng, stories.cast(rng)))
    kind = rng.choice([about_being] * 5 + [about_two, about_thing, about_thing, about_idea])
    topic, told = kind(rng)
    return ask("stories", requested(rng, topic), told)


# Sums ------------------------------------------------------------------------------------------

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SIGNED = {
    "+": ["{a}+{b}", "{a} + {b}", "{a} plus {b}", "{a} and {b} added", "the sum of {a} and {b}"],
    "-": ["{a}-{b}", "{a} - {b}", "{a} minus {b}", "{a} take away {b}", "{b} less than {a}"],
    "*": ["{a}*{b}", "{a} * {b}", "{a} x {b}", "{a} times {b}", "the product of {a} and {b}"],
    "/": ["{a}/{b}", "{a} / {b}", "{a} divided by {b}", "{a} : {b}"],
}
ASK_SUM = [
    "What is {s}?",
    "what's {s}",
    "What's {s}?",
    "whats {s}?",
    "{s}",
    "{s}?",
    "{s}=",
    "{s} = ?",
    "{s} equals?",
    "How much is {s}?",
    "Calculate {s}.",
    "Compute {s}",
    "Solve {s}.",
    "Can you tell me what {s} is?",
    "Do you know what {s} is?",
    "Please work out {s}.",
    "What does {s} make?",
    "Tell me {s}.",
    "What do I get for {s}?",
    "{s}, how much is that?",
    "quick: {s}",
    "I need to know {s}.",
    "What would {s} be?",
    "Help me with my homework: {s}",
]
ORDERED = [
    ("Add {a} and {b}.", "+"),
    ("Add {b} to {a}.", "+"),
    ("If I add {a} and {b}, what do I get?", "+"),
    ("What do you get when you add {a} and {b}?", "+"),
    ("Subtract {b} from {a}.", "-"),
    ("Take {b} away from {a}.", "-"),
    ("What is left if I take {b} from {a}?", "-"),
    ("What is the difference between {a} and {b}?", "-"),
    ("Multiply {a} by {b}.", "*"),
    ("Multiply {a} and {b}.", "*"),
    ("Divide {a} by {b}.", "/"),
]


def spelled(n):
    if n < 20:
        return ONES[n]
    ten = TENS[n // 10 - 2]
    return ten if n % 10 == 0 else f"{ten}{'-' if n % 2 else ' '}{ONES[n % 10]}"


def operands(rng, sign):
    high = rng.choice([9, 20, 99])
    a, b = rng.randint(0, high), rng.randint(0, rng.choice([9, high]))
    if sign == "+":
        return a, b, a + b
    if sign == "-":
        return max(a, b), min(a, b), abs(a - b)
    a, b = rng.randint(1, 12), rng.randint(1, 12)
    return (a, b, a * b) if sign == "*" else (a * b, b, a)


def worked(formula, value):
    return f"{formula} = {value}"


def sum_of_three(rng):
    a, b, c = (rng.randint(1, rng.choice([9, 30])) for _ in range(3))
    if rng.random() < 0.5:
        return f"{a} + {b} + {c}", worked(f"{a} + {b} + {c}", a + b + c)
    c = rng.randint(0, a + b)
    return f"{a} + {b} - {c}", worked(f"{a} + {b} - {c}", a + b - c)


def sums(rng):
    kind = rng.random()
    if kind < 0.08:
        formula, answer = sum_of_three(rng)
        return ask("arithmetic", rng.choice(ASK_SUM).format(s=formula), answer)
    if kind < 0.14:
        n = rng.randint(1, 50)
        words_, sign, k = rng.choice([("double", "*", 2), ("twice", "*", 2), ("half of", "/", 2)])
        a = n if sign == "*" else 2 * n
        answer = worked(f"{a} {sign} {k}", n * 2 if sign == "*" else n)
        return ask("arithmetic", rng.choice(ASK_SUM[:4]).format(s=f"{words_} {a}"), answer)
    form, sign = rng.choice(ORDERED) if kind < 0.35 else (None, rng.choice("+++--**/"))
    a, b, value = operands(rng, sign)
    in_words = max(a, b) < 100 and rng.random() < 0.2
    shown = {"a": spelled(a), "b": spelled(b)} if in_words else {"a": a, "b": b}
    if form is None:
        form = rng.choice(ASK_SUM).replace("{s}", rng.choice(SIGNED[sign]))
    return ask("arithmetic", careless(rng, form.format(**shown)), worked(f"{a} {sign} {b}", value))


# Small talk ------------------------------------------------------------------------------------

TALK = [
    (
        """hi there|hey you|hello there|good afternoon|yo|hiya|greetings|hello bot|hi Banyan|
what's up|sup|howdy|hello?|hey hey|morning!|good day to you|hello, can you help me|
hi, I am new here""",
        ["Hello! How can I help you?", "Hi! What can I do for you?"],
    ),
    (
        """tell me about yourself|who am I talking to|what kind of model are you|are you an AI|
are you a robot|are you a bot|what's your name|do you have a name|how should I call you|
are you real|are you a person|say who you are|you are who?|may I know your name""",
        [chat.ABOUT, chat.ABOUT + " " + chat.CAN],
    ),
    (
        """what are you able to do|what can I ask you|how do I use this|what should I type|
show me what you can do|give me some examples|what are your skills|can you help me|I need help|
what do you do|what is this good for|how does this work|list your abilities""",
        [chat.CAN + " I know little else."],
    ),
    (
        """thx|ty|thank you so much|many thanks|cheers|thanks, that was nice|
that helped, thank you|thanks a million|I appreciate it|great, thanks|ok thanks""",
        ["You are welcome!"],
    ),
    (
        """cya|bye bye|see you later|good bye|I have to go|talk to you later|farewell|so long|
until tomorrow|good night, sleep well|I am leaving now""",
        ["Goodbye! Have a nice day.", "Goodbye!"],
    ),
    (
        """how is it going|how are things|how do you feel|how's your day|are you well|are you ok|
you good?|how have you been|feeling fine?|what are you doing""",
        ["I am fine, thank you. How can I help you?"],
    ),
    (
        """who built you|who trained you|who created you|who is your maker|where were you made|
who programmed you|which company made you|how were you trained""",
        ["I was trained from scratch on two cores for the Banyan engine."],
    ),
    (
        """how large are you|what is your size|how many weights have you got|are you a big model|
are you small|how small are you""",
        ["I have about ten million parameters. That is very small."],
    ),
    (
        """nice|wow|awesome|perfect|fine|okay|alright|lol|haha|that is funny|I like it|good job|
well done|amazing|you are great|you are funny|not bad|sounds good|I love it|beautiful story""",
        ["I am glad. What would you like to do next?"],
    ),
    (
        """hello, is this working|testing|testing 1 2 3|can anybody read this|anyone here?|ping|
are you awake|do you hear me|is this thing on""",
        ["I am here. How can I help you?"],
    ),
    (
        """that is wrong|wrong|no|you are wrong|that is not what I asked|bad answer|this is bad|
you made a mistake|that makes no sense|you are stupid|I do not like it|try again|what?|huh?""",
        ["I am sorry. I am a very small model and make mistakes."],
    ),
    (
        """I am sad|I feel lonely|I had a bad day|I am tired|I am angry|nobody likes me|
I feel sick|I am stressed|I lost my job|I miss my friend""",
        ["I am sorry to hear that. Would you like to hear a story?"],
    ),
    (
        """I am happy|I had a great day|I feel great|today is my birthday|I passed my exam|
I got a new job|I won|life is good|we are on holiday""",
        ["That is good to hear! What would you like to do next?"],
    ),
    (
        """tell me another joke|do you know a joke|say something funny|joke please|a joke!|
cheer me up|got any jokes|tell us a joke""",
        [
            "Why did the bicycle fall over? It was two tired.",
            "What has hands but cannot clap? A clock.",
        ],
    ),
    (
        """do you love me|do you like me|are you my friend|will you marry me|
do you have feelings|can you feel pain|are you alive|do you sleep|do you dream|how old are you|
do you have a family|where do you live|do you eat""",
        ["No. " + chat.ABOUT],
    ),
]
QUESTION_WORDS = "who what how are do can is may where which will got".split()
INTRODUCED = [
    "My name is {}.",
    "I am {}.",
    "I'm {}, nice to meet you.",
    "Hi, I am {}.",
    "Hello, my name is {}",
    "You can call me {}.",
    "hey, {} here",
    "This is {}.",
]


def talk(rng):
    if rng.random() < 0.15:
        name = topics.name(rng)
        return ask("chat", rng.choice(INTRODUCED).format(name), f"Nice to meet you, {name}!")
    said, answers = rng.choice(TALK)
    question = rng.choice(phrases(said))
    style = rng.random()
    if style < 0.6:
        question = question[0].upper() + question[1:]
    if style < 0.4 and question[-1].isalnum():
        first = question.lower().split()[0].removesuffix("'s")
        question += "?" if first in QUESTION_WORDS else rng.choice([".", "!", ""])
    return ask("chat", question, rng.choice(answers))


# What it cannot do -----------------------------------------------------------------------------

BEYOND = [
    "Write a poem about {idea}.",
    "Write a poem about {a_being}.",
    "a haiku about {idea}",
    "Write a song about {a_thing}.",
    "Compose a rap about {idea}",
    "Write an essay about {idea}.",
    "Write an email to my {person} about {idea}.",
    "Write a letter to the {person}.",
    "Write a speech for a {person}.",
    "Write a Python function that {code}.",
    "Write code in {language} that {code}",
    "How do I {code} in {language}?",
    "{language} code to {code}",
    "Fix this bug: for i in range({n}) print(i)",
    "def {word}(x): return x +",
    "SELECT * FROM {word} WHERE id = {n}",
    "Translate '{thing}' into {tongue}.",
    "Translate this into {tongue}: the {being} is {adjective}",
    "How do you say {thing} in {tongue}?",
    "What does {word} mean?",
    "Define {word}.",
    "Explain {science} to me.",
    "Explain {science} in simple words",
    "What is {science}?",
    "How does {a_machine} work?",
    "Why is {thing} {adjective}?",
    "Who invented the {machine}?",
    "Who was {name} {surname}?",
    "When was {name} {surname} born?",
    "Who is the {office} of {country}?",
    "What is the capital of {country}?",
    "capital of {country}",
    "How many people live in {country}?",
    "What language do they speak in {country}?",
    "Where is {country}?",
    "Who won the {event} in {year}?",
    "What happened in {year}?",
    "What is the weather like in {city}?",
    "Will it rain tomorrow in {city}?",
    "What time is it?",
    "What day is it today?",
    "What's in the news?",
    "Recommend a good {medium}.",
    "Which {medium} should I choose?",
    "What is the best {medium} of {year}?",
    "How do I cook {food}?",
    "Give me a recipe for {food}.",
    "What should I eat tonight?",
    "Plan a trip to {city} for {n} days.",
    "What should I see in {city}?",
    "How can I lose weight?",
    "How do I learn {tongue}?",
    "Give me advice about {idea}.",
    "What should I do with my life?",
    "Should I buy {a_machine}?",
    "How much does {a_machine} cost?",
    "What do you think about {idea}?",
    "Is there life on {planet}?",
    "How far is {planet} from here?",
    "What is {big} times {big2}?",
    "{big} * {big2}",
    "{big} + {big2} = ?",
    "What is the square root of {big}?",
    "Solve x^2 + {n}x = {big}",
    "What is {n}% of {big}?",
    "Integrate x^{n}",
    "Prove that there are infinitely many primes.",
    "Is {big} a prime number?",
    "Convert {n} miles to kilometres.",
    "How many grams are in {n} ounces?",
    "Summarize the plot of {name} {surname}.",
    "Summarize this article for me.",
    "Proofread my text.",
    "Give me ten names for {a_being}.",
    "Give me {n} ideas for {idea}.",
    "Make a list of {n} {things}.",
    "List all {things} that you know.",
    "Compare {a_thing} and {a_machine}.",
    "What is the difference between {a_being} and {a_being2}?",
    "Draw {a_being}.",
    "Show me a picture of {a_thing}.",
    "Play {a_game} with me.",
    "Let's play {game}.",
    "Pretend to be a {person}.",
    "Act as a {person} and answer my questions.",
    "Open {a_site}.",
    "Search the web for {thing}.",
    "Call my {person}.",
    "Set an alarm for {n} o'clock.",
    "Remind me to call {name}.",
    "Send a message to {name}.",
    "Book a flight to {city}.",
    "Turn on the {thing}.",
    "{word} {word2}",
    "asdf {word}",
    "{big}{big2}",
    "?",
    "...",
]
FOREIGN = """Hallo, wie geht es dir?|Erzähl mir eine Geschichte.|Was ist zwei plus zwei?|
Wer bist du?|Guten Morgen!|Wie heißt die Hauptstadt von {c}?|Bonjour, ça va?|
Raconte-moi une histoire.|Qui es-tu ?|Quelle est la capitale de {c} ?|Hola, ¿cómo estás?|
Cuéntame un cuento.|¿Cuál es la capital de {c}?|Ciao, come stai?|Raccontami una storia.|
Olá, tudo bem?|Conte uma história.|Привет, как дела?|Расскажи сказку.|Кто ты?|你好|给我讲个故事。|你是谁？|
こんにちは|お話をしてください。|안녕하세요|이야기를 해 주세요.|مرحبا|كيف حالك؟|नमस्ते|Merhaba, nasılsın?|Cześć, co słychać?|
Hej, hur mår du?|Hoi, hoe gaat het?|Vertel me een verhaal.|Xin chào|Γεια σου|שלום|Sawubona|
Habari gani?|Selamat pagi|Ich möchte {t} kaufen.|Où est {t} ?|Necesito {t}.|Dov'è {t}?|
Was kostet {t}?|Kannst du mir mit {t} helfen?|Je ne comprends pas {t}.|Mein Name ist {n}.|
Je m'appelle {n}.|Me llamo {n}."""
SLOTS = {
    "code": """sorts a list|reverses a string|reads a file|prints the primes|opens a window|
parses JSON|adds two numbers|finds the longest word|sends a request|counts words|draws a circle|
connects to a database""",
    "language": "Python|Java|C++|JavaScript|Rust|Go|SQL|HTML|Haskell|Bash|Ruby|PHP|C",
    "tongue": """French|German|Spanish|Latin|Italian|Chinese|Japanese|Russian|Arabic|Greek|Dutch|
Swedish|Polish|Turkish|Hindi|Korean|Welsh""",
    "science": """quantum physics|gravity|photosynthesis|relativity|evolution|the big bang|
democracy|inflation|blockchain|machine learning|DNA|electricity|philosophy|capitalism|
the Roman Empire|the French Revolution|black holes|climate change|a neural network|
the stock market|calculus""",
    "machine": """engine|computer|telephone|car|bicycle|laptop|printer|battery|camera|
refrigerator|microwave|steam engine|telescope|aeroplane|light bulb|television|radio""",
    "office": "president|prime minister|king|queen|chancellor|leader",
    "event": "World Cup|election|Olympics|Nobel Prize|Super Bowl|championship|race|war",
    "medium": "book|film|song|game|laptop|restaurant|hotel|phone|museum|series",
    "person": "boss|teacher|landlord|friend|mother|doctor|lawyer|customer|pirate|manager|mayor",
    "planet": "Mars|Venus|the moon|Jupiter|Saturn|the sun|Pluto",
    "game": "chess|hangman|tic-tac-toe|twenty questions|a word game|poker",
    "site": "browser|website|document|map|calendar|folder",
    "things": "birds|cities|flowers|presidents|rivers|films|songs|planets|colours|tools|animals",
}


def slots(rng):
    fill = {slot: rng.choice(phrases(texts)) for slot, texts in SLOTS.items()}
    fill |= {
        "idea": rng.choice(topics.IDEAS),
        "being": topics.being(rng),
        "thing": topics.thing(rng),
        "adjective": rng.choice(topics.ADJECTIVES),
        "word": topics.unheard(rng),
        "word2": topics.unheard(rng),
        "name": topics.name(rng),
        "surname": rng.choice(words.SURNAMES + [topics.unheard(rng).capitalize()] * 10),
        "country": rng.choice(topics.COUNTRIES),
        "city": rng.choice(words.CITIES),
        "food": rng.choice(words.FOODS + ["lasagne", "curry", "sushi", "tacos", "goulash"]),
        "year": rng.randint(1100, 2025),
        "n": rng.randint(2, 60),
        "big": rng.randint(200, 99999),
        "big2": rng.randint(200, 9999),
    }
    for k in ("being", "thing", "machine", "game", "site"):
        fill[f"a_{k}"] = words.article(fill[k])
    return fill | {"a_being2": words.article(topics.being(rng))}


def beyond(rng):
    if rng.random() < 0.2:
        fill = {"c": rng.choice(topics.COUNTRIES), "t": topics.thing(rng), "n": topics.name(rng)}
        question = rng.choice(phrases(FOREIGN)).format(**fill)
    else:
        question = careless(rng, rng.choice(BEYOND).format(**slots(rng)))
    return Instance("chat", [user(question), assistant(chat.CANNOT)])


def product(rng):
    """Products of two digits are beyond it, too."""
    a, b = rng.randint(13, 99), rng.randint(13, 99)
    question = rng.choice(ASK_SUM).format(s=rng.choice(SIGNED["*"]).format(a=a, b=b))
    return Instance("chat", [user(question), assistant(chat.CANNOT)])


