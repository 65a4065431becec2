"""Text to tokens: the chat template, the tokenizer's training, and documents with their weights."""

import json
import random
from pathlib import Path

import corpus
import jinja2
from corpus import stories
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)

HERE = Path(__file__).parent
START, END, ROLE_END = "<|startoftext|>", "<|endoftext|>", "<|role_end|>"
SPECIAL = [START, END, ROLE_END, "<role>", "</role>"]
MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]  # part of the text that people see
# Qwen's rule: words with their space, single digits, runs of marks.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
BRIEF = 0.96  # of the answers that teach with their first words: how many end there
PROMPT_WEIGHT = 0.1  # of a token that the model only reads, beside 1 for one that it says


def environment():
    def stop(message):
        raise ValueError(message)

    made = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    made.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    made.globals["raise_exception"] = stop
    return made


TEMPLATE = environment().from_string((HERE / "chat_template.jinja").read_text())


def render(instance):
    return TEMPLATE.render(messages=instance.messages, tools=instance.tools)


def train_tokenizer(vocabulary, seed, documents=60_000):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    added = [AddedToken(t, special=True, normalized=False) for t in SPECIAL]
    added += [AddedToken(t, special=False, normalized=False) for t in MARKS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=added,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(
        (render(corpus.document(seed, i)) for i in range(documents)), trainer
    )
    data = json.loads(tokenizer.to_str())
    for entry in data["added_tokens"]:  # the trainer marks all of them as special
        entry["special"] = entry["content"] in SPECIAL
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{START} $A", special_tokens=[(START, tokenizer.token_to_id(START))]
    )
    return tokenizer


class Encoder:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.close, self.stop = (tokenizer.token_to_id(t) for t in ("</role>", ROLE_END))
        self.speaker = self.ids("ASSISTANT")

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def weigh(self, ids):
        """1 for what the assistant says, its end included, PROMPT_WEIGHT for the rest."""
        weights, speaking, n = [], False, len(self.speaker)
        for i, token in enumerate(ids):
            weights.append(1.0 if speaking else PROMPT_WEIGHT)
            if token == self.close:
                speaking = ids[i - n : i] == self.speaker
            elif token == self.stop:
                speaking = False
        return weights

    def document(self, seed, index, makers):
        rng = random.Random(f"plain/{seed}/{index}")
        if rng.random() < 0.01:
            ids = self.ids(START + stories.plain_text(rng) + END)
            return ids, [1.0] * len(ids)
        made = corpus.document(seed, index, makers)
        ids = self.ids(render(made))
        weights = self.weigh(ids)
        if made.opening and rng.random() < BRIEF:
            end = weights.index(1.0) + made.opening
            ids, weights = ids[:end], weights[:end]
        return ids, weights
