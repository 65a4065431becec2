"""Words that questions are made of: each slot with its words, a bar between two of them."""

SLOTS = {
    "doc": """poem|haiku|limerick|sonnet|song|rap|essay|email|letter|report|blog post|tweet|article|
speech|resume|CV|cover letter|press release|review|slogan|headline|caption|recipe|contract|
invitation|
toast|script|play|dialogue|monologue|summary|outline|lesson plan|business plan|workout plan|
meal plan|
schedule|shopping list|to-do list|checklist|quiz|crossword|riddle book|diary entry|obituary|
biography|
advertisement|job description|product description|postcard|thank you note|birthday card|prayer|
love letter|complaint|apology|proposal|abstract|thesis|homework|worksheet|table|spreadsheet|
presentation|memo|manual|policy|newsletter|petition|eulogy|verse|ballad|lullaby|ode|anthem|jingle|
screenplay|comic|novel|chapter|book|tagline|bio|profile|greeting|wish|vow|sermon|acrostic""",
    "code": """sorts a list|reverses a string|reads a file|prints the primes|opens a window|
parses JSON|adds two numbers|finds the longest word|sends a request|counts words|draws a circle|
connects to a database|checks a password|computes a factorial|merges two lists|validates an address|
scrapes a website|trains a classifier|resizes an image|calls an API|writes to a log|sorts words|
finds duplicates|computes the average|plays a sound|rolls a die|shows the time|sums an array""",
    "task": """sort a list|reverse a string|read a file|parse JSON|merge two branches|open a port|
tie a knot|bake bread|cook rice|boil potatoes|fry fish|grill meat|clean a window|wash a sweater|
remove a stain|paint a wall|hang a picture|change a tire|repair a pipe|unclog a drain|
sharpen a knife|
plant a tree|grow tomatoes|train a dog|feed a hamster|bathe a cat|catch a fish|ride a horse|
drive a car|
park a car|sell a house|rent a flat|buy a ticket|open an account|pay taxes|save money|invest money|
get a passport|get a visa|find a job|quit a job|ask for a raise|write a letter|learn a language|
learn to sing|play the guitar|play chess|win at cards|draw a face|fold a crane|knit a scarf|
sew a button|
lose weight|gain muscle|run faster|sleep better|stop smoking|eat less sugar|calm down|make friends|
meet people|say sorry|forgive somebody|raise a child|teach a class|give a speech|start a company|
build a website|install a program|update my phone|reset my password|print a page|scan a document|
take a screenshot|delete an account|back up my files|connect to the internet|block a number|
fix a bicycle|fix a laptop|assemble a shelf|move a piano|pack a suitcase|fly a plane|sail a boat|
ski|swim|dance|juggle|meditate|whistle|skateboard|yodel|cut hair|shave|apply makeup|iron a shirt|
treat a burn|stop a nosebleed|cure a cold|lower a fever|remove a splinter|measure a room|
calculate interest|
solve a Rubik's cube|make soap|make candles|brew beer|make coffee|make tea|set the table|
fold a napkin""",
    "language": """Python|Java|C++|JavaScript|Rust|Go|SQL|HTML|Haskell|Bash|Ruby|PHP|C|C#|Swift|
Kotlin|Perl|Lua|R|Scala|TypeScript|CSS|LaTeX|Fortran|COBOL|assembly|Lisp|MATLAB|Julia|regex|YAML""",
    "tongue": """French|German|Spanish|Latin|Italian|Chinese|Japanese|Russian|Arabic|Greek|Dutch|
Swedish|Polish|Turkish|Hindi|Korean|Welsh|Portuguese|Danish|Finnish|Hebrew|Thai|Vietnamese|Swahili|
Norwegian|Czech|Hungarian|Ukrainian|Irish|Icelandic|Esperanto|Klingon|sign language|Mandarin|
Zulu""",
    "science": """quantum physics|gravity|evolution|the big bang|democracy|inflation|blockchain|
machine learning|DNA|electricity|philosophy|capitalism|the Roman Empire|the French Revolution|
black holes|climate change|a neural network|the stock market|calculus|algebra|geometry|statistics|
entropy|magnetism|nuclear power|osmosis|mitosis|the water cycle|plate tectonics|genetics|bacteria|
viruses|the immune system|antibiotics|vaccination|cancer|diabetes|cholesterol|vitamins|proteins|
communism|socialism|feudalism|feminism|the cold war|the civil war|World War I|the Renaissance|
the Middle Ages|the industrial revolution|colonialism|slavery|globalisation|the European Union|NATO|
the United Nations|the constitution|human rights|the supreme court|GDP|interest rates|
cryptocurrency|
bitcoin|mortgages|insurance|supply and demand|monopoly|marketing|psychology|Freud|stoicism|
existentialism|Buddhism|Islam|Christianity|Hinduism|karma|yoga|feng shui|astrology|tarot|
the internet|
the cloud|artificial intelligence|transformers|attention|backpropagation|gradient descent|
encryption|
a compiler|an operating system|a database|a pointer|object orientation|TCP|DNS|Kubernetes|Docker|
git|
string theory|dark matter|the speed of light|sound waves|lasers|radio waves|x-rays|solar energy|
wind power|photons|atoms|molecules|acids|the periodic table|oxidation|enzymes|hormones|neurons|
ecosystems|the food chain|biodiversity|fossils|dinosaurs|earthquakes|volcanoes|tides|
the ozone layer|
jazz|opera|impressionism|surrealism|grammar|the subjunctive|rhetoric|irony|satire|metaphors""",
    "machine": """engine|computer|telephone|car|bicycle|laptop|printer|battery|camera|fridge|
refrigerator|microwave|steam engine|telescope|aeroplane|light bulb|television|radio|vacuum cleaner|
dishwasher|toaster|elevator|escalator|rocket|satellite|submarine|drone|robot|turbine|pump|piano|
clock|
thermostat|washing machine|hair dryer|mobile phone|smartphone|tablet|router|transistor|microphone|
compass|zipper|lock|parachute|combine harvester|sewing machine|3D printer|calculator|keyboard""",
    "office": """president|prime minister|king|queen|chancellor|leader|mayor|foreign minister|
emperor|
pope|richest woman|tallest man|fastest runner|best player|head coach|CEO|founder|governor|
ambassador|
national poet|champion|first emperor|last tsar|youngest senator|oldest person|most famous actor""",
    "event": """World Cup|election|Olympics|Nobel Prize|Super Bowl|championship|race|war|Oscars|
battle|
tournament|final|league|Tour de France|marathon|chess title|Eurovision|cup final|gold medal|
debate""",
    "medium": """book|film|song|game|laptop|restaurant|hotel|phone|museum|series|movie|album|
podcast|
novel|comic|recipe|wine|cheese|coffee|beer|car|bike|camera|headphones|shoes|watch|gift|present|
holiday|
beach|country|city|school|university|course|job|diet|sport|pet|hobby|app|website|browser|bank|
dentist""",
    "person": """boss|teacher|landlord|friend|mother|doctor|lawyer|customer|manager|mayor|colleague|
neighbour|girlfriend|boyfriend|wife|husband|client|bank|school|editor|aunt|grandmother|professor|
team|
company|father|ex|daughter|son|dentist|judge|president|newspaper|airline|insurance""",
    "role": """doctor|lawyer|pirate|teacher|therapist|Linux terminal|travel guide|chef|interviewer|
comedian|poet|philosopher|priest|detective|salesman|coach|scientist|hacker|king|villain|
dungeon master|
translator|spelling checker|calculator|search engine|historian|critic|vampire|cat|rubber duck""",
    "planet": """Mars|Venus|the moon|Jupiter|Saturn|the sun|Pluto|Neptune|the Milky Way|Andromeda|
a star""",
    "game": """chess|hangman|tic-tac-toe|twenty questions|a word game|poker|I spy|
rock paper scissors|
checkers|bingo|charades|trivia|Scrabble|cards|dice|hide and seek|football|a guessing game|sudoku""",
    "site": """browser|website|document|map|calendar|folder|window|door|file|garage|email|app|
camera|
settings|new tab|spreadsheet|terminal|music player|calculator|picture""",
    "things": """birds|cities|flowers|presidents|rivers|films|songs|colours|tools|animals|
countries|mountains|books|writers|painters|composers|kings|queens|inventors|scientists|actors|
singers|
sports|games|trees|fruits|vegetables|metals|gases|languages|religions|wars|islands|lakes|oceans|
stars|
dinosaurs|insects|verbs|adjectives|nouns|synonyms|prime numbers|programming languages|car makers|
companies|brands|hotels|recipes|dishes|desserts|wines|cheeses|dog breeds|jobs|hobbies|elements|
bones""",
    "attr": """population|area|history|meaning|height|depth|length|weight|age|price|colour code|
climate|
currency|flag|anthem|religion|size|origin|formula|symbol|temperature|speed|melting point|density|
mass|
value|purpose|cause|effect|definition|plural|past tense|etymology|pronunciation|opposite meaning|
author|founder|owner|inventor|discoverer|birthplace|nickname|address|phone number|zip code|
time zone|
main idea|moral|ending|plot|theme|setting|best part|square root|cube root|diameter|volume|surface|
life span|diet|habitat|scientific name|average salary|boiling temperature|number of bones|GDP|
mayor""",
    "super": """largest|smallest|tallest|deepest|longest|oldest|fastest|richest|poorest|most famous|
most beautiful|most dangerous|hottest|coldest|best|worst|most popular|most expensive|cheapest|
highest|
strongest|smartest|heaviest|rarest|first|last|nearest|most common|loudest|greenest|safest""",
    "kind": """ocean|river|mountain|country|city|animal|bird|fish|desert|lake|island|planet|
building|
bridge|tower|person|company|university|airport|stadium|song|film|book|painting|language|religion|
metal|gem|tree|flower|dog|insect|dinosaur|car|ship|plane|computer|team|player|king|empire|war|
volcano""",
    "adj": """tall|long|deep|old|heavy|fast|big|far|high|expensive|hot|cold|wide|rich|dangerous|
strong|
loud|smart|healthy|popular|rare|large|thick|bright|hard|common|deadly|sour|steep|clean""",
    "unit": """miles|kilometres|feet|inches|metres|pounds|kilograms|ounces|grams|litres|gallons|
cups|
pints|degrees Fahrenheit|Celsius|dollars|euros|yen|pounds sterling|hours|minutes|seconds|days|weeks|
acres|hectares|knots|light years|bytes|megabytes|bits|radians|joules|calories|horsepower|
teaspoons""",
    "verbed": """invented|discovered|wrote|painted|composed|founded|built|designed|directed|won|
killed|
conquered|ruled|crossed|climbed|betrayed|married|sang|sculpted|owns|bought|sold|leads|coined|proved|
assassinated|succeeded|taught|explored|translated|banned|recorded|produced|created|stole|burned""",
    "work": """the Odyssey|Macbeth|the Bible|Faust|Don Quixote|Guernica|the Scream|Starry Night|
the Moonlight Sonata|the Magic Flute|Carmen|the Ninth Symphony|Harry Potter|Moby Dick|Dracula|
Frankenstein|
The Lord of the Rings|Star Wars|Titanic|The Matrix|Avatar|Jaws|Casablanca|the Eiffel Tower|
the Great Wall|the Pyramids|the Taj Mahal|the Colosseum|Big Ben|the White House|Wikipedia|Google|
Microsoft|Facebook|Tesla|Amazon|Linux|Windows|the Beatles|Queen|Abba|
the Declaration of Independence|
the theory of evolution|penicillin|dynamite|the printing press|America|Australia|Antarctica|
radium""",
    "famous": """Napoleon|Einstein|Newton|Shakespeare|Mozart|Bach|Beethoven|Picasso|Rembrandt|
da Vinci|
Michelangelo|Caesar|Cleopatra|Alexander the Great|Genghis Khan|Gandhi|Mandela|Lincoln|Washington|
Obama|
Trump|Biden|Putin|Merkel|Churchill|Hitler|Stalin|Lenin|Marx|Darwin|Galileo|Tesla|Edison|Curie|Plato|
Socrates|Aristotle|Kant|Nietzsche|Goethe|Homer|Dante|Tolstoy|Dickens|Jane Austen|Mark Twain|
Hemingway|
Orwell|Elvis|Madonna|Michael Jackson|Beyonce|Ronaldo|Messi|Pele|Federer|Muhammad Ali|Elon Musk|
Bill Gates|Steve Jobs|Jeff Bezos|Zuckerberg|the Pope|Buddha|Jesus|Moses|Confucius|Marco Polo|
Columbus|
Magellan|Neil Armstrong|Gagarin|Marilyn Monroe|Chaplin|Walt Disney|Batman|Superman|Sherlock Holmes|
James Bond|Dracula|Zeus|Odin|Robin Hood|King Arthur|Joan of Arc|Queen Victoria|Princess Diana""",
    "place": """France|Germany|Italy|Spain|England|Scotland|America|the USA|China|Japan|Africa|
Europe|
Asia|London|Paris|New York|Berlin|Rome|Moscow|California|Texas|Hawaii|the Alps|the Sahara|
the Amazon|
the Nile|the Rhine|Mount Fuji|the Himalayas|the North Pole|Atlantis|Hollywood|Venice|Hong Kong""",
    "past": """the war|the dinosaurs|the Roman Empire|the revolution|the plague|the gold rush|
the wall|
the depression|the moon landing|the strike|the ice age|the earthquake|the crash|the internet|
television|
writing|money|the wheel|the alphabet|paper|football|the piano|photography|the telephone|
the train""",
    "ill": """headache|fever|cough|cold|rash|toothache|sore throat|stomach ache|back pain|bruise|
cut|
broken arm|flu|allergy|insomnia|cramp|migraine|burn|blister|hangover|infection|swollen knee|
ear ache""",
    "opinion": """taxes|abortion|God|religion|politics|guns|war|immigration|vegans|climate policy|
nuclear energy|school uniforms|homework|social media|crypto|feminism|capitalism|death|money|
marriage|
divorce|astrology|ghosts|aliens|free will|pineapple on pizza|football|modern art|the government|
the police|
the king|the royal family|robots|AI|self-driving cars|electric cars|space travel|zoos|meat|
alcohol""",
    "food": """pizza|soup|salad|pasta|rice|bread|cake|pie|noodles|sandwich|lasagne|curry|sushi|
tacos|
goulash|waffles|omelette|risotto|chili|stew|pudding|muffins|cookies|brownies|paella|hummus|falafel|
ramen|
dumplings|steak|roast chicken|fish and chips|apple pie|cheesecake|tiramisu|ice cream|smoothie|
jam""",
    "cando": """book a flight|order a pizza|call a taxi|play a song|send an email|draw a picture|
take a photo|set a timer|search the web|open a file|read my mail|drive a car|buy shoes|pay my bills|
book a hotel|reserve a room|make a phone call|see my screen|hear music|read this PDF|write code|
speak Spanish|speak German|speak French|translate|sing|dance|draw|paint|browse|google something|
check the weather|do my taxes|do my homework|plan my wedding|fix my computer|remember things|
generate images|analyse a picture|summarise a book|edit a video|make a website|predict the future|
read minds|do calculus|prove theorems|play chess|give medical advice|write poetry|rap|beatbox""",
    "act": """summarise|summarize|rewrite|rephrase|paraphrase|shorten|proofread|correct|edit|
improve|
translate|explain|analyse|interpret|review|simplify|expand|format|punctuate|continue|comment on|
criticise|fact-check|transcribe|annotate|outline|condense|polish|reword|spell-check|grade""",
    "text": """this text|this paragraph|this sentence|the article|this email|my essay|the report|
my letter|
this code|this document|the following|this page|my thesis|the book|the last chapter|the meeting|
the contract|my CV|this poem|the lyrics|the plot|the news|this PDF|my notes|the speech|the video""",
    "when": """today|tomorrow|tonight|next week|this weekend|on Friday|in July|in winter|last year|
yesterday|in 2030|this year|next summer|at noon|soon|in the future|in the past|on Mondays|
at Christmas""",
    "quality": """good cheap healthy popular famous nice fun easy safe quick simple romantic
traditional
modern unusual interesting vegan vegetarian Italian Chinese small big new classic scary
funny""".replace("\n", " ").replace(" ", "|"),
    "go": """sleep|dream|sneeze|yawn|hiccup|blink|cry|laugh|snore|age|die|fall in love|lie|fight|
dance|
blush|sweat|itch|vote|work|gamble|kiss|marry|divorce|migrate|hibernate|purr|bark|sing|fly|swim|
float|
rust|burn|freeze|melt|boil|explode|evaporate|shine|rotate|fall|grow|change colour|taste bitter|
smell""",
}


def parts(texts):
    """Texts with bars between them, which lines may break."""
    return [" ".join(text.split()) for text in texts.split("|")]


SLOTS = {slot: parts(texts) for slot, texts in SLOTS.items()}
