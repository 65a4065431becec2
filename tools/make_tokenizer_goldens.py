#!/usr/bin/env python3
"""Writes tests/golden/tokenizer/: what the `tokenizers` and `tiktoken` packages make of many texts.

  snippets.json       what the texts are put together from (also by tests/golden/tokenizer_test.cpp)
  <tiny>/             three tokenizers trained here, small enough to commit
  components.json     single normalizers and pre-tokenizers: texts and what becomes of them
  vocabularies.json   per tokenizer: the ids of some texts, and a hash over the ids of many

usage: make_tokenizer_goldens.py SHARED    (the folder that holds tokenizers/; pip: tokenizers,
                                            tiktoken)
"""

import base64
import json
import pathlib
import sys

import tiktoken
import tokenizers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

OUT = pathlib.Path(__file__).parent.parent / "tests" / "golden" / "tokenizer"
SHARED_NAMES = ["llama2", "llama3_1", "qwen3", "deepseek_v3", "gptoss"]
LISTED = 60  # texts whose ids are written out
HASHED = 20000  # texts that go into the hash
MASK = (1 << 64) - 1

SNIPPETS = [
    # English, and how it is written.
    "the",
    " the",
    " quick",
    " brown fox",
    " jumps",
    "Hello",
    " Hello",
    " world",
    "!",
    "?",
    ".",
    ",",
    ", ",
    ". ",
    "...",
    "I'm",
    "you're",
    "We'll",
    "THEY'D",
    "it's",
    "IT'S",
    "don't",
    "O'Neill",
    " 'tis",
    "'S",
    "'\u017f",
    "'LL",
    "'Re",
    "rock'n'roll",
    "\u2019s",
    "state-of-the-art",
    "(a)",
    "[b]",
    "{c}",
    '"quoted"',
    "camelCaseWord",
    "HTTPServer",
    "iPhone",
    "McDONALD",
    "ALLCAPS",
    " don't stop",
    "aaaaaaaaaaaaaaaa",
    "abcdefghijklmnopqrstuvwxyz",
    "x",
    "X",
    "_",
    "__init__",
    # Numbers.
    "1",
    "12",
    "123",
    "1234",
    "12345678901234567890",
    "3.14159",
    "-1",
    "1e-9",
    "0x1F",
    " 42",
    "1,000,000",
    "\u00bd",
    "\u00b2\u00b3",
    "\u2167",
    "\u2460\u2461",
    "\u0663\u0664",
    "\u0967\u0968",
    "\uff11\uff12",
    "\U0001d7d8",
    # White space.
    " ",
    "  ",
    "   ",
    "       ",
    "\n",
    "\n\n",
    "\n\n\n",
    "\r\n",
    "\r",
    "\t",
    "\t\t",
    " \n ",
    "  \n\t ",
    "\u00a0",
    "\u3000",
    "\u2003",
    "\u2028",
    "\u0085",
    "\u180e",
    "\u200b",
    "\u1680",
    "\x0b\x0c",
    " \u3000\n",
    "\ufeff",
    # Control characters and oddities.
    "\x00",
    "\x01\x02",
    "\x1b[0m",
    "\x7f",
    "\u0080",
    "\ufffd",
    "\ufffe",
    "\U0010ffff",
    "\ue000",
    "\u00ad",
    "\u2060",
    "\u200d",
    "\u200c",
    # Code.
    "def f(x):\n    return x\n",
    "for (int i = 0; i < n; ++i) {",
    "std::vector<int>",
    "</div>",
    "#include <stdio.h>\n",
    "a+=b;",
    "x==y",
    "!=",
    "->",
    "&&",
    "//",
    "/*",
    "*/",
    "\\n",
    "$PATH",
    "@decorator",
    "SELECT * FROM t;",
    "http://example.com/a?b=c&d=e",
    "user@example.org",
    "C:\\dir",
    '{"k": [1, 2]}',
    "```python\n",
    "<|im_start|>",
    "<|endoftext|>",
    "<s>",
    "</s>",
    "<unk>",
    "[INST]",
    "<tool_call>",
    "<0x41>",
    "\u2581",
    "\u0120",
    "<|eot_id|>",
    "<\uff5cUser\uff5c>",
    # Latin with marks, composed and not.
    "caf\u00e9",
    "cafe\u0301",
    "\u00c5ngstr\u00f6m",
    "A\u030angstro\u0308m",
    "na\u00efve",
    "\u01c5",
    "\u0130stanbul",
    "\u0131",
    "stra\u00dfe",
    "\u1e9e",
    "\ufb01n",
    "\ufb03",
    "\u212b",
    "\u2126",
    "a\u0323\u0307",
    "a\u0307\u0323",
    "\u1e69",
    "q\u0307\u0323",
    "\u0344",
    "\u0958",
    "z\u0351\u036b\u0343\u036a\u0302\u036b",
    "\u02b0\u02e2",
    "\u1d43",
    "e\u20dd",
    # Scripts.
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440",
    "\u0419\u0438\u0306",
    "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5",
    "\u1fb3\u0345",
    "\u03a3\u03c3\u03c2",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u05e9\u05c1\u05b8",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u0644\u0627\u0654",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0915\u094d\u0937",
    "\u0ba8\u0bbf",
    "\u0bc6\u0bbe",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u0e01\u0e33",
    "\u1019\u103c\u1014\u103a",
    "\u0f42\u0fb7",
    "\u4f60\u597d\u4e16\u754c",
    "\u4e2d\u6587English",
    "\u6df7\u5408123",
    "\u3001",
    "\u3002",
    "\uff01",
    "\u300c\u5f15\u7528\u300d",
    "\u3005\u3007",
    "\u3053\u3093\u306b\u3061\u306f",
    "\u30ab\u30bf\u30ab\u30ca\u30fc",
    "\u304b\u3099",
    "\uff76\uff9e",
    "\uc548\ub155\ud558\uc138\uc694",
    "\u1112\u1161\u11ab",
    "\uac00\u11a8",
    "\uac00\u11a7",
    "\U00020000\U0002a6df",
    "\ufa0e\uf900",
    "\u2e80",
    "\u9fff",
    "\u3400",
    "\U00010330\U00010331",
    "\U0001e900\U0001e922",
    "\u13a0\uab70",
    "\u10d0\u1c90",
    # Characters that came after Unicode 14.
    "\U0002ebf0",
    "\U00031350",
    "\u1c89\u1c8a",
    "\U00010d50\U00010d70",
    "\U000113d2",
    "\U0001cc00",
    "\U0001fae8",
    "\U0001ccf0",
    "\u0897",
    # Emoji and symbols.
    "\U0001f600",
    "\U0001f44d\U0001f3fd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f1e9\U0001f1ea",
    "\u2764\ufe0f",
    "\u2728",
    "1\ufe0f\u20e3",
    "\u2122",
    "\u20ac",
    "\u00a9",
    "\u221a2\u2260\u03c0",
    "\u2192",
    "\u2588\u2591",
    "\U0001d54f",
    "\u2028x",
]


