"""Texts that are no English: other languages, real and made up, code, and what a cat types. The
model says that it cannot do that, so they need not mean anything."""

from corpus import topics
from corpus.slots import parts

SENTENCES = """Hallo, wie geht es dir?|Erzähl mir eine Geschichte.|Was ist zwei plus zwei?|
Wer bist du?|Guten Morgen!|Wie heißt die Hauptstadt von {c}?|Bonjour, ça va?|
Raconte-moi une histoire.|Qui es-tu ?|Quelle est la capitale de {c} ?|Hola, ¿cómo estás?|
Cuéntame un cuento.|¿Cuál es la capital de {c}?|Ciao, come stai?|Raccontami una storia.|
Olá, tudo bem?|Conte uma história.|Привет, как дела?|Расскажи сказку.|Кто ты?|你好|给我讲个故事。|你是谁？|
こんにちは|お話をしてください。|안녕하세요|이야기를 해 주세요.|مرحبا|كيف حالك؟|नमस्ते|Merhaba, nasılsın?|Cześć, co słychać?|
Hej, hur mår du?|Hoi, hoe gaat het?|Vertel me een verhaal.|Xin chào|Γεια σου|שלום|Sawubona|
Habari gani?|Selamat pagi|Ich möchte {t} kaufen.|Où est {t} ?|Necesito {t}.|Dov'è {t}?|
Was kostet {t}?|Kannst du mir mit {t} helfen?|Je ne comprends pas {t}.|Mein Name ist {n}.|
Je m'appelle {n}.|Me llamo {n}.|Schreib mir ein Gedicht.|Wie spät ist es?|
Wie ist das Wetter in {c}?|
Quel temps fait-il aujourd'hui ?|Écris un poème sur {t}.|Quelle heure est-il ?|Tu parles français ?|
Sprichst du Deutsch?|¿Hablas español?|¿Qué tiempo hace hoy?|Escribe un poema.|¿Quién eres?|
¿Dónde está {c}?|Parli italiano?|Che ore sono?|Chi sei?|Você fala português?|Que horas são?|
Quem é você?|Как приготовить борщ?|Сколько времени?|Напиши стихотворение.|Где находится {c}?|
今何時ですか|あなたは誰ですか|東京の人口は？|法国的首都是哪里？|今天天气怎么样|写一首诗|二加二等于几|
오늘 날씨 어때?|너는 누구니?|Bugün hava nasıl?|Sen kimsin?|Jak się nazywasz?|Kim jesteś?|Opowiedz bajkę.|
Vad heter du?|Berätta en saga.|Hvor er {c}?|Hva heter du?|Mikä sinun nimesi on?|Kerro tarina.|
Ki vagy te?|Mesélj egy történetet.|Jak se máš?|Kdo jsi?|Cine ești?|Ce mai faci?|Ποιος είσαι;|
Siapa kamu?|Apa kabar?|Bạn là ai?|คุณคือใคร|สวัสดี|तुम कौन हो?|मुझे एक कहानी सुनाओ।|তুমি কে?|
من أنت؟|احك لي قصة|
ما هي عاصمة {c}؟|تو کی هستی؟|מי אתה?|Wie bent u?|Wat is {t}?|Quid est hoc?|Salve!|Dia duit|
Kiu vi estas?"""
# words of a language, thrown together
TONGUES = {
    "German": """ich du er sie es wir ihr der die das ein eine ist sind war hat haben kann können
nicht und oder aber mit von zu für auf wie was wer wo wann warum heute morgen gestern Haus Hund
Katze Kind Wetter Geld Arbeit Stadt Buch machen gehen essen schreiben helfen erklären übersetzen
bitte schön groß klein mir dir mein dein Straße über etwas alles sehr viel Rezept
Kuchen Zug Brief""",
    "French": """je tu il elle nous vous le la les un une des est sont était avoir pas et ou mais
avec de du pour sur comment quoi qui où quand pourquoi aujourd'hui demain hier maison chien chat
enfant temps argent travail ville livre faire aller manger écrire aider expliquer traduire s'il te
plaît beau grand petit moi mon ma ton très beaucoup recette gâteau lettre quelle quel sais peux
veux dis""",
    "Spanish": """yo tú él ella nosotros el la los las un una es son fue tener no y o pero con de
del para sobre cómo qué quién dónde cuándo por hoy mañana ayer casa perro gato niño tiempo dinero
trabajo ciudad libro hacer ir comer escribir ayudar explicar traducir favor bonito grande pequeño
mi tu muy mucho receta pastel carta cuál puedo quieres dime puedes ¿qué ¿cómo ¿dónde ¿quién""",
    "Italian": """io tu lui lei noi il la i le un una è sono era non e o ma con di del per su come
cosa chi dove quando perché oggi domani ieri casa cane gatto bambino tempo soldi lavoro città
libro fare andare mangiare scrivere aiutare spiegare tradurre favore bello grande piccolo mio tuo
molto ricetta torta lettera quale posso vuoi dimmi puoi""",
    "Portuguese": """eu você ele ela nós o a os as um uma é são foi não e ou mas com de do para
sobre como que quem onde quando por hoje amanhã ontem casa cachorro gato criança tempo dinheiro
trabalho cidade livro fazer ir comer escrever ajudar explicar traduzir favor bonito grande pequeno
meu seu muito receita bolo carta qual posso quer diga pode""",
    "Dutch": """ik jij hij zij het wij de een is zijn was niet en of maar met van voor op hoe wat
wie waar wanneer waarom vandaag morgen gisteren huis hond kat kind weer geld werk stad boek maken
gaan eten schrijven helpen uitleggen vertalen alsjeblieft mooi groot klein mijn jouw veel recept
taart brief kun kan welke heet hoofdstad""",
    "Swedish": """jag du han hon det vi en ett är var inte och eller men med av för på hur vad vem
var när varför idag imorgon igår hus hund katt barn väder pengar arbete stad bok göra gå äta
skriva hjälpa förklara översätta snälla vacker stor liten min din mycket recept tårta brev kan
heter""",
    "Danish": """jeg du han hun det vi en et er var ikke og eller men med af for på hvordan hvad
hvem hvor hvornår hvorfor dag morgen går hus hund kat barn vejr penge arbejde by bog gøre gå spise
skrive hjælpe forklare oversætte tak smuk stor lille min din meget opskrift kage brev kan hedder""",
    "Polish": """ja ty on ona my to jest są był nie i lub ale z od dla na jak co kto gdzie kiedy
dlaczego dzisiaj jutro wczoraj dom pies kot dziecko pogoda pieniądze praca miasto książka robić
iść jeść pisać pomóc wyjaśnić proszę piękny duży mały mój twój bardzo przepis ciasto list możesz
jaki""",
    "Turkish": """ben sen o biz bir bu şu ne kim nerede nasıl neden bugün yarın dün ev köpek kedi
çocuk hava para iş şehir kitap yapmak gitmek yemek yazmak yardım açıkla lütfen güzel büyük küçük
benim senin çok tarif pasta mektup var yok mı mısın""",
    "Russian": """я ты он она мы это есть был не и или но с от для на как что кто где когда почему
сегодня завтра вчера дом собака кошка ребёнок погода деньги работа город книга делать идти писать
помоги объясни переведи пожалуйста красивый большой маленький мой твой очень рецепт торт письмо
можешь какой сколько""",
    "Greek": "εγώ εσύ αυτός είναι δεν και ή αλλά με από για πώς τι ποιος πού πότε γιατί σήμερα "
    "αύριο σπίτι σκύλος γάτα παιδί καιρός βιβλίο γράψε βοήθησε παρακαλώ μεγάλος μικρός πολύ",
    "Finnish": """minä sinä hän me se on ei ja tai mutta kanssa miten mikä kuka missä milloin
miksi tänään huomenna talo koira kissa lapsi sää raha työ kaupunki kirja tehdä mennä syödä
kirjoittaa auttaa ole hyvä kaunis suuri pieni minun sinun paljon""",
    "Indonesian": """saya kamu dia kami itu ini adalah tidak dan atau tetapi dengan dari untuk di
bagaimana apa siapa mana kapan mengapa hari besok kemarin rumah anjing kucing anak cuaca uang
kerja kota buku membuat pergi makan tulis tolong jelaskan cantik besar kecil sangat resep kue
surat bisa""",
    "Latin": """ego tu ille nos est sunt non et aut sed cum ab pro in quid quis ubi quando cur
hodie cras domus canis feles puer tempus pecunia urbs liber facere ire scribere magnus parvus meus
tuus multum dolor ipsum amet elit sed tempor magna aliqua veniam""",
}
# first and last code point of letters
SCRIPTS = [
    (0x4E00, 0x9000),
    (0x4E00, 0x5F00),
    (0x3042, 0x3093),
    (0x30A2, 0x30F3),
    (0xAC00, 0xD7A0),
    (0x0430, 0x044F),
    (0x0627, 0x064A),
    (0x0915, 0x0939),
    (0x05D0, 0x05EA),
    (0x0E01, 0x0E2E),
    (0x03B1, 0x03C9),
    (0x1F300, 0x1F64F),
]
CODE = """def {w}(x): return x + {i}|def {w}({v}, {v2}):|for {v} in range({i}): print({v})|
import {w}|from {w} import {w2}|print("{w}")|print({i})|{v} = {i}|{v} = [{i}, {i2}]|
if {v} == {i}: print("{w}")|while True: {w}()|class {W}:|class {W} {{ public: int {v}; }};|
int main(void) {{ printf("{w}"); }}|#include <{w}.h>|std::vector<int> {v};|return {v} + {i};|
const {v} = {i};|let {v} = new {W}();|var {v} = "{w}";|function {w}({v}) {{ return {v} * {i}; }}|
console.log({v})|console.log("{w}");|<div class="{w}">{w2}</div>|<html><body>{w}</body></html>|
<p>{w}</p>|<a href="{w}.html">|p {{ color: red; }}|.{w} {{ margin: {i}px; }}|SELECT * FROM {w};|
SELECT {v} FROM {w} WHERE {v2} = {i}|INSERT INTO {w} VALUES ({i})|DROP TABLE {w};|
UPDATE {w} SET {v} = {i}|
git {c} {w}|git clone {w}|git push origin main|pip install {w}|npm install {w}|apt-get update|
cd ~/{w}|ls -la|ls {w}|rm -rf {w}|mkdir {w}|cat {w}.txt|grep {w} *.txt|chmod +x {w}.sh|
./{w} --help|
docker run {w}|ssh {w}@{w2}|curl http://{w}.com|ping {w}.org|make {w}|python {w}.py|node {w}.js|
https://www.{w}.com|www.{w}.org/{w2}|{w}@{w2}.com|/{c}|/{w}|--help|--{w}|$ {w}|#{w}|@{w}|
{{"{w}": {i}}}|[{i}, {i2}, "{w}"]|<{w}/>|fn main() {{ println!("{w}"); }}|package main|
public static void main(String[] args)|System.out.println("{w}");|using namespace std;|echo ${W}|
x = lambda {v}: {v} ** {i}|try: {w}() except: pass|NameError: name '{w}' is not defined|
Traceback (most recent call last):|error: {w} expected before {w2}|Segmentation fault|
Exception in thread "{w}"|TypeError: {w} is not a function|0x{i}f{i2}|{i}.{i2}.0.1|%{w}%|
```{w}```"""


