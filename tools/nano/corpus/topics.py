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
leopard llama snowman scarecrow gnome troll dwarf walrus otter yeti goblin ogre phoenix dodo
ostrich peacock flamingo pelican seagull woodpecker cuckoo swallow robin heron stork turkey canary
parakeet chicken lamb piglet calf foal ox bull buffalo bison reindeer antelope gazelle hyena
jackal coyote lynx puma cheetah jaguar panther meerkat mongoose weasel ferret chipmunk hare
porcupine armadillo sloth anteater tapir opossum platypus wombat dingo chimpanzee baboon orangutan
lemur gecko iguana chameleon newt salamander toad tadpole cobra python alligator lobster shrimp
starfish jellyfish squid oyster seahorse salmon trout goldfish tuna eel stingray sardine wasp
hornet bumblebee moth mosquito dragonfly cricket caterpillar centipede scorpion tick flea ladybug
worm slug mammoth sphinx centaur werewolf skeleton mummy demon angel genie imp pixie nymph
sorcerer enchantress duke duchess emperor empress lord lady butler maid chef waiter barber florist
jeweller blacksmith carpenter plumber mechanic engineer scientist inventor professor librarian
artist sculptor poet author journalist photographer actor drummer pianist violinist conductor
juggler acrobat wrestler boxer runner skater surfer swimmer diver climber explorer traveller
pilgrim monk nun priest judge lawyer mayor president spy burglar beggar merchant shopkeeper
butcher cobbler weaver potter lumberjack miner beekeeper lifeguard firefighter policewoman
astronomer gamer student pupil toddler teenager grandma grandpa granny uncle aunt cousin nephew
niece neighbour classmate orphan stepmother bride""".split()
BEINGS += words.ANIMALS
OBJECTS = """lighthouse castle train ship rocket spaceship car bus bicycle tractor balloon
umbrella piano guitar violin trumpet candle lantern crown sword shield treasure coin necklace
diamond pearl feather telescope camera clock watch mirror pencil diary letter painting photograph
puzzle doll teddy swing slide snowball sandcastle pumpkin strawberry sandwich pancake cupcake
pizza cookie teapot spoon blanket pillow sock shoe scarf glove hat coat button needle ladder
hammer shovel rope anchor island mountain volcano waterfall cave desert jungle swamp tower bridge
windmill well fountain library school museum hospital kitchen attic cellar tent wagon sled kite
drum whistle bell rainbow star moon comet cloud snowflake raindrop seed sunflower rose tree
mushroom stone nest egg shell pond computer phone television radio magnet helicopter submarine
airplane motorcycle scooter skateboard truck ambulance bulldozer crane carriage canoe raft yacht
parachute suitcase backpack purse wallet ticket passport postcard envelope stamp newspaper
magazine notebook crayon marker paintbrush eraser ruler scissors desk shelf wardrobe drawer
bathtub sink toaster oven fridge kettle saucepan fork bowl mug jug jar napkin tablecloth curtain
carpet rug cushion mattress pyjama nightgown sweater jacket trouser skirt dress belt tie boot
slipper sandal helmet mitten bracelet earring brooch ribbon zipper thread yarn loom saw nail screw
screwdriver axe spade rake wheelbarrow scarecrow fence gate chimney roof staircase balcony
doorbell keyhole padlock chest barrel sack crate bench lamppost mailbox signpost statue monument
pyramid palace temple church cathedral mosque hut cottage cabin igloo treehouse skyscraper factory
barn stable greenhouse bakery hospital hotel restaurant market theatre circus zoo playground
stadium harbour airport station tunnel canal dam pier reef glacier iceberg canyon cliff valley
oasis lagoon swamp geyser planet asteroid galaxy sunrise sunset storm hurricane tornado puddle
icicle bonfire firework lightning acorn pine cactus daisy tulip orchid lily ivy thistle bamboo
palm oak willow vine carrot potato tomato onion turnip cabbage cucumber pickle pepper bean pea
corn radish garlic pear coconut pineapple mango kiwi fig date walnut peanut almond muffin waffle
pretzel doughnut biscuit burger hotdog noodle dumpling omelette sausage cheese jam lollipop
marshmallow chocolate popcorn flute harp cello trombone saxophone tambourine harmonica accordion
xylophone orchestra choir microphone puppet marble yo-yo frisbee trampoline seesaw carousel domino
card dice trophy medal flag banner mask costume wig broom mop bucket sponge soap towel toothbrush
comb mirror thermometer bandage pill microscope compass globe atlas hourglass calendar calculator
robot battery bulb torch flashlight wand cauldron potion spellbook crystal amulet talisman throne
dungeon drawbridge catapult cannon chariot""".split()
OBJECTS += words.THINGS
IDEAS = [
    idea.replace("_", " ")
    for idea in """friendship courage love kindness winter summer autumn spring Christmas
