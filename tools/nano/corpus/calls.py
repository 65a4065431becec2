"""Tool calls: which tool, with which arguments, and what to say when the result is there. Names of
tools and parameters vary, so that they have to be read."""

import json

from corpus import chat, words
from corpus.instance import Instance, ask, assistant, user
from corpus.recall import random_word

TEXT, NUMBER = "string", "integer"


def sums(rng):
    return f"{rng.randint(2, 999)} {rng.choice('+-*')} {rng.randint(2, 99)}"


# What can be asked for: names of the tool, what it does, its parameters (names, type, how a value
# is drawn), how people ask, what comes back, how that is said.
CATALOGUE = [
    dict(
        names=["get_weather", "weather", "current_weather"],
        does="Weather of a city",
        parameters=[(["city", "location", "place"], TEXT, lambda r: r.choice(words.CITIES))],
        asks=[
            "What is the weather in {0}?",
            "How is the weather in {0}?",
            "Will it rain in {0} today?",
            "Weather in {0}, please.",
        ],
        result=lambda r: {
            "temperature": r.randint(-5, 35),
            "sky": r.choice(["clear", "cloudy", "rain", "snow"]),
        },
        says="In {0} it is {temperature} degrees, sky: {sky}.",
    ),
    dict(
        names=["get_time", "current_time", "clock"],
        does="Time in a city",
        parameters=[(["city", "place", "location"], TEXT, lambda r: r.choice(words.CITIES))],
        asks=["What time is it in {0}?", "Tell me the time in {0}.", "How late is it in {0}?"],
        result=lambda r: {"time": f"{r.randint(0, 23)}:{r.randint(10, 59)}"},
        says="It is {time} in {0}.",
    ),
    dict(
        names=["set_timer", "start_timer", "timer"],
        does="Start a timer",
        parameters=[(["minutes", "duration", "length"], NUMBER, lambda r: r.randint(1, 90))],
        asks=[
            "Set a timer for {0} minutes.",
            "Start a timer of {0} minutes.",
            "Wake me in {0} minutes.",
        ],
        result=lambda r: {"status": "started"},
        says="The timer of {0} minutes is running.",
    ),
    dict(
        names=["send_message", "message", "send_text"],
        does="Send a message to a person",
        parameters=[
            (["to", "recipient", "name"], TEXT, lambda r: r.choice(words.NAMES)),
            (
                ["text", "message", "body"],
                TEXT,
                lambda r: r.choice(
                    [
                        "I am late",
                        "Happy birthday",
                        "See you soon",
                        "Dinner is ready",
                        "Call me back",
                        "I am at home",
                    ]
                ),
            ),
        ],
        asks=["Tell {0}: {1}", "Send {0} a message that says: {1}", "Message {0}: {1}"],
        result=lambda r: {"status": "sent"},
        says="I sent the message to {0}.",
    ),
    dict(
        names=["calculate", "calculator", "compute"],
        does="Calculate an expression",
        parameters=[(["expression", "formula", "input"], TEXT, sums)],
        asks=["Use the calculator: {0}", "Calculate {0} with the tool.", "Compute {0}"],
        result=lambda r: {"value": r.randint(1, 999)},
        says="{0} = {value}",
    ),
    dict(
        names=["play_music", "play_song", "music"],
        does="Play music of a kind",
        parameters=[
            (
                ["genre", "kind", "style"],
                TEXT,
                lambda r: r.choice(["jazz", "rock", "folk", "opera", "blues", "piano"]),
            )
        ],
        asks=["Play some {0} music.", "I want to hear {0}.", "Put on {0} music, please."],
        result=lambda r: {"status": "playing"},
        says="I am playing {0} music.",
    ),
    dict(
        names=["convert_money", "convert", "exchange"],
        does="Convert an amount of money",
        parameters=[
            (["amount", "value"], NUMBER, lambda r: r.randint(1, 500)),
            (["from", "source"], TEXT, lambda r: r.choice(["euro", "dollar", "pound"])),
            (["to", "target"], TEXT, lambda r: r.choice(["yen", "franc", "peso"])),
        ],
        asks=["How much is {0} {1} in {2}?", "Convert {0} {1} to {2}.", "Change {0} {1} into {2}."],
        result=lambda r: {"result": r.randint(1, 9999)},
        says="{0} {1} is {result} {2}.",
    ),
    dict(
        names=["book_table", "reserve", "reserve_table"],
        does="Book a table",
        parameters=[
            (["people", "guests", "seats"], NUMBER, lambda r: r.randint(1, 12)),
            (["day", "date"], TEXT, lambda r: r.choice(words.DAYS)),
        ],
        asks=[
            "Book a table for {0} on {1}.",
            "A table for {0} people on {1}, please.",
            "Reserve a table for {0} guests, {1}.",
        ],
        result=lambda r: {"status": "booked"},
        says="The table for {0} on {1} is booked.",
    ),
    dict(
        names=["turn_on_light", "light_on", "switch_light"],
        does="Turn on the light of a room",
        parameters=[
            (
                ["room", "where"],
                TEXT,
                lambda r: r.choice(["kitchen", "bedroom", "bathroom", "hall", "garage", "office"]),
            )
        ],
        asks=[
            "Turn on the light in the {0}.",
            "Light in the {0}, please.",
            "It is dark in the {0}. Switch the light on.",
        ],
        result=lambda r: {"status": "on"},
        says="The light in the {0} is on.",
    ),
    dict(
        names=["add_to_list", "shopping_list", "buy"],
        does="Put something on the shopping list",
        parameters=[
            (["item", "product"], TEXT, lambda r: r.choice(words.FRUITS + words.FOODS)),
            (["quantity", "count", "amount"], NUMBER, lambda r: r.randint(1, 20)),
        ],
        asks=[
            "Put {1} {0} on my list.",
            "Add {0} to the shopping list, {1} of them.",
            "We need {1} {0}. Write it down.",
        ],
        result=lambda r: {"status": "added"},
        says="{1} {0} is on the list now.",
    ),
    dict(
        names=["search_book", "find_book", "books"],
        does="Find books about a topic",
        parameters=[
            (["topic", "subject", "query"], TEXT, lambda r: r.choice(words.PLAIN + words.ANIMALS))
        ],
        asks=["Find a book about {0}.", "Is there a book about {0}?", "I want to read about {0}."],
        result=lambda r: {
            "title": f"All about the {r.choice(words.COLOURS)} {r.choice(words.THINGS)}"
        },
        says="I found this book: {title}.",
    ),
]


