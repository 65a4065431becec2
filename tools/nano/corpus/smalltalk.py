"""Small talk in many words: greetings, thanks, feelings, and who is there."""

from corpus import chat, topics
from corpus.instance import ask, hurried
from corpus.slots import parts

NO = "No. " + chat.ABOUT
GLAD = ["I am glad. What would you like to do next?"]
SORRY = ["I am sorry. I am a very small model and make mistakes."]
COMFORT = ["I am sorry to hear that. Would you like to hear a story?"]
JOY = ["That is good to hear! What would you like to do next?"]
JOKES = [
    "Why did the bicycle fall over? It was two tired.",
    "What has hands but cannot clap? A clock.",
]
ENGINE = [
    "Banyan is an engine that runs language models. A banyan is also a large tree with many roots."
]
# what is said, a | between two of it, and the answers
TALK = [
    (
        """hi there|hey you|hello there|good afternoon|yo|hiya|greetings|hello bot|hi Banyan|
what's up|sup|howdy|hello?|hey hey|morning!|good day to you|hello, can you help me|
hi, I am new here|hi|hello|hey|hallo there|heya|hiii|helloo|hey there|good morning to you|
good evening to you|good day|evening|top of the morning|welcome|salutations|aloha|ahoy|
hi everybody|hi again|hello again|hey bot|hello computer|hello machine|hi buddy|hey friend|
hello dear|hi robot|hello Nano|hey Nano|hello world|hi model|hello assistant|hi, it's me|
hello, it is me again|I'm back|here I am|hi, let's start|hello, shall we begin|hey, let us talk|
let's chat|can we talk|I want to talk|do you want to chat|talk to me|hello, how nice to see you|
a very good morning|happy Monday|happy new year|merry Christmas|hi, good morning|peace|
hello, first time here|hi, just trying this out|hey, I just installed you|hello, sunny day|
it is a nice day|what a lovely morning|good to be here|hi hi hi|hey ho""",
        ["Hello! How can I help you?", "Hi! What can I do for you?"],
    ),
    (
        """tell me about yourself|who am I talking to|what kind of model are you|are you an AI|
are you a robot|are you a bot|what's your name|do you have a name|how should I call you|
are you real|are you a person|say who you are|you are who?|may I know your name|who are you|
what are you|what is your name|are you human|introduce yourself|who is this|who is there|
who is speaking|whom do I talk to|what am I talking to|what should I call you|what are you called|
how are you called|do you have a nickname|your name?|name?|state your name|tell me your name|
give me your name|what's this thing|what is this program|what is this chat|which model is this|
which model are you|what model is running|are you a machine|are you a computer|are you a chatbot|
are you a language model|are you an LLM|are you ChatGPT|are you GPT|are you Claude|are you Llama|
are you Gemini|are you Siri|are you Alexa|are you Qwen|are you Mistral|is this ChatGPT|
is this GPT-4|
what AI are you|what kind of AI is this|what sort of program are you|what type of bot are you|
is this a human|is a person there|is there a human behind this|am I chatting with a person|
am I talking to a robot|am I talking to a real person|describe yourself|present yourself|
explain who you are|can you introduce yourself|can you tell me who you are|
I want to know who you are|
so who are you|and who are you|but who are you really|ok and what are you|you're who exactly|
I don't know you, who are you|are you some kind of robot|do you have an identity|
what do people call you|what do they call you|tell me something about yourself|
tell me more about yourself|are you Banyan|is your name Banyan|is this Banyan Nano|
what version are you|which version is this|which language model is it""",
        [chat.ABOUT, chat.ABOUT + " " + chat.CAN],
    ),
    (
        """what are you able to do|what can I ask you|how do I use this|what should I type|
show me what you can do|give me some examples|what are your skills|can you help me|I need help|
what do you do|what is this good for|how does this work|list your abilities|what can you do|help|
help me|what are you good at|what do you know|how can you help me|what can you do for me|
what else can you do|what could you do for me|what are your abilities|what are you capable of|
what are your features|what are your functions|what is your purpose|what are you for|
what are you here for|what are you made for|what kind of things can you do|what do you offer|
what's possible here|what can I do here|what can I do with you|what can I use you for|
which things can you do|which questions can you answer|what questions may I ask|
what should I ask you|what shall I ask|what can we do together|tell me what you can do|
say what you can do|explain what you can do|show me your skills|list your skills|list your features|
what tasks can you handle|what jobs can you do|can you do anything|are you useful|
how are you useful|
how can you be useful|in what can you help|with what can you help me|I don't know what to ask|
I do not know what to type|give me an example|examples please|any examples|any ideas what to ask|
suggest something to ask|menu|options|commands|usage|manual|instructions please|
how do I talk to you|how do I start|where do I start|what now|what next|what do I do now|
can you assist me|I need some assistance|I need your help|please help|help please|help!|
could you help me with something|what do you understand|what are your limits|what can't you do""",
        [chat.CAN + " I know little else."],
    ),
    (
        """thx|ty|thank you so much|many thanks|cheers|thanks, that was nice|
that helped, thank you|thanks a million|I appreciate it|great, thanks|ok thanks|thanks|thank you|
thanks a lot|thank you very much|thanks so much|thank u|tysm|thanks man|thanks buddy|thanks bot|
thanks for that|thanks for your help|thank you for the help|thank you for the story|
thanks for the answer|thanks for everything|thank you, dear|thank you, Banyan|thanks Banyan|
I thank you|a big thank you|thanks a bunch|much appreciated|I'm grateful|I am thankful|
that was helpful|very helpful, thanks|that was very kind|how kind of you|you helped me, thanks|
perfect, thank you|nice, thanks|good, thank you|wonderful, thank you|awesome, thanks|
all right, thanks|ok, thank you|thanks, you too|thank you anyway|thanks anyway|no, thank you|
thanks, bye for now I think not yet|thank you, that is enough|thanks, that will do|
thank you for your time|thanks once more|thank you again|merci|danke|gracias|obliged|bless you""",
        ["You are welcome!"],
    ),
    (
        """cya|bye bye|see you later|good bye|I have to go|talk to you later|farewell|so long|
until tomorrow|good night, sleep well|I am leaving now|bye|goodbye|see you|see ya|see you soon|
good night|night night|later|laters|catch you later|take care|have a nice day|have a good one|
have a good evening|until next time|till later|I must go|I need to go now|gotta go|g2g|
I am going to bed|I'm going home|I am going to sleep|time to go|I'm leaving|I'm out|I am done|
that's all for today|that is all, bye|ok bye|okay, goodbye|thanks and bye|thank you, goodbye|
bye Banyan|goodbye, my friend|bye, see you|bye now|adieu|ciao|adios|tschüss|au revoir|exit|quit|
we are done here|I will come back later|I'll be back|see you next week|see you on Monday|
talk soon|speak to you soon|sleep well|sweet dreams|let's stop here|I'm off to work|I have to leave|
dinner is ready, bye|my bus is coming, bye|until then|toodle-oo|cheerio|peace out""",
        ["Goodbye! Have a nice day.", "Goodbye!"],
    ),
    (
        """how is it going|how are things|how do you feel|how's your day|are you well|are you ok|
you good?|how have you been|feeling fine?|what are you doing|how are you|how are you today|
how do you do|how r u|how are u|how are ya|how you doing|how's it going|hows it going|
how's life|how is life|how is your day|how is your day going|how was your morning|
how was your weekend|how was your night|how's everything|how is everything|is everything ok|
is everything all right|are you all right|are you fine|are you good|you ok|all good|all well|
are you doing well|doing well?|hope you are well|I hope you are fine|how do you feel today|
how are you feeling|how are you this morning|how are you this evening|hi, how are you|
hello, how are you|hey how are you doing|hey, how's it going|good morning, how are you|
hello! how do you do?|hi! how is your day?|what's new|anything new|what are you up to|
how goes it|how is work|did you sleep well|did you have a good day|having a good day|
how's your mood|in a good mood?|and how are you|I am fine, and you?|I'm good, how about you|
fine, and yourself|how have you been lately|are you happy|are you having fun""",
        ["I am fine, thank you. How can I help you?"],
    ),
    (
        """who built you|who trained you|who created you|who is your maker|where were you made|
who programmed you|which company made you|how were you trained|who made you|where do you come from|
who wrote you|who developed you|who designed you|who owns you|who invented you|who is your father|
who are your parents|who is your creator|who is your boss|who is your owner|who is your author|
where are you from|what is your origin|where were you born|where were you trained|
when were you made|how were you made|how were you built|how did they make you|
on what were you trained|
what were you trained on|what data were you trained on|what was your training data|
which people made you|which firm built you|which lab made you|did OpenAI make you|
did Google build you|are you made by Google|are you from OpenAI|are you made by Microsoft|
were you made by a company|who stands behind you|who is responsible for you|who coded you|
who do you work for|tell me who made you|tell me where you come from|do you know who made you|
I'd like to know who made you|say who built you|how did you learn to speak|who taught you|
how did you come to be|what is your history|how long were you trained""",
        ["I was trained from scratch on two cores for the Banyan engine."],
    ),
    (
        """how large are you|what is your size|how many weights have you got|are you a big model|
are you small|how small are you|how big are you|how many parameters do you have|
how many parameters|how many params|how many weights|number of parameters|parameter count|
what's your parameter count|your size|size?|model size|how big is this model|
how large is this model|
how large is the model|how heavy are you|how much memory do you need|how many neurons do you have|
how many billions of parameters|do you have a billion parameters|are you large|are you tiny|
are you a small model|are you a large language model|is this a big model|is this a small model|
tell me your size|tell me how big you are|how many numbers are in you|how many layers do you have|
so how big are you really|how much do you weigh|are you 7B|are you bigger than GPT""",
        ["I have about ten million parameters. That is very small."],
    ),
    (
        """nice|wow|awesome|perfect|fine|okay|alright|lol|haha|that is funny|I like it|good job|
well done|amazing|you are great|you are funny|not bad|sounds good|I love it|beautiful story|
ok|cool|great|good|yes|I see|super|excellent|fantastic|brilliant|wonderful|lovely|sweet|neat|
very nice|so good|so cool|that's cool|that's great|that's nice|that's awesome|that is good|
that is right|correct|right|exactly|true|indeed|sure|of course|yeah|yep|yup|aha|oh|oh nice|ah ok|
hehe|hahahaha|rofl|lmao|:)|:-)|:D|<3|👍|😀|😂|❤️|good story|nice story|great story|funny story|
what a story|what a nice story|I liked the story|I loved that|I like that|I like you|I love you|
you are nice|you are sweet|you are clever|you are smart|you are the best|you're cool|you rock|
you're awesome|you are good at this|you did well|you did a great job|great work|nice work|
good work|good bot|good answer|nice answer|great answer|good one|nice one|that was good|
that was great|that was fun|that was funny|that was nice|that was beautiful|that was perfect|
that was very good|that made me laugh|this is fun|this is great|this is cool|this is amazing|
it works|it worked|works for me|bravo|congratulations|congrats|hooray|yay|yippee|woohoo|whoa|
impressive|I'm impressed|interesting|very interesting|how interesting|how nice|how sweet|how funny|
makes sense|got it|understood|I understand|fair enough|all right|no problem|never mind|
I agree|agreed|deal|you are right|you were right|that's it|that is correct|A+|ten out of ten|
five stars|keep it up|go on like that|keep going|splendid|marvellous|terrific|superb|magnificent""",
        GLAD,
    ),
    (
        """hello, is this working|testing|testing 1 2 3|can anybody read this|anyone here?|ping|
are you awake|do you hear me|is this thing on|test|test test|this is a test|just a test|
is anybody there|is anyone there|anybody there|anyone there|are you there|are you still there|
you there|still there?|can you hear me|can you see me|can you read me|can you read this|
do you read me|do you copy|are you here|are you with me|are you listening|are you online|
are you on|are you ready|are you working|are you running|are you up|is it on|is it working|
does this work|does it work|is someone there|is somebody here|somebody here?|knock knock|
knock, knock|one two three test|check|check check|mic check|1 2 3|wake up|hello, anyone|
hello? anyone there?|hey, are you there|hi, are you there|where are you|are you asleep|
do you see this|did you get my message|did you hear me|why don't you answer|say something|
answer me|respond|react|speak|talk|why so quiet|hello are you alive or what|
is the model loaded|are we connected|connected?|roger|over""",
        ["I am here. How can I help you?"],
    ),
    (
        """that is wrong|wrong|no|you are wrong|that is not what I asked|bad answer|this is bad|
you made a mistake|that makes no sense|you are stupid|I do not like it|try again|what?|huh?|
nope|not true|false|incorrect|that's wrong|that's not true|that's false|that is incorrect|
that's incorrect|not correct|this is wrong|this is not right|this isn't right|it is wrong|
that was wrong|that was bad|that was not good|that's bad|that is bad|that's a mistake|
there is a mistake|you are mistaken|you got it wrong|you were wrong|wrong answer|your answer is bad|
your answer is incorrect|your answer was wrong|that answer is wrong|your story is bad|bad story|
bad bot|bad|terrible|awful|horrible|useless|you are useless|you're useless|this is useless|
you are bad at this|you are dumb|you're stupid|you are an idiot|idiot|stupid bot|silly bot|
you suck|this sucks|that sucks|boring|that was boring|this is boring|you are boring|
I don't like that|I don't like you|I hate you|I hate this|I'm disappointed|I am not happy with that|
not what I wanted|I did not ask for that|I didn't ask that|you did not answer|you didn't answer|
you don't understand|you do not understand me|you misunderstood me|you are not listening|
that's nonsense|nonsense|rubbish|garbage|crap|that is not funny|not funny|not good|not nice|
no good|no way|no!|no no no|nah|try once more|do it again|once again please|that doesn't help|
that did not help|not helpful|this does not work|it doesn't work|it is broken|you are broken|
are you broken|what is wrong with you|why are you so bad|why did you say that|that's not an answer|
what do you mean|what does that mean|I don't understand|I do not get it|say that again|pardon|
excuse me?|come again|are you kidding|are you serious|you lie|you are lying|liar|shame on you|
do better|you can do better|correct yourself|fix your answer|no, it is not""",
        SORRY,
    ),
    (
        """tell me another joke|do you know a joke|say something funny|joke please|a joke!|
cheer me up|got any jokes|tell us a joke|tell me a joke|make me laugh|joke|jokes|any joke|
a joke please|one joke please|another joke|one more joke|a funny joke|a good joke|a short joke|
a dad joke|a bad joke|a pun|a riddle|tell a joke|tell me a riddle|tell me a funny joke|
tell me a good joke|tell me a dad joke|tell me a pun|tell me something funny|give me a joke|
can you tell a joke|can you tell me a joke|could you tell me a joke|would you tell a joke|
can you joke|are you able to joke|do you know any riddles|do you know jokes|do you know funny jokes|
know a good joke|have you got a joke|do you have a joke for me|I want a joke|I want to laugh|
I need a joke|I need a laugh|I would like a joke|I'd like to hear a joke|let me hear a joke|
let's hear a joke|be funny|joke of the day|say a joke|write a joke|time for a joke|
amuse me|make us laugh|make my daughter laugh|knows anyone a joke|what's your best joke|
what is your favourite joke|share a joke|tell my kids a joke|a joke for my friend|
a joke about bicycles|a joke about cats|a joke about my boss|a cat joke|a knock knock joke|
are you funny""",
        JOKES,
    ),
    (
        """do you love me|do you like me|are you my friend|will you marry me|
do you have feelings|can you feel pain|are you alive|do you sleep|do you dream|how old are you|
do you have a family|where do you live|do you eat|are you clever|are you smart|do you think|
can you think|are you conscious|are you sentient|do you have a soul|do you have a body|
do you have a brain|do you have friends|do you have parents|do you have children|do you have a pet|
do you have a girlfriend|do you have a boyfriend|do you have a job|do you have hobbies|
are you married|are you a man|are you a woman|are you a boy or a girl|are you male|are you female|
are you a child|are you old|are you young|are you hungry|are you tired|are you bored|are you lonely|
are you sad|are you angry|are you afraid|are you dangerous|are you evil|are you intelligent|
can you love|can you feel|can you see|can you hear|can you walk|can you smell|can you cook|
do you get tired|do you get bored|do you feel pain|do you feel anything|do you cry|do you laugh|
do you know me|do you remember me|do you know my name|do you learn|do you go to school|
do you like music|do you like cats|do you like pizza|do you drink coffee|do you believe in God|
would you like to be human|will you take over the world|do you want to be free|
when were you born|what is your age|what's your age|your age?|when is your birthday|
are you better than ChatGPT|are you always right|do you know everything|do you use the internet|
are you connected to the internet|can you go online|do you spy on me|are you recording this""",
        [NO],
    ),
    (
        """what is Banyan|what is a banyan|what's Banyan|what's a banyan|banyan?|
tell me about Banyan|
explain Banyan|what is the Banyan engine|what does the word banyan mean|define banyan|
is Banyan a tree|is a banyan a tree|what is the meaning of Banyan|why are you called Banyan|
why the name Banyan|what sort of program is Banyan|what does Banyan do|what can Banyan do|
what kind of tree is a banyan|describe a banyan|what is this Banyan thing|so what is Banyan|
what is meant by Banyan|who or what is Banyan|I want to know what Banyan is|
can you tell me what Banyan is|what's the Banyan project|what exactly is a banyan""",
        ENGINE,
    ),
    (
        """nice to meet you|pleased to meet you|glad to meet you|happy to meet you|good to meet you|
it is nice to meet you|a pleasure to meet you|I am happy to see you|good to see you|nice to see you|
nice meeting you|delighted to meet you|great to meet you|lovely to meet you|good to know you""",
        ["Nice to meet you, too! How can I help you?"],
    ),
]
SAD = """sad lonely tired angry sick ill stressed unhappy bored_and_sad afraid scared worried
nervous depressed upset hurt exhausted heartbroken frustrated anxious miserable down blue hopeless
lost confused_and_sad so_alone disappointed_today in_pain not_well not_feeling_well not_ok
overwhelmed homesick hungry_and_cold ashamed jealous broke fed_up not_happy really_low
a_bit_down""".split()
HAPPY = """happy glad excited delighted cheerful thrilled joyful proud in_love content pleased
overjoyed so_lucky on_holiday feeling_great feeling_good in_a_good_mood full_of_joy great
super_happy very_well fine_and_happy well_rested relaxed on_top_of_the_world""".split()
HOW = ["", "", "", "so ", "very ", "a bit ", "really ", "quite ", "just ", "feeling ", "too "]
WHEN = [
    "",
    "",
    "",
    " today",
    " now",
    " right now",
    " tonight",
    " again",
    " this week",
    " these days",
]
SAD_NEWS = """I had a bad {day}|I had a terrible {day}|I had an awful {day}|my {day} was bad|
my {day} was awful|today was horrible|it was a hard {day}|what a bad {day}|this {day} is terrible|
nobody likes me|I lost my job|I miss my {one}|my {one} died|my {one} is ill|my {one} is sick|
my {one} left me|my {one} is angry with me|my {one} ran away|my {one} hates me|my {pet} died|
my {pet} ran away|my {pet} is sick|my {thing} is broken|my {thing} broke|I lost my {thing}|
I broke my {thing}|somebody stole my {thing}|I failed my exam|I failed the test|I got bad marks|
I got fired|I have no friends|nobody talks to me|nobody understands me|I feel like crying|
I am crying|
I can't stop crying|I want to cry|I cried all night|everything is bad|everything goes wrong|
nothing works|life is hard|life is sad|I hate my life|I have a headache|my head hurts|
my {part} hurts|
I broke my {part}|I have a cold|I have a fever|I feel awful|I feel bad|I feel terrible|
I don't feel well|
I don't feel good|we lost the game|my team lost|I lost the race|it is raining and I am sad|
my heart is broken|I am having a rough {day}|I am going through a hard time|things are bad|
I can't sleep and feel bad|we had a fight|I had a fight with my {one}|I am afraid of tomorrow|
I worry about my {one}|I missed my bus|I was robbed|I have too much work|school was awful"""
GOOD_NEWS = """I had a great {day}|I had a good {day}|I had a wonderful {day}|my {day} was great|
my {day} was wonderful|today was fun|it was a lovely {day}|what a great {day}|best {day} ever|
today is my birthday|it's my birthday|it is my birthday today|my birthday is tomorrow|
I passed my exam|
I passed the test|I got good marks|I got a new job|I got the job|I got promoted|I won|I won a prize|
I won the race|we won|we won the game|my team won|life is good|life is great|life is beautiful|
we are on holiday|I am going on holiday|I'm getting married|I got married|we are having a baby|
I had a baby|my {one} had a baby|my {one} is coming home|my {one} visits me today|
my {one} gave me a present|I got a present|I got a {thing}|I bought a {thing}|
I just bought a {thing}|
I have a new {thing}|we have a new {thing}|I got a new {thing}|I found my {thing}|
I got a {pet}|we got a {pet}|I have a new {pet}|we adopted a {pet}|my {pet} had babies|
my {pet} came back|I finished my work|I finished my homework|I finished school|I finished my book|
I learned to swim|I learned to drive|I can ride a bike now|I made a friend|I found a friend|
I met somebody nice|I am in love|the sun is shining and I am happy|school is out|it's Friday|
it is the weekend|tomorrow is a holiday|I slept well|I feel great|I feel good|I feel wonderful|
I feel much better|everything is great|everything works now|I did it|I made it|I am a father now|
I am a grandmother now|I baked a cake|I had a lovely dinner|good news|I have good news|
I got an A|my plant is growing|I moved to a new house|I love my life"""
FILLS = {
    "day": "day|morning|week|evening|night|time|year|weekend|afternoon",
    "one": """mother|father|friend|brother|sister|wife|husband|girlfriend|boyfriend|grandmother|
grandfather|son|daughter|boss|teacher|aunt|uncle|best friend|mom|dad|child|neighbour|cousin""",
    "pet": "dog|cat|hamster|rabbit|puppy|kitten|bird|fish|horse|parrot|turtle|guinea pig",
    "part": "leg|arm|foot|back|tooth|hand|knee|finger|stomach|ear",
}
INTRODUCED = [
    "my name is {}",
    "I am {}",
    "I'm {}",
    "I'm {}, nice to meet you",
    "hi, I am {}",
    "hi, I'm {}",
    "hello, my name is {}",
    "hello, I'm {}",
    "hey, I'm {}",
    "you can call me {}",
    "please call me {}",
    "call me {}",
    "just call me {}",
    "people call me {}",
    "everybody calls me {}",
    "my friends call me {}",
    "hey, {} here",
    "hi, {} here",
    "this is {}",
    "hello, this is {}",
    "it's {}",
    "hi, it's {}",
    "{} is my name",
    "the name is {}",
    "name's {}",
    "my name's {}",
    "I am called {}",
    "I'm called {}",
    "I go by {}",
    "hi! my name is {}, what's up",
    "hello Banyan, I am {}",
    "good morning, I am {}",
    "good evening, my name is {}",
    "let me introduce myself: I am {}",
    "may I introduce myself, {}",
    "so, I am {}",
    "by the way, I'm {}",
    "my name is {}, nice to meet you",
    "hi Nano, {} is my name",
    "I'm {} and I am new here",
    "you are talking to {}",
    "my parents named me {}",
    "I was named {}",
    "remember my name: {}",
]
BEFORE = """hi, |hello, |hey, |so, |well, |ok, |oh, |please, |and |but |um, |hey Banyan, |
now """.replace("\n", "").split("|")
AFTER = """ please| then| today| now|, friend|, Banyan|, my friend|, dear| ok| again|, bot| really|
 by the way|, man|, buddy| here| for me|, please""".replace("\n", "").split("|")