class Random:
    """splitmix64, so that C++ draws the same."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return (z ^ z >> 31) % bound


def texts(count):
    """Snippets one after the other, some repeated, and here and there any character at all."""
    random = Random(1)
    for _ in range(count):
        parts = []
        for _ in range(1 + random.below(16)):
            if random.below(16) == 0:
                code = random.below(0x110000)
                parts.append(chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd")
            else:
                parts.append(SNIPPETS[random.below(len(SNIPPETS))] * (1 + random.below(8) // 7))
        yield "".join(parts)


def hash_ids(value, ids):
    """FNV-1a over the ids, and a mark behind each list."""
    for number in [*ids, MASK]:
        value = ((value ^ number) * 0x100000001B3) & MASK
    return value


def describe(encode, decode):
    """The entry of one tokenizer; encode(text, specials) and decode(ids, skip)."""
    entry = {"ids": [], "plain": [], "decoded": []}
    value = plain_value = 0xCBF29CE484222325
    for number, text in enumerate(texts(HASHED)):
        ids, plain = encode(text, True), encode(text, False)
        value, plain_value = hash_ids(value, ids), hash_ids(plain_value, plain)
        if number < LISTED:
            entry["ids"].append(ids)
            entry["plain"].append(plain if plain != ids else None)
            decoded = decode(ids, True)
            entry["decoded"].append(decoded if decoded != text else None)
    entry["hash"], entry["plain_hash"] = f"{value:016x}", f"{plain_value:016x}"
    return entry


def describe_file(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def encode(text, specials):
        tokenizer.encode_special_tokens = not specials
        return tokenizer.encode(text, add_special_tokens=specials).ids

    return describe(encode, lambda ids, skip: tokenizer.decode(ids, skip_special_tokens=skip))


def train(model, vocab_size, **options):
    tokenizer = Tokenizer(model)
    for name, part in options.items():
        setattr(tokenizer, name, part)
    byte_level = isinstance(options["decoder"], decoders.ByteLevel)
    alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
    specials = ["<unk>", "<s>", "</s>"] + (
        [] if byte_level else [f"<0x{b:02X}>" for b in range(256)]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=specials,
        initial_alphabet=alphabet,
        limit_alphabet=256 if byte_level else 120,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(4000), trainer)
    return tokenizer


def write_tiny(name, tokenizer, config):
    """Saves a tokenizer with its byte tokens taken off the list of added tokens."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    parts = json.loads(tokenizer.to_str())
    parts["added_tokens"] = [t for t in parts["added_tokens"] if not t["content"].startswith("<0x")]
    (folder / "tokenizer.json").write_text(json.dumps(parts, ensure_ascii=False, indent=0))
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return describe_file(folder)


