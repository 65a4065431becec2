"""Sums of one and two digits, however they are asked. What a sum asks for comes out as one line of
figures."""

from corpus import topics, words
from corpus.instance import ask, careless, hurried
from corpus.slots import parts

ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen""".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SIGNED = {
    "+": """{a}+{b}|{a}+{b}|{a} + {b}|{a} + {b}|{a} plus {b}|{a} plus {b}|{a} and {b}|
{a} and {b} added|the sum of {a} and {b}|{a} added to {b}|{a} and {b} together|
the total of {a} and {b}|
{b} more than {a}|{a} increased by {b}|adding {a} and {b}|{a} +{b}|{a}+ {b}|{a} and another {b}|
{a} and {b} summed up|sum {a} {b}|{a} with {b} added|add {a} {b}|{a} & {b} together|
the addition of {a} and {b}|{a} and {b} combined|{a} und {b}""",
    "-": """{a}-{b}|{a}-{b}|{a} - {b}|{a} - {b}|{a} minus {b}|{a} minus {b}|{a} take away {b}|
{b} less than {a}|{b} fewer than {a}|{b} from {a}|{a} decreased by {b}|{a} less {b}|
{a} subtract {b}|
{a} without {b}|the difference of {a} and {b}|the difference between {a} and {b}|{a} -{b}|
{b} subtracted from {a}|{b} taken from {a}|{a} reduced by {b}|{a} – {b}|{a} take off {b}""",
    "*": """{a}*{b}|{a}*{b}|{a} * {b}|{a} x {b}|{a}x{b}|{a} times {b}|{a} times {b}|{a} X {b}|