def strange(rng):
    """A name that nobody can guess."""
    parts = [rng.choice([rng.choice(words.PLAIN), random_word(rng)]) for _ in range(2)]
    return "_".join(parts[: rng.randint(1, 2)])


def draw(rng, entry):
    """One tool of the catalogue under names of its own -> its declaration and its parameters."""
    name = strange(rng) if rng.random() < 0.3 else rng.choice(entry["names"])
    parameters = [
        (strange(rng) if rng.random() < 0.1 else rng.choice(keys), kind, make)
        for keys, kind, make in entry["parameters"]
    ]
    schema = {
        "type": "object",
        "properties": {k: {"type": t} for k, t, _ in parameters},
        "required": [k for k, _, _ in parameters],
    }
    return {
        "type": "function",
        "function": {"name": name, "description": entry["does"], "parameters": schema},
    }, parameters


def tool_call(rng):
    entries = rng.sample(CATALOGUE, rng.randint(1, 4))
    drawn = [draw(rng, e) for e in entries]
    tools = [d[0] for d in drawn]
    about = {"tools": len(tools)}
    if rng.random() < 0.12:
        messages = chat.talk(rng).messages
        return Instance("tools", messages, tools=tools, about=about | {"call": False})
    at = rng.randrange(len(entries))
    entry, (declared, parameters) = entries[at], drawn[at]
    values = [make(rng) for _, _, make in parameters]
    call = {
        "name": declared["function"]["name"],
        "arguments": {k: v for (k, _, _), v in zip(parameters, values)},
    }
    messages = [
        user(rng.choice(entry["asks"]).format(*values)),
        assistant("", tool_calls=[{"type": "function", "function": call}]),
    ]
    if rng.random() < 0.3:
        result = entry["result"](rng)
        messages += [
            {"role": "tool", "content": json.dumps(result)},
            assistant(entry["says"].format(*values, **result)),
        ]
    return Instance("tools", messages, tools=tools, about=about | {"call": True})


def which_tools(rng):
    """What each of several tools is called: more to learn from one list of them."""
    tools = [draw(rng, e)[0] for e in rng.sample(CATALOGUE, rng.randint(2, 5))]
    declared = {t["function"]["description"]: t["function"]["name"] for t in tools}
    asked = rng.sample(list(declared), rng.randint(1, len(declared)))
    question = rng.choice(["Which tool: {}?", "What is the tool called: {}?"])
    answer = "\n".join(f"{does}: {declared[does]}" for does in asked)
    return ask("tools", question.format("; ".join(asked)), answer, tools=tools)
