"""Short texts, a JSON schema, and the object that the text fills it with: compact, keys in the
schema's order."""

import json

from corpus import words
from corpus.instance import Instance, assistant, user

TEXT, NUMBER, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
LIST = {"type": "array", "items": {"type": "string"}}


def person(rng):
    first, last = rng.choice(words.NAMES), rng.choice(words.SURNAMES)
    years, city, job = rng.randint(5, 90), rng.choice(words.CITIES), rng.choice(words.JOBS)
    likes = rng.sample(words.FOODS, rng.randint(1, 3))
    married = rng.random() < 0.5
    text = rng.choice(
        [
            f"{first} {last} is {years} years old and lives in {city}. {first} works as "
            f"{words.article(job)}",
            f"My name is {first} {last}. I am {years} years old, I live in {city}, and I am "
            f"{words.article(job)}",
            f"Meet {first} {last}, {words.article(job)} from {city} who is {years} years old",
        ]
    )
    listed = " and ".join([", ".join(likes[:-1])] * (len(likes) > 1) + likes[-1:])
    text += f". Favourite food: {listed}. {'Married' if married else 'Not married'}."
    return text, {
        "name": (TEXT, f"{first} {last}"),
        "age": (NUMBER, years),
        "city": (TEXT, city),
        "job": (TEXT, job),
        "likes": (LIST, likes),
        "married": (FLAG, married),
    }


def order(rng):
    item, count, price = rng.choice(words.COUNTED), rng.randint(1, 60), rng.randint(1, 99)
    name, city = rng.choice(words.NAMES), rng.choice(words.CITIES)
    paid = rng.random() < 0.5
    text = rng.choice(
        [
            f"{name} orders {count} {item} at {price} euros each, to be sent to {city}.",
            f"Please send {count} {item} to {name} in {city}. Each costs {price} euros.",
            f"Order from {name}, {city}: {count} {item}, {price} euros each.",
        ]
    ) + (" It has been paid." if paid else " It has not been paid.")
    return text, {
        "item": (TEXT, item),
        "quantity": (NUMBER, count),
        "price": (NUMBER, price),
        "customer": (TEXT, name),
        "city": (TEXT, city),
        "paid": (FLAG, paid),
    }


def event(rng):
    title = rng.choice(
        [
            "meeting",
            "concert",
            "lunch",
            "party",
            "lesson",
            "game",
            "picnic",
            "wedding",
            "race",
            "fair",
        ]
    )
    day, hour, place = rng.choice(words.DAYS), rng.randint(1, 12), rng.choice(words.PLACES)
    guests = rng.sample(words.NAMES, rng.randint(1, 3))
    date, month = rng.randint(1, 28), rng.choice(words.MONTHS)
    listed = " and ".join([", ".join(guests[:-1])] * (len(guests) > 1) + guests[-1:])
    text = rng.choice(
        [
            f"The {title} is on {day}, {date} {month}, at {hour} o'clock in the {place}. "
            f"{listed} will come.",
            f"Come to the {place} on {day}, {date} {month}! The {title} begins at {hour} "
            f"o'clock. Guests: {listed}.",
        ]
    )
    return text, {
        "title": (TEXT, title),
        "day": (TEXT, day),
        "date": (NUMBER, date),
        "month": (TEXT, month),
        "hour": (NUMBER, hour),
        "place": (TEXT, place),
        "guests": (LIST, guests),
    }


def pet(rng):
    name, kind, colour = (
        rng.choice(words.NAMES),
        rng.choice(words.ANIMALS),
        rng.choice(words.COLOURS),
    )
    years, owner = rng.randint(1, 15), rng.choice(words.NAMES)
    toys = rng.sample(words.THINGS, rng.randint(1, 2))
    text = rng.choice(
        [
            f"{owner} has {words.article(colour)} {kind} called {name}. It is {years} years "
            f"old and plays with {' and '.join(words.article(t) for t in toys)}.",
            f"{name} is {words.article(colour)} {kind}, {years} years old, and belongs to "
            f"{owner}. Its toys: {', '.join(toys)}.",
        ]
    )
    return text, {
        "name": (TEXT, name),
        "kind": (TEXT, kind),
        "colour": (TEXT, colour),
        "age": (NUMBER, years),
        "owner": (TEXT, owner),
        "toys": (LIST, toys),
    }


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def extraction(rng):
    text, fields = rng.choice([person, order, event, pet])(rng)
    names = rng.sample(sorted(fields), rng.randint(2, len(fields)))
    schema = {"type": "object", "properties": {n: fields[n][0] for n in names}, "required": names}
    answer = compact({n: fields[n][1] for n in names})
    form = rng.choice(
        [
            "Extract JSON with this schema: {s}\n\nText: {t}",
            "{t}\n\nGive me this as JSON. Schema: {s}",
            "Fill this JSON schema from the text.\nSchema: {s}\nText: {t}",
        ]
    )
    return Instance(
        "extraction",
        [user(form.format(s=compact(schema), t=text)), assistant(answer)],
        schema=schema,
    )


def named_fields(rng):
    """The same with nothing but the names of the fields. What was bought and in which month are
    harder to find than what else there is, and asked for most."""
    text, fields = rng.choice([person, order, order, event, event, event, pet])(rng)
    names = rng.sample(sorted(fields), rng.randint(1, 3))
    names += [name for name in ("item", "month") if name in fields and name not in names]
    rng.shuffle(names)
    form = rng.choice(
        [
            "Extract {n} as JSON: {t}",
            "{t}\nAnswer in JSON with the keys {n}.",
            "JSON with {n}, please: {t}",
        ]
    )
    question = form.format(n=", ".join(names), t=text)
    schema = {"type": "object", "properties": {n: fields[n][0] for n in names}, "required": names}
    return Instance(
        "extraction",
        [user(question), assistant(compact({n: fields[n][1] for n in names}))],
        schema=schema,
    )
