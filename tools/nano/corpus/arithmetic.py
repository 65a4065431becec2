"""Word problems in the shape of GSM8K: steps with their results, and the number behind ####."""

from corpus import words
from corpus.instance import Instance, assistant, careless, user


def pick(rng, low, high):
    return rng.randint(low, high)


def money(rng):
    return rng.choice(["dollars", "euros", "coins"])


def gains(rng):
    n, item, a, b = (
        rng.choice(words.NAMES),
        rng.choice(words.COUNTED),
        pick(rng, 2, 90),
        pick(rng, 2, 60),
    )
    how = rng.choice(
        ["finds {b} more", "buys {b} more", "gets {b} more from a friend", "picks up {b} more"]
    ).format(b=b)
    return f"{n} has {a} {item}. {n} {how}. How many {item} does {n} have now?", [
        (f"{a} + {b}", a + b, item)
    ]


def loses(rng):
    n, item, a = rng.choice(words.NAMES), rng.choice(words.COUNTED), pick(rng, 10, 99)
    b = pick(rng, 1, a - 1)
    how = rng.choice(["gives away {b}", "loses {b}", "sells {b}", "gives {b} to a friend"]).format(
        b=b
    )
    return f"{n} has {a} {item}. {n} {how}. How many {item} are left?", [
        (f"{a} - {b}", a - b, item)
    ]


def groups(rng):
    n, item, a, b = (
        rng.choice(words.NAMES),
        rng.choice(words.COUNTED),
        pick(rng, 2, 12),
        pick(rng, 2, 12),
    )
    box = rng.choice(["boxes", "bags", "baskets", "jars"])
    return f"{n} has {a} {box} with {b} {item} in each. How many {item} are there in all?", [
        (f"{a} * {b}", a * b, item)
    ]


def divides(rng):
    item, b, c = rng.choice(words.COUNTED), pick(rng, 2, 10), pick(rng, 2, 12)
    n = rng.choice(words.NAMES)
    return (
        f"{n} shares {b * c} {item} equally among {b} friends. How many {item} does each "
        f"friend get?",
        [(f"{b * c} / {b}", c, item)],
    )


def gains_and_loses(rng):
    n, item, a, b = (
        rng.choice(words.NAMES),
        rng.choice(words.COUNTED),
        pick(rng, 5, 80),
        pick(rng, 5, 60),
    )
    c = pick(rng, 1, a + b - 1)
    return (
        f"{n} had {a} {item}. In the morning {n} got {b} more, and in the evening {n} "
        f"gave {c} away. "
        f"How many {item} does {n} have at the end?",
        [(f"{a} + {b}", a + b, item), (f"{a + b} - {c}", a + b - c, item)],
    )


def price(rng):
    n, item, unit = rng.choice(words.NAMES), rng.choice(words.COUNTED), money(rng)
    a, b = pick(rng, 2, 9), pick(rng, 2, 12)
    paid = a * b + pick(rng, 1, 40)
    return (
        f"{n} buys {a} {item} for {b} {unit} each and pays with {paid} {unit}. How many "
        f"{unit} does {n} get back?",
        [(f"{a} * {b}", a * b, unit), (f"{paid} - {a * b}", paid - a * b, unit)],
    )


def total_of_two(rng):
    n, m = rng.sample(words.NAMES, 2)
    item, a, b = rng.choice(words.COUNTED), pick(rng, 2, 70), pick(rng, 2, 30)
    return (
        f"{n} has {a} {item}. {m} has {b} more than {n}. How many {item} do they have together?",
        [(f"{a} + {b}", a + b, item), (f"{a} + {a + b}", a + a + b, item)],
    )


def times_more(rng):
    n, m = rng.sample(words.NAMES, 2)
    item, a, k = rng.choice(words.COUNTED), pick(rng, 2, 15), pick(rng, 2, 5)
    return (
        f"{n} has {a} {item}. {m} has {k} times as many. How many {item} do {n} and {m} "
        f"have in total?",
        [(f"{k} * {a}", k * a, item), (f"{a} + {k * a}", a + k * a, item)],
    )


def weekly(rng):
    n, item, a, days = (
        rng.choice(words.NAMES),
        rng.choice(words.COUNTED),
        pick(rng, 2, 12),
        pick(rng, 3, 9),
    )
    c = pick(rng, 1, a * days - 1)
    return (
        f"{n} collects {a} {item} every day for {days} days. Then {n} uses {c} of them. "
        f"How many {item} are left?",
        [(f"{a} * {days}", a * days, item), (f"{a * days} - {c}", a * days - c, item)],
    )


def two_kinds(rng):
    n, unit = rng.choice(words.NAMES), money(rng)
    x, y = rng.sample(words.COUNTED, 2)
    a, b, c, d = pick(rng, 2, 9), pick(rng, 2, 9), pick(rng, 2, 9), pick(rng, 2, 9)
    return (
        f"{n} buys {a} {x} for {b} {unit} each and {c} {y} for {d} {unit} each. How many "
        f"{unit} does {n} pay?",
        [
            (f"{a} * {b}", a * b, unit),
            (f"{c} * {d}", c * d, unit),
            (f"{a * b} + {c * d}", a * b + c * d, unit),
        ],
    )


def age(rng):
    n, m = rng.sample(words.NAMES, 2)
    a, b, c = pick(rng, 5, 60), pick(rng, 1, 20), pick(rng, 1, 20)
    return (
        f"{n} is {a} years old. {m} is {b} years older than {n}. How old will {m} be in {c} years?",
        [(f"{a} + {b}", a + b, "years"), (f"{a + b} + {c}", a + b + c, "years")],
    )


PROBLEMS = [
    gains,
    loses,
    groups,
    divides,
    gains_and_loses,
    price,
    total_of_two,
    times_more,
    weekly,
    two_kinds,
    age,
]


def word_problem(rng):
    question, steps = rng.choice(PROBLEMS)(rng)
    worked = "\n".join(f"{formula} = {value} {unit}" for formula, value, unit in steps)
    result = steps[-1][1]
    think = rng.random() < 0.3
    if think:
        answer = assistant(f"#### {result}", reasoning_content=worked)
    else:
        answer = assistant(f"{worked}\n#### {result}")
    return Instance(
        "arithmetic", [user(question), answer], think=think, about={"steps": len(steps)}
    )


def random_sum(rng):
    """A sum within the word problems' range -> its text and its value."""
    a, b = pick(rng, 0, rng.choice([99, 150])), pick(rng, 0, 99)
    sign = rng.choice("++--*/")
    if sign in "*/":
        a, b = pick(rng, 1, 12), pick(rng, 1, 12)
    if sign == "/":
        return f"{a * b} / {b}", a
    if sign == "-" and b > a:
        a, b = b, a
    return f"{a} {sign} {b}", {"+": a + b, "-": a - b, "*": a * b}[sign]


def sums(rng):
    """Many sums at once: practice, which no suite asks for."""
    drawn = [random_sum(rng) for _ in range(pick(rng, 4, 10))]
    question = ", ".join(formula for formula, _ in drawn)
    answer = "\n".join(f"{formula} = {value}" for formula, value in drawn)
    return Instance("arithmetic", [user(f"Calculate: {question}"), assistant(answer)])


def sum_question(rng):
    """A bare sum, as people type it."""
    formula, value = random_sum(rng)
    form = rng.choice(["What is {}?", "{} = ?", "{} =", "How much is {}?", "Calculate {}.", "{}"])
    return Instance(
        "arithmetic",
        [
            user(careless(rng, form.format(formula))),
            assistant(f"{formula} = {value}\n#### {value}"),
        ],
        about={"steps": 1},
    )