SENTENCES, CODE = parts(SENTENCES), parts(CODE)
TONGUES = {tongue: texts.split() for tongue, texts in TONGUES.items()}


def sentence(rng):
    fill = {"c": rng.choice(topics.COUNTRIES), "t": topics.thing(rng), "n": topics.name(rng)}
    return rng.choice(SENTENCES).format(**fill)


def thrown_together(rng):
    tongue = rng.choice(sorted(TONGUES))
    said = rng.choices(TONGUES[tongue], k=rng.randint(2, 8))
    if rng.random() < 0.2:
        said.insert(rng.randrange(len(said)), rng.choice(topics.COUNTRIES + topics.OBJECTS))
    text = " ".join(said)
    text = text[0].upper() + text[1:] if rng.random() < 0.7 else text
    return text + rng.choice(["", "", "?", "?", ".", "!", " ?"])


def other_script(rng):
    first, last = rng.choice(SCRIPTS)
    spaced = first < 0x3000 or first > 0xAB00

    def word():
        return "".join(chr(rng.randint(first, last)) for _ in range(rng.randint(1, 7)))

    text = (" " if spaced else "").join(word() for _ in range(rng.randint(1, 5)))
    return text + rng.choice(["", "", "?", ".", "!", "。", "？"])


def code(rng):
    fill = {
        "w": topics.unheard(rng) if rng.random() < 0.5 else topics.thing(rng),
        "w2": topics.thing(rng),
        "v": rng.choice("a b c i j k n x y z foo bar data name value list item result".split()),
        "v2": rng.choice("a b i x y total count index key size".split()),
        "i": rng.randint(0, 100),
        "i2": rng.randint(0, 100),
        "c": rng.choice("commit push pull status log help start run list config".split()),
    }
    text = rng.choice(CODE).format(**fill, W=fill["w"].capitalize())
    if rng.random() < 0.2:
        fill["w"] = topics.thing(rng)
        text += "\n" + rng.choice(CODE).format(**fill, W=fill["w"].capitalize())
    return text


ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm", "1234567890", "poiuytrewq", "lkjhgfdsa", "mnbvcxz"]


def typed_by_a_cat(rng):
    kind = rng.random()
    if kind < 0.3:
        row = rng.choice(ROWS)
        at = rng.randrange(len(row) - 3)
        return row[at : at + rng.randint(3, 9)] + rng.choice(["", "", " " + rng.choice(ROWS)[:5]])
    if kind < 0.65:
        letters = "abcdefghijklmnopqrstuvwxyz" + rng.choice(
            ["", "", "     ", "0123456789", "ABCDEFG"]
        )
        return "".join(rng.choice(letters) for _ in range(rng.randint(1, 16))).strip() or "x"
    if kind < 0.8:
        return "".join(
            rng.choice("?!.,;:-_#*+~()[]{}<>/\\|@&%$=\"'^") for _ in range(rng.randint(1, 6))
        )
    if kind < 0.9:
        return " ".join(topics.unheard(rng) for _ in range(rng.randint(1, 4)))
    return rng.choice("abcdefghijklmnopqrstuvwxyz0123456789") * rng.randint(1, 12)


def text(rng):
    makers = [sentence, sentence, thrown_together, thrown_together, thrown_together, other_script]
    return rng.choice(makers)(rng)
