"""Sums of one and two digits, however they are asked. What a sum asks for comes out as one line of
figures."""

from corpus import topics, words
from corpus.instance import ask, careless, hurried
from corpus.phrases import read
from corpus.slots import parts

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SAID = read("sums")
ASK = SAID["asked"]
SIGNED, ORDERED, STORIES = (
    {sign: SAID[f"{kind} {sign}"] for sign in "+-*/"} for kind in ("sign", "order", "story")
)
ALONE = {  # of one number: how it is asked, and what is done
    "double": (
        "*",
        2,
        """double {a}|twice {a}|{a} doubled|the double of {a}|two times {a}|double of {a}|
double the number {a}|the double of the number {a}|twice as much as {a}|twice as many as {a}|
twice the number {a}|{a} times two|{a} two times""",
    ),
    "half": (
        "/",
        2,
        """half of {a}|halve {a}|the half of {a}|half {a}|a half of {a}|{a} halved|one half of {a}|
half the number {a}|{a} split in half|{a} cut in half|{a} divided in half|
half of the number {a}|half as much as {a}""",
    ),
    "triple": (
        "*",
        3,
        """triple {a}|three times {a}|{a} tripled|the triple of {a}|triple of {a}|thrice {a}|
three times as much as {a}""",
    ),
    "third": ("/", 3, "a third of {a}|one third of {a}|the third part of {a}|1/3 of {a}"),
    "quarter": (
        "/",
        4,
        """a quarter of {a}|one fourth of {a}|the quarter of {a}|one quarter of {a}|
a fourth of {a}|1/4 of {a}|quarter of {a}""",
    ),
    "fourfold": ("*", 4, "four times as much as {a}|quadruple {a}|fourfold {a}"),
    "fifth": ("/", 5, "a fifth of {a}|one fifth of {a}|1/5 of {a}"),
    "tenth": ("/", 10, "a tenth of {a}|one tenth of {a}"),
    "tenfold": ("*", 10, "ten times {a}|tenfold {a}|ten times as much as {a}"),
    "next": ("+", 1, "one more than {a}|{a} and one more"),
    "last": ("-", 1, "one less than {a}|{a} minus one"),
}


