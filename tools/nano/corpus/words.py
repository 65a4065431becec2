"""The words that the tasks share."""

GIRLS = """Lily Anna Mia Emma Zoe Ella Ruby Nora Ivy Lucy Alice Rosa Maya Clara Daisy Hana Lena Sara
Julia Eva Grace Molly Nina Tara Wendy""".split()
BOYS = """Tom Ben Max Sam Leo Jack Finn Theo Noah Oscar Hugo Adam Paul Omar Felix Ravi Luca Peter
Simon Tim Victor Will Henry Carl David""".split()
NAMES = GIRLS + BOYS
SURNAMES = """Miller Brown Stone Baker Hill Wood Fisher Green Young King Carter Reed Lane Fox Bell
Marsh Frost Hunt Cole West""".split()
ANIMALS = """cat dog rabbit fox bear mouse duck frog owl pony turtle squirrel hedgehog lamb goat
kitten puppy sparrow beaver otter""".split()
COLOURS = "red blue green yellow white black brown orange purple pink grey golden".split()
FRUITS = "apple pear plum peach lemon orange banana cherry melon grape".split()
THINGS = """ball kite book hat drum bell lamp cup basket ribbon key map boat whistle pencil box toy
shell stone mirror""".split()
COUNTED = """apples pears plums lemons oranges eggs cookies cakes pencils books stamps marbles
shells stickers balloons flowers cards coins buttons ribbons""".split()
PLACES = ["park", "forest", "garden", "farm", "village", "beach", "river", "hill", "meadow", "lake"]
CITIES = """Paris London Rome Berlin Madrid Tokyo Cairo Oslo Vienna Lisbon Athens Dublin Prague
Warsaw Delhi Lima Boston Chicago Seattle Toronto Sydney Nairobi Seoul Geneva""".split()
JOBS = """baker teacher doctor farmer painter driver nurse cook gardener writer pilot singer tailor
builder dentist""".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = """January February March April May June July August September October November
December""".split()
FOODS = "pizza soup salad pasta rice bread cake pie noodles sandwich".split()
PLAIN = """tree river stone cloud light wind chair table door window road bridge train horse bird
fish moon star sun rain snow fire paper glass clock shoe coat ring rope wheel leaf seed bread milk
salt honey butter knife spoon plate bottle brush candle pillow blanket ladder hammer
bucket""".split()


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word