Halloween school music space time snow rain thunder magic hope sleep dreams travel dancing cooking
football swimming reading luck honesty patience adventure the_sea the_forest the_city the_future
the_first_day_of_school a_long_journey a_birthday_party a_holiday a_lost_dog a_rainy_day
a_new_home growing_up being_different chess homework bedtime breakfast gardening fishing tennis
basketball skating ballet poetry painting science history justice freedom peace happiness sadness
anger fear jealousy greed pride trust forgiveness teamwork sharing bravery wisdom silence darkness
sunshine moonlight fog ice fire water wind thunder_and_lightning the_ocean the_moon the_sun
the_stars the_night the_rain the_desert the_jungle the_mountains the_north_pole the_wind the_snow
the_end_of_the_world outer_space time_travel a_snow_day a_bad_day a_secret a_wish a_promise
a_mistake a_long_night a_new_baby moving_house a_school_trip the_tooth_fairy Easter New_Year
Thanksgiving a_wedding losing_a_tooth learning_to_swim riding_a_bike baking_bread camping
cats_and_dogs two_brothers three_little_pigs seven_dwarfs a_king_without_a_crown the_colour_blue
the_number_seven nothing everything a_dream a_nightmare""".split()
]
COUNTRIES = """Mongolia Brazil Canada Chile China Denmark Finland Ghana Hungary Iceland India Iran
Israel Jamaica Jordan Korea Laos Libya Mali Mexico Morocco Nepal Niger Oman Pakistan Panama Qatar
Romania Russia Samoa Sudan Sweden Syria Thailand Togo Turkey Uganda Ukraine Vietnam
Yemen Zambia""".split()
ADJECTIVES = """brave tiny old sleepy angry hungry lonely magic golden silver purple invisible
funny sad happy clever silly grumpy friendly lost forgotten dancing singing talking flying polite
clumsy mysterious noisy big giant small little huge young old wise foolish lazy greedy kind cruel
gentle wild shy proud rich poor strong weak fast slow quiet loud strange curious hidden broken
shiny dusty rusty frozen melting sleeping running jumping hungry thirsty red blue green yellow
white black pink rainbow spotted striped fluffy furry scaly slimy wooden stone glass paper iron
snow ice fire water sea forest desert mountain garden city village space moon night winter summer
haunted enchanted cursed secret royal evil good worried bored jealous excited confused blind deaf
one-eyed three-legged toothless homeless speaking""".split()
MORE_NAMES = """Aisha Alejandro Amelia Anders Anika Arjun Arthur Astrid Axel Bella Bianca Bjorn
Bob Boris Caleb Camila Carlos Charlie Chen Chloe Cleo Dana Daniel Dario Dennis Diego Dmitri Dora
Edgar Elena Eli Elif Elsa Emil Emily Erik Ethan Fatima Fiona Frank Freya George Gus Hannah Harriet
Harry Hassan Helen Ian Ida Igor Imani Ines Isla Ivan Jakob James Jasmine Jasper Jin Joe Johanna
John Jonas Jose Kai Karim Kate Katya Kenji Kim Kofi Kurt Lara Lars Laura Layla Liam Linus Lisa
Lola Louis Lukas Magnus Malik Marco Maria Marta Mateo Maud Mei Mila Milo Mohammed Monty Nadia
Naomi Nick Nikolai Olga Olive Oliver Otto Pablo Pearl Pedro Penny Petra Phoebe Pia Pip Poppy
Rachel Raj Rex Rita Robin Roman Rosie Roxy Sandra Santiago Sasha Sebastian Selma Sofia Sophie
Stella Sven Tariq Tess Tobias Toby Trudy Ulla Ursula Vera Viktor Violet Walter Wilma Xavier Yara
Yuki Yvonne Zara Zeke Zola Biscuit Fluffy Whiskers Patches Snowy Spot Buddy Coco Daisy Ginger
Pickles Pepper Socks Shadow""".split()
SPOTS = """bakery museum library castle kitchen hospital school zoo circus cave lighthouse forest
tent theatre factory barn tower palace hotel supermarket playground submarine spaceship desert
jungle swamp valley harbour station classroom attic cellar greenhouse village city garden shop
toyshop bookshop cinema igloo treehouse windmill tunnel canyon monastery stadium café restaurant
meadow""".split()
ONSETS = "b br ch d dr f fl g gr h j k kl l m n p pl qu r s sh sk sn t th tr v w x y z zr".split()
VOWELS = "a e i o u aa ee oo ai ou".split()
ENDS = ["", "", "n", "m", "r", "l", "x", "nd", "rt", "sk", "p", "b", "zz", "th"]


def syllable(rng):
    return rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(ENDS)


def unheard(rng):
    """A word that nobody has heard."""
    return "".join(syllable(rng) for _ in range(rng.choice([1, 2, 2, 2, 3])))


def name(rng):
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(words.NAMES)
    return rng.choice(MORE_NAMES) if kind < 0.6 else unheard(rng).capitalize()


def being(rng):
    return rng.choice(BEINGS) if rng.random() < 0.7 else unheard(rng)


def thing(rng):
    return rng.choice(OBJECTS) if rng.random() < 0.7 else unheard(rng)


def place(rng):
    """A place with its preposition."""
    if rng.random() < 0.3:
        return f"{rng.choice(['in', 'near', 'at'])} {rng.choice(['a', 'the', 'an old'])} " + (
            rng.choice(SPOTS) if rng.random() < 0.7 else thing(rng)
        )
    if rng.random() < 0.5:
        return f"in {rng.choice(words.CITIES + COUNTRIES + [unheard(rng).capitalize()] * 20)}"
    return rng.choice(["in the", "near the", "by the"]) + " " + rng.choice(words.PLACES)


def described(rng, noun, chance):
    """Now and then with what it is like before it."""
    return f"{rng.choice(ADJECTIVES)} {noun}" if rng.random() < chance else noun


def plural(noun):
    if noun.endswith(("s", "x", "ch", "sh", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"