def spelled(n, rng):
    if n < 20:
        return ONES[n]
    if n == 100:
        return rng.choice(["a hundred", "one hundred", "hundred"])
    ten = TENS[n // 10 - 2]
    return ten if n % 10 == 0 else f"{ten}{rng.choice('- ')}{ONES[n % 10]}"


def operands(rng, sign):
    if rng.random() < 0.06 and sign in "+-":
        high, step = rng.choice([(100, 10), (100, 5), (1000, 100), (200, 50), (200, 10)])
        a, b = (rng.randint(0, high // step) * step for _ in "ab")
    else:
        high = rng.choice([9, 20, 50, 99, 99, 100])
        a, b = rng.randint(0, high), rng.randint(0, rng.choice([9, high, high]))
    if sign == "+":
        return (a, b, a + b) if rng.random() < 0.9 else (a, a, a + a)
    if sign == "-":
        a, b = (a, b) if rng.random() < 0.15 else (max(a, b), min(a, b))
        return a, b, a - b
    a, b = rng.randint(0 if sign == "*" else 1, 12), rng.randint(1, 12)
    more = rng.random()
    if more < 0.08:
        a, b = rng.choice([(rng.randint(11, 99), rng.randint(2, 9)), (rng.randint(2, 100), 10)])
    elif more < 0.2:
        a, b = rng.randint(11, 30), rng.randint(2, 9)
    elif more < 0.26:
        a, b = rng.randint(1, 12) * 10, rng.randint(1, 9)
    if sign == "*":
        return (a, b, a * b) if rng.random() < 0.6 else (b, a, a * b)
    return a * b, b, a


def worked(formula, value):
    return f"{formula} = {value}"


def between(a, sign, b):
    """What is written down on the way to a value that is hard to say at once, or nothing."""
    if sign == "-" and b > 10 and 0 < a % 10 < b % 10 and a > b:
        return f"{a - b // 10 * 10} - {b % 10} = "
    tens, ones = divmod(max(a, b), 10)
    if sign == "*" and 1 < min(a, b) < 10 and tens and ones and max(a, b) > 12:
        return f"{tens * 10 * min(a, b)} + {ones * min(a, b)} = "
    return ""


def in_turn(terms):
    """A sum of several terms, two of them at a time."""
    steps = [" + ".join(map(str, terms))]
    while len(terms) > 1:
        terms = [terms[0] + terms[1], *terms[2:]]
        steps.append(" + ".join(map(str, terms)))
    return " = ".join(steps)


def several(rng):
    """Of three or four terms."""
    terms = [rng.randint(1, rng.choice([9, 9, 30])) for _ in range(rng.choice([3, 3, 3, 4]))]
    if rng.random() < 0.6:
        joined = rng.choice(["+", " + ", " plus ", "+", " and ", ", "])
        shown = [spelled(t, rng) for t in terms] if rng.random() < 0.2 else map(str, terms)
        asked = joined.join(shown)
        if joined in (" and ", ", "):
            asked = rng.choice(
                [
                    "the sum of {}",
                    "add {}",
                    "{} together",
                    "{} added up",
                    "{} in total",
                    "adding {}",
                    "{} all added together",
                ]
            ).format(asked)
        return asked, in_turn(terms)
    a, b = terms[:2]
    if rng.random() < 0.3:
        a, c = a + b + rng.randint(0, 30), rng.randint(0, 30)
        asked = rng.choice(["{} - {} + {}", "{}-{}+{}", "{} minus {} plus {}"]).format(a, b, c)
        return asked, worked(f"{a} - {b} + {c} = {a - b} + {c}", a - b + c)
    c = rng.randint(0, a + b)
    asked = rng.choice(["{} + {} - {}", "{}+{}-{}", "{} plus {} minus {}"]).format(a, b, c)
    return asked, worked(f"{a} + {b} - {c} = {a + b} - {c}", a + b - c)


def alone(rng):
    """Of one number, by a word for what is done with it."""
    if rng.random() < 0.12:
        a = rng.randint(1, 12)
        asked = rng.choice(
            ["{a} squared", "the square of {a}", "{a} times itself", "{a} to the square", "{a}^2"]
        )
        return asked.format(a=a), worked(f"{a} * {a}", a * a)
    sign, b, texts = rng.choice(list(ALONE.values()))
    n = rng.randint(1, 50 if b < 3 else 12)
    if sign in "+-":
        n = rng.randint(1, 99)
    a = n * b if sign == "/" else n
    value = {"+": n + b, "-": n - b, "*": n * b, "/": n}[sign]
    shown = spelled(a, rng) if a < 100 and rng.random() < 0.2 else a
    return rng.choice(parts(texts)).format(a=shown), worked(
        f"{a} {sign} {b}", between(a, sign, b) + str(value)
    )


def sums(rng):
    kind = rng.random()
    if kind < 0.18:
        formula, answer = several(rng) if kind < 0.1 else alone(rng)
        return ask("arithmetic", careless(rng, rng.choice(ASK).format(s=formula)), answer)
    sign = rng.choice("++++---***//")
    a, b, value = operands(rng, sign)
    in_words = max(a, b) <= 100 and min(a, b) >= 0 and rng.random() < 0.33
    shown = {"a": a, "b": b}
    if in_words:
        which = rng.choice(["ab", "ab", "a", "b"])
        shown |= {k: spelled(v, rng) for k, v in (("a", a), ("b", b)) if k in which}
    if kind < 0.4 and value >= 0:
        form = rng.choice(ORDERED[sign])
    elif 0.4 <= kind < 0.52 and value >= 0:
        form = rng.choice(STORIES[sign])
        thing = rng.choice(words.COUNTED + [topics.plural(topics.thing(rng))])
        other = rng.choice(words.COUNTED + [topics.plural(topics.being(rng))])
        shown |= {"t": thing, "t2": other, "n": topics.name(rng), "n2": topics.name(rng)}
    else:
        form = rng.choice(ASK).replace("{s}", rng.choice(SIGNED[sign]))
    return ask(
        "arithmetic",
        hurried(rng, careless(rng, form.format(**shown)), 0.03),
        worked(f"{a} {sign} {b}", between(a, sign, b) + str(value)),
    )