the product of {a} and {b}|{a} multiplied by {b}|{a} × {b}|{a}×{b}|{a} by {b}|{a} groups of {b}|
{a} lots of {b}|multiplying {a} by {b}|{a} and {b} multiplied|{a} · {b}""",
    "/": """{a}/{b}|{a}/{b}|{a} / {b}|{a} divided by {b}|{a} divided by {b}|{a} : {b}|{a} ÷ {b}|
{a}÷{b}|{a} over {b}|{a} shared by {b}|{a} split by {b}|{a} split into {b}|
the quotient of {a} and {b}|
{a} in {b} equal parts|{a} shared between {b}|{a} parted by {b}""",
}
ASK = """What is {s}?|What is {s}?|what is {s}|what's {s}|What's {s}?|whats {s}?|{s}|{s}|{s}?|{s}=|
{s}=?|{s} =|{s} = ?|{s} equals?|{s} equals|{s} is?|{s} is|{s} makes?|{s} gives|How much is {s}?|
how many is {s}|Calculate {s}.|calculate {s}|Compute {s}|Solve {s}.|solve: {s}|Evaluate {s}|
Can you tell me what {s} is?|Do you know what {s} is?|Please work out {s}.|What does {s} make?|
What does {s} equal?|Tell me {s}.|tell me what {s} is|What do I get for {s}?|{s}, how much is that?|
{s}, what is it|quick: {s}|I need to know {s}.|What would {s} be?|Help me with my homework: {s}|
my homework: {s}|the teacher asks {s}|I need the answer to {s}|give me {s}|Find {s}|
what number is {s}|which number is {s}|What is the answer to {s}?|what is the result of {s}|
the result of {s}|result: {s}|what comes out of {s}|what will {s} be|do {s}|do {s} for me|
can you do {s}|can you solve {s}|can you calculate {s}|could you compute {s} for me|please {s}|
{s} please|{s}, please|{s} pls|hey, {s}?|hi, what is {s}|so {s} is what|{s} is what|{s} makes what|
{s} is how much|how much would {s} be|how much does {s} make|how about {s}|and {s}?|now {s}|ok {s}|
next: {s}|sum: {s}|math: {s}|maths question: {s}|question: {s}|what is {s} in total|
what do you get if you do {s}|is it hard to work out {s}|how many would {s} be|
my son asks what {s} is|quickly, {s}|I forgot what {s} is|remind me what {s} is|do the math: {s}|
what's the value of {s}|value of {s}|if you take {s}, what do you have|say what {s} is|
What equals {s}?|let me know {s}|work out {s} for me please|{s} - what is the answer|
let's see if you know {s}|answer this: {s}|test: {s}|Hello! What is {s}?|solve this for me: {s}|
i bet you don't know {s}|could you tell me {s}|I wonder what {s} is|what might {s} be"""
ORDERED = {
    "+": """Add {a} and {b}.|Add {b} to {a}.|If I add {a} and {b}, what do I get?|add {a} to {b}|
What do you get when you add {a} and {b}?|sum up {a} and {b}|add up {a} and {b}|add {a} + {b}|
please add {a} and {b}|put {a} and {b} together|count {a} and {b} together|total {a} and {b}|
can you add {a} and {b}|what is {a} if you add {b}|start with {a} and add {b}|
{a} and then {b} more|I have {a} and get {b} more, how many|if I have {a} and add {b}|
what is the total of {a} and {b}|what is the sum when {a} and {b} are added|combine {a} and {b}|
increase {a} by {b}|how many are {a} and {b}|{a} and {b} make how many|{a} and {b} makes|
could you add {a} to {b} for me|take {a} and add {b}|how much do {a} and {b} make|
I had {a}, then {b} came on top. Now?|which number is {b} bigger than {a}|what is {b} above {a}""",
    "-": """Subtract {b} from {a}.|Take {b} away from {a}.|What is left if I take {b} from {a}?|
What is the difference between {a} and {b}?|minus {b} from {a}|deduct {b} from {a}|
take {b} from {a}|
how much is left of {a} if {b} are taken|I have {a} and lose {b}, how many are left|
if I have {a} and give away {b}, how many|start with {a} and take away {b}|{a}, take away {b}|
what remains when you take {b} from {a}|how much more is {a} than {b}|lower {a} by {b}|
reduce {a} by {b}|how far is it from {b} to {a}|I had {a} and {b} went away, what is left|
what is {a} if you remove {b}|remove {b} from {a}|can you subtract {b} from {a}|
which number is {b} smaller than {a}|how many are left of {a} after {b}|what is {b} below {a}|
{a} but {b} are gone, how many remain|count back {b} from {a}|what do I add to {b} to get {a}""",
    "*": """Multiply {a} by {b}.|Multiply {a} and {b}.|multiply {a} with {b}|
{a} multiplied with {b}|
what do you get when you multiply {a} by {b}|take {a} times {b}|how much is {a} times {b}|
can you multiply {a} and {b}|{a} boxes with {b} each, how many|{a} rows of {b}, how many|
how many are {a} groups of {b}|add {b} to itself {a} times, so {a} x {b}|
if I have {a} bags with {b} each, how many in all|what is {a} if you multiply it by {b}|
the {b} times table: {a} times {b}|{a} times the number {b}""",
    "/": """Divide {a} by {b}.|divide {a} into {b} parts|how often does {b} go into {a}|
how many times does {b} fit into {a}|share {a} between {b}|split {a} by {b}|
what do you get when you divide {a} by {b}|can you divide {a} by {b}|
if I share {a} among {b} friends, how many each|{a} for {b} people, how many each|
I have {a} and {b} kids, how many for each|what is a share of {a} for {b}|{a} divided into {b}|
how many {b}s are in {a}""",
}
STORIES = {
    "+": """I have {a} {t} and buy {b} more. How many {t} do I have?|
{n} has {a} {t} and I have {b}. How many together?|
There are {a} {t} here and {b} there. How many in all?|
{n} had {a} {t} and got {b} more, how many now?|{a} {t} and {b} {t}, how many {t}?|
{a} {t} plus {b} {t}|if {n} has {a} {t} and finds {b}, how many are there?""",
    "-": """I have {a} {t} and lose {b}. How many {t} are left?|
{n} had {a} {t} and ate {b}. How many now?|
There were {a} {t}, {b} are gone. How many {t} remain?|
{n} has {a} {t} and gives me {b}, how many are left|
{a} {t} minus {b} {t}|of {a} {t} I sold {b}, how many do I still have?""",
    "*": """{a} bags with {b} {t} each, how many {t}?|
I buy {a} boxes of {b} {t}. How many {t} are that?|
{a} kids have {b} {t} each. How many {t} in all?|
{n} puts {b} {t} on each of {a} plates, how many {t}?""",
    "/": """{a} {t} for {b} kids, how many for each?|
I share {a} {t} between {b} friends. How many each?|
{n} puts {a} {t} into {b} boxes, how many in each box?|
{a} {t}, {b} children, how many does each one get?""",
}
ALONE = {  # of one number: how it is asked, and what is done
    "double": ("*", 2, "double {a}|twice {a}|{a} doubled|the double of {a}|two times {a}"),
    "half": ("/", 2, "half of {a}|halve {a}|the half of {a}|half {a}|a half of {a}|{a} halved"),
    "triple": ("*", 3, "triple {a}|three times {a}|{a} tripled|the triple of {a}"),
    "third": ("/", 3, "a third of {a}|one third of {a}|the third part of {a}"),
    "quarter": ("/", 4, "a quarter of {a}|one fourth of {a}|the quarter of {a}"),
    "tenfold": ("*", 10, "ten times {a}|tenfold {a}"),
    "next": ("+", 1, "one more than {a}|{a} and one more"),
    "last": ("-", 1, "one less than {a}|{a} minus one"),
}