def tiny_byte_level():
    tokenizer = train(
        models.BPE(),
        700,
        normalizer=normalizers.NFC(),
        pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoder=decoders.ByteLevel(),
        post_processor=processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> $B", special_tokens=[("<s>", 1), ("</s>", 2)]
        ),
    )
    tokenizer.add_tokens(
        [
            tokenizers.AddedToken("<tool_call>", normalized=True, special=False),
            tokenizers.AddedToken("<|im_start|>", special=True, lstrip=True, rstrip=True),
            tokenizers.AddedToken("fox", single_word=True, special=False, normalized=False),
        ]
    )
    return write_tiny(
        "tiny_byte_level",
        tokenizer,
        {
            "bos_token": "<s>",
            "eos_token": {"content": "</s>", "special": True},
            "additional_special_tokens": ["<|im_start|>"],
            "model_max_length": 512,
            "chat_template": [
                {"name": "default", "template": "A"},
                {"name": "tool_use", "template": "B"},
            ],
        },
    )


def tiny_metaspace():
    tokenizer = train(
        models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True),
        800,
        pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
        decoder=decoders.Sequence(
            [
                decoders.Replace("\u2581", " "),
                decoders.ByteFallback(),
                decoders.Fuse(),
                decoders.Strip(" ", 1, 0),
            ]
        ),
        post_processor=processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
        ),
    )
    return write_tiny("tiny_metaspace", tokenizer, {"bos_token": "<s>", "add_bos_token": True})


def tiny_prepend():
    tokenizer = train(
        models.BPE(unk_token="<unk>", fuse_unk=False, byte_fallback=False),
        800,
        normalizer=normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        ),
        decoder=decoders.Metaspace(),
    )
    return write_tiny("tiny_prepend", tokenizer, {"unk_token": "<unk>"})


def kimi_pattern():
    """The pattern that the Python code of Kimi's tokenizer states."""
    cased = [r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"]
    upper, lower = (f"[{classes}&&[^\\p{{Han}}]]" for classes in cased)
    start, end = r"[^\r\n\p{L}\p{N}]?", "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    return "|".join(
        [
            r"[\p{Han}]+",
            f"{start}{upper}*{lower}+{end}",
            f"{start}{upper}+{lower}*{end}",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"\s*[\r\n]+",
            r"\s+(?!\S)",
            r"\s+",
        ]
    )


