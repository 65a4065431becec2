"""What people ask stories about, and words that nobody has heard: a model that learns from them has
to spell what it is asked for by copying it."""

from corpus import words

BEINGS = """dragon knight princess prince king queen wizard witch pirate robot alien ghost giant
fairy elf mermaid unicorn monster vampire zombie ninja cowboy detective astronaut sailor captain
fisherman farmer baker tailor painter singer dancer clown magician teacher doctor nurse pilot
driver postman fireman policeman soldier hunter gardener miller shepherd grandmother grandfather
mother father baby child boy girl sister brother twin friend stranger neighbour thief hero lion
tiger elephant giraffe zebra monkey gorilla panda kangaroo koala camel donkey horse cow pig sheep
hen rooster chicken goose swan eagle hawk parrot penguin crow pigeon bat whale dolphin shark
octopus crab fish seal snake lizard crocodile dinosaur spider ant bee butterfly ladybird snail
worm grasshopper hamster wolf deer moose raccoon badger mole rat beetle firefly hippo rhino
leopard llama snowman scarecrow gnome troll dwarf""".split() + words.ANIMALS
OBJECTS = """lighthouse castle train ship rocket spaceship car bus bicycle tractor balloon
umbrella piano guitar violin trumpet candle lantern crown sword shield treasure coin necklace
diamond pearl feather telescope camera clock watch mirror pencil diary letter painting photograph
puzzle doll teddy swing slide snowball sandcastle pumpkin strawberry sandwich pancake cupcake
pizza cookie teapot spoon blanket pillow sock shoe scarf glove hat coat button needle ladder
hammer shovel rope anchor island mountain volcano waterfall cave desert jungle swamp tower bridge
windmill well fountain library school museum hospital kitchen attic cellar tent wagon sled kite
drum whistle bell rainbow star moon comet cloud snowflake raindrop seed sunflower rose tree
mushroom stone nest egg shell pond computer phone television radio magnet""".split() + words.THINGS
IDEAS = [
    idea.replace("_", " ")
    for idea in """friendship courage love kindness winter summer autumn spring Christmas
Halloween school music space time snow rain thunder magic hope sleep dreams travel dancing
cooking football swimming reading luck honesty patience adventure the_sea the_forest the_city
the_future the_first_day_of_school a_long_journey a_birthday_party a_holiday a_lost_dog
a_rainy_day a_new_home growing_up being_different""".split()
]
COUNTRIES = """Mongolia Brazil Canada Chile China Denmark Finland Ghana Hungary Iceland India
Iran Israel Jamaica Jordan Korea Laos Libya Mali Mexico Morocco Nepal Niger Oman Pakistan Panama
Qatar Romania Russia Samoa Sudan Sweden Syria Thailand Togo Turkey Uganda Ukraine Vietnam Yemen
Zambia""".split()
ADJECTIVES = """brave tiny old sleepy angry hungry lonely magic golden silver purple invisible
funny sad happy clever silly grumpy friendly lost forgotten dancing singing talking flying polite
clumsy mysterious noisy""".split()
ONSETS = "b br ch d dr f fl g gr h j k kl l m n p pl qu r s sh sk sn t th tr v w x y z zr".split()
VOWELS = "a e i o u aa ee oo ai ou".split()
ENDS = ["", "", "n", "m", "r", "l", "x", "nd", "rt", "sk", "p", "b", "zz", "th"]


def syllable(rng):
    return rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(ENDS)


def unheard(rng):
    """A word that nobody has heard."""
    return "".join(syllable(rng) for _ in range(rng.choice([1, 2, 2, 2, 3])))


def name(rng):
    return rng.choice(words.NAMES) if rng.random() < 0.5 else unheard(rng).capitalize()


def being(rng):
    return rng.choice(BEINGS) if rng.random() < 0.7 else unheard(rng)


def thing(rng):
    return rng.choice(OBJECTS) if rng.random() < 0.7 else unheard(rng)


def place(rng):
    """A place with its preposition."""
    if rng.random() < 0.5:
        return f"in {rng.choice(words.CITIES + COUNTRIES + [unheard(rng).capitalize()] * 20)}"
    return rng.choice(["in the", "near the", "by the"]) + " " + rng.choice(words.PLACES)