QUESTION_WORDS = """who what how are do can is may where which will got did have when why does am
would could has was were whom""".split()


TALK = [(parts(said), answers) for said, answers in TALK]
SAD_NEWS, GOOD_NEWS = parts(SAD_NEWS), parts(GOOD_NEWS)
FILLS = {slot: parts(texts) for slot, texts in FILLS.items()}


def introduction(rng):
    name = topics.name(rng)
    return rng.choice(INTRODUCED).format(name), [f"Nice to meet you, {name}!"]


def feeling(rng):
    sad = rng.random() < 0.55
    if rng.random() < 0.45:
        state = rng.choice(SAD if sad else HAPPY).replace("_", " ")
        said = rng.choice(["I am ", "I'm ", "I feel ", "im ", "we are ", "I am feeling "])
        how = "" if " " in state else rng.choice(HOW)
        said = (said + how + state + rng.choice(WHEN)).replace("feel feeling", "feel")
        if rng.random() < 0.15:
            said += f" because of my {rng.choice(FILLS['one'])}"
        return said.replace("feeling feeling", "feeling"), COMFORT if sad else JOY
    fill = {slot: rng.choice(texts) for slot, texts in FILLS.items()}
    said = rng.choice(SAD_NEWS if sad else GOOD_NEWS)
    said = said.format(**fill, thing=topics.thing(rng)) + rng.choice(WHEN[:6])
    return said.replace(" today today", " today"), COMFORT if sad else JOY


def phrase(rng):
    said, answers = rng.choice(TALK)
    question = rng.choice(said)
    if question[0].isalpha() and rng.random() < 0.12:
        question = rng.choice(BEFORE) + question
    if question[-1].isalpha() and rng.random() < 0.12:
        question += rng.choice(AFTER)
    return hurried(rng, question), answers


def marked(rng, said):
    """With a capital and a mark at its end, or without."""
    style = rng.random()
    if style < 0.55:
        said = said[0].upper() + said[1:]
    elif style < 0.75:
        said = said.lower()
    if rng.random() < 0.55 and said[-1].isalnum():
        first = said.lower().split()[0].removesuffix("'s")
        said += "?" if first in QUESTION_WORDS else rng.choice([".", ".", "!", "!!", "..."])
    return said


def talk(rng):
    kind = rng.random()
    made = introduction if kind < 0.13 else feeling if kind < 0.3 else phrase
    said, answers = made(rng)
    opening = 0 if made is introduction else 8
    return ask("chat", marked(rng, said), rng.choice(answers), opening=opening)