def tiny_tiktoken():
    """Ranks from the byte-level tokenizer above, with Kimi's pattern."""
    parts = json.loads((OUT / "tiny_byte_level" / "tokenizer.json").read_text())
    stands_alone = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in stands_alone]
    byte_of = {chr(byte): byte for byte in stands_alone}
    byte_of.update({chr(256 + i): byte for i, byte in enumerate(others)})
    vocab = sorted(parts["model"]["vocab"].items(), key=lambda item: item[1])
    ranks = {}
    for token, _ in vocab:
        if not token.startswith("<") or len(token) == 1:
            ranks[bytes(byte_of[char] for char in token)] = len(ranks)
    folder = OUT / "tiny_tiktoken"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in ranks.items()]
    (folder / "tiktoken.model").write_text("\n".join(lines) + "\n")
    base = len(ranks)
    names = {base: "[BOS]", base + 1: "[EOS]", base + 5: "<|im_start|>"}
    config = {
        "added_tokens_decoder": {str(i): {"content": n, "special": True} for i, n in names.items()},
        "bos_token": "[BOS]",
        "eos_token": "[EOS]",
        "tokenizer_class": "TikTokenTokenizer",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    specials = {names.get(i, f"<|reserved_token_{i}|>"): i for i in range(base, base + 256)}
    encoding = tiktoken.Encoding(
        "tiny", pat_str=kimi_pattern(), mergeable_ranks=ranks, special_tokens=specials
    )
    return describe(
        lambda text, specials: encoding.encode(
            text, allowed_special="all" if specials else set(), disallowed_special=()
        ),
        lambda ids, skip: encoding.decode([i for i in ids if not (skip and i >= base)]),
    )


def component(kind, config, samples):
    """What one part of tokenizer.json makes of the samples (for a decoder, lists of tokens)."""
    parts = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    }
    parts[kind] = config
    tokenizer = Tokenizer.from_str(json.dumps(parts))
    if kind == "normalizer":
        results = [tokenizer.normalizer.normalize_str(text) for text in samples]
    elif kind == "decoder":
        results = [tokenizer.decoder.decode(tokens) for tokens in samples]
    else:
        results = [
            [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]
            for text in samples
        ]
    if kind == "normalizer":
        results = [None if after == text else after for text, after in zip(samples, results)]
    return {"kind": kind, "config": config, "results": results}