ASK, SIGNED, ORDERED, STORIES = (
    parts(ASK),
    *({sign: parts(x) for sign, x in t.items()} for t in (SIGNED, ORDERED, STORIES)),
)


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
        a, b = (a, b) if rng.random() < 0.1 and a < 21 else (max(a, b), min(a, b))
        return a, b, a - b
    a, b = rng.randint(0 if sign == "*" else 1, 12), rng.randint(1, 12)
    more = rng.random()
    if more < 0.1:
        a, b = rng.choice([(rng.randint(11, 99), rng.randint(2, 9)), (rng.randint(2, 100), 10)])
    elif more < 0.14:
        a, b = rng.randint(1, 9) * 10, rng.randint(1, 9)
    if sign == "*":
        return (a, b, a * b) if rng.random() < 0.6 else (b, a, a * b)
    return a * b, b, a


def worked(formula, value):
    return f"{formula} = {value}"


def several(rng):
    """Of three or four terms."""
    terms = [rng.randint(1, rng.choice([9, 9, 30])) for _ in range(rng.choice([3, 3, 3, 4]))]
    if rng.random() < 0.6:
        formula = " + ".join(map(str, terms))
        joined = rng.choice(["+", " + ", " plus ", "+", " and ", ", "])
        asked = joined.join(map(str, terms))
        if joined in (" and ", ", "):
            asked = rng.choice(["the sum of {}", "add {}", "{} together", "{} added up"]).format(
                asked
            )
        return asked, worked(formula, sum(terms))
    a, b = terms[:2]
    c = rng.randint(0, a + b)
    asked = rng.choice(["{} + {} - {}", "{}+{}-{}", "{} plus {} minus {}"]).format(a, b, c)
    return asked, worked(f"{a} + {b} - {c}", a + b - c)


def alone(rng):
    """Of one number, by a word for what is done with it."""
    if rng.random() < 0.12:
        a = rng.randint(1, 12)
        asked = rng.choice(["{a} squared", "the square of {a}", "{a} times itself"])
        return asked.format(a=a), worked(f"{a} * {a}", a * a)
    sign, b, texts = rng.choice(list(ALONE.values()))
    n = rng.randint(1, 50 if b < 3 else 12)
    if sign in "+-":
        n = rng.randint(1, 99)
    a = n * b if sign == "/" else n
    value = {"+": n + b, "-": n - b, "*": n * b, "/": n}[sign]
    shown = spelled(a, rng) if a < 100 and rng.random() < 0.2 else a
    return rng.choice(parts(texts)).format(a=shown), worked(f"{a} {sign} {b}", value)


def sums(rng):
    kind = rng.random()
    if kind < 0.16:
        formula, answer = several(rng) if kind < 0.08 else alone(rng)
        return ask("arithmetic", careless(rng, rng.choice(ASK).format(s=formula)), answer)
    sign = rng.choice("++++---***//")
    a, b, value = operands(rng, sign)
    in_words = max(a, b) <= 100 and min(a, b) >= 0 and rng.random() < 0.33
    shown = {"a": a, "b": b}
    if in_words:
        which = rng.choice(["ab", "ab", "a", "b"])
        shown |= {k: spelled(v, rng) for k, v in (("a", a), ("b", b)) if k in which}
    if kind < 0.36:
        form = rng.choice(ORDERED[sign])
    elif kind < 0.46 and a >= b:
        form = rng.choice(STORIES[sign])
        thing = rng.choice(words.COUNTED + [topics.plural(topics.thing(rng))])
        shown |= {"t": thing, "n": topics.name(rng)}
    else:
        form = rng.choice(ASK).replace("{s}", rng.choice(SIGNED[sign]))
    return ask(
        "arithmetic",
        hurried(rng, careless(rng, form.format(**shown)), 0.03),
        worked(f"{a} {sign} {b}", value),
    )