def components():
    samples = [
        "",
        " ",
        "Hello, world! 123",
        "  two  spaces\n\n",
        "a1b22c333 d",
        "caf\u00e9 cafe\u0301 \u00c5",
        "\u4f60\u597d\uff0c\u4e16\u754c 12\u00bd",
        "it's IT'S x_y-z",
        "--a--b",
        "\uac00\u11a7\uac00\u11a8\ufb01",
        "\u0130\u01c5 \u2126",
        "\U0001f600 \u200d\ufe0f \u24b6",
        "a\tb\u3000c\u180ed",
        "9.99$ #5",
    ]
    plain = samples
    samples = samples + list(texts(12))
    split = {"type": "Split", "invert": False, "behavior": "Isolated"}
    found = []
    for kind in ["NFC", "NFD", "NFKC", "NFKD", "Nmt", "ByteLevel"]:
        found.append(component("normalizer", {"type": kind}, samples))
    for kind in ["StripAccents", "Lowercase"]:  # which know other Unicode versions
        found.append(component("normalizer", {"type": kind}, plain))
    found.append(
        component(
            "normalizer", {"type": "Strip", "strip_left": True, "strip_right": False}, samples
        )
    )
    found.append(
        component("normalizer", {"type": "Strip", "strip_left": True, "strip_right": True}, samples)
    )
    found.append(component("normalizer", {"type": "Prepend", "prepend": "\u2581"}, samples))
    for pattern in [{"String": " "}, {"Regex": "\\s{2,}"}, {"Regex": "[a-c]|\\d+"}]:
        config = {"type": "Replace", "pattern": pattern, "content": "\u2581x"}
        found.append(component("normalizer", config, samples))
    found.append(
        component(
            "normalizer",
            {
                "type": "Sequence",
                "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"}],
            },
            plain,
        )
    )
    for behavior in ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for pattern in [{"String": "-"}, {"Regex": "\\d|\\s"}]:
            for invert in [False, True]:
                config = {**split, "pattern": pattern, "behavior": behavior, "invert": invert}
                found.append(component("pre_tokenizer", config, samples))
        found.append(
            component("pre_tokenizer", {"type": "Punctuation", "behavior": behavior}, samples)
        )
    for pattern in [
        "\\w+|[^\\w\\s]+",
        "[^\\s\\p{L}]+",
        "\\p{Han}+",
        "(?=\\d)",
        "x*",
        "\\p{^L}+",
        "[\\d_]+$",
        "[^(\\s|[.,!?\u2026\u3002\uff0c\u3001])]+",
        "\\P{N}+",
        "[A-Z]?[a-z]++|\\S",
        "^\\S+",
    ]:
        found.append(component("pre_tokenizer", {**split, "pattern": {"Regex": pattern}}, samples))
    for prefix in [False, True]:
        for regex in [False, True]:
            found.append(
                component(
                    "pre_tokenizer",
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": prefix,
                        "trim_offsets": True,
                        "use_regex": regex,
                    },
                    samples,
                )
            )
    for scheme in ["always", "first", "never"]:
        for cut in [False, True]:
            found.append(
                component(
                    "pre_tokenizer",
                    {
                        "type": "Metaspace",
                        "replacement": "\u2581",
                        "prepend_scheme": scheme,
                        "split": cut,
                    },
                    samples,
                )
            )
    for individual in [False, True]:
        found.append(
            component("pre_tokenizer", {"type": "Digits", "individual_digits": individual}, samples)
        )
    for kind in ["Whitespace", "WhitespaceSplit", "BertPreTokenizer"]:
        found.append(component("pre_tokenizer", {"type": kind}, samples))
    found.append(
        component("pre_tokenizer", {"type": "CharDelimiterSplit", "delimiter": "a"}, samples)
    )
    found.append(
        component(
            "pre_tokenizer",
            {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Punctuation", "behavior": "Contiguous"},
                    {
                        "type": "ByteLevel",
                        "add_prefix_space": False,
                        "trim_offsets": True,
                        "use_regex": True,
                    },
                    {"type": "Digits", "individual_digits": False},
                    {**split, "pattern": {"Regex": "[0-9][0-9][0-9]"}},
                ],
            },
            samples,
        )
    )
    for length in [1, 3, 100]:
        found.append(component("pre_tokenizer", {"type": "FixedLength", "length": length}, samples))
    byte_tokens = [f"<0x{byte:02X}>" for byte in "h\u00e9\u4f60".encode()]
    tokens = [
        [],
        ["a"],
        ["hel", "lo</w>", "wor", "ld</w>", "!</w>"],
        ["</w>", "a</w>b</w>", "</w></w>"],
        ["un", "##want", "##ed", "##", "##", ".", "x", "'s", "do", "n't"],
        ["a", " ' ", "we do not know ,"],
        ["##a", " .", "b##c", "\u2581d\u2581", "\u2581"],
        ["a", *byte_tokens, "b", *byte_tokens[:2], "c", "<0xFF>", *byte_tokens],
    ]
    bpe = {"type": "BPEDecoder", "suffix": "</w>"}
    word_piece = {"type": "WordPiece", "prefix": "##"}
    for config in [
        bpe,
        {**word_piece, "cleanup": True},
        {**word_piece, "cleanup": False},
        {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, bpe]},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
    ]:
        found.append(component("decoder", config, tokens))
    return {"samples": samples, "tokens": tokens, "components": found}


def main():
    shared = pathlib.Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    write = lambda name, value: (OUT / name).write_text(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"
    )
    write("snippets.json", SNIPPETS)
    write("components.json", components())
    entries = {
        "tiny_byte_level": tiny_byte_level(),
        "tiny_metaspace": tiny_metaspace(),
        "tiny_prepend": tiny_prepend(),
        "tiny_tiktoken": tiny_tiktoken(),
    }
    for name in SHARED_NAMES:
        entries[name] = describe_file(shared / "tokenizers" / name)
    write("vocabularies.json", {"hashed": HASHED, "vocabularies": entries})


if __name__ == "__main__":
    main()
