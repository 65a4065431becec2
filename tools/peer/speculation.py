"""python speculation.py MODEL.gguf --tokenizer DIR [--text FILE ...] [--kinds NGRAM_SIMPLE ...]

In how many steps llama.cpp writes the answers of `banyan bench speculation` with its drafts from
text, by the wheel of xllamacpp (PyPI) and Jinja2. Prints a JSON object for each kind and text.

A grammar that allows only the recorded tokens makes the model write the answer, which drafters do
not see. The grammar takes longer at each token than a model of 0.6 B parameters does, so speeds say
nothing.
"""

import argparse
import json
import subprocess
from pathlib import Path

import jinja2
import xllamacpp

PROJECT = Path(__file__).resolve().parents[2]
KINDS = ["NGRAM_SIMPLE", "NGRAM_MAP_K", "NGRAM_MOD", "NGRAM_CACHE"]


def tokens_of(o, text):
    command = [o.banyan, "tokenize", o.tokenizer, "--file", "-", "--no-special-tokens"]
    out = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
    return [int(token) for token in out.strip().split(",")]


def conversation(o, path):
    """A text's name, the tokens of its prompt and of its answer, and the answer."""
    text = json.loads(path.read_text())
    config = json.loads((Path(o.tokenizer) / "tokenizer_config.json").read_text())
    prompt = (
        jinja2.Environment()
        .from_string(config["chat_template"])
        .render(messages=text["messages"][:-1], add_generation_prompt=True, enable_thinking=False)
    )
    answer = text["messages"][-1]["content"]
    return text["name"], tokens_of(o, prompt), tokens_of(o, answer), answer


def server_of(o, kind):
    params = xllamacpp.CommonParams()
    params.model.path = o.model
    params.n_parallel = 1
    params.n_ctx = 4096
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = o.threads
    params.verbosity = 0
    types = xllamacpp.common_speculative_type
    params.speculative.types = [getattr(types, f"COMMON_SPECULATIVE_TYPE_{kind}")]
    return xllamacpp.Server(params)


def complete(server, text):
    """The timings of llama.cpp's answer to a conversation."""
    name, prompt, tokens, answer = text
    request = {
        "prompt": prompt,
        "max_tokens": len(tokens),
        "ignore_eos": True,
        "cache_prompt": False,
        "temperature": 0,
        "grammar": "root ::= " + " ".join(f"<[{token}]>" for token in tokens),
    }
    done = server.handle_completions(request)
    if done["choices"][0]["text"] != answer:
        raise SystemExit(f"{name}: the grammar did not lead to the recorded answer")
    return done["timings"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--tokenizer", required=True, help="folder with tokenizer files and a template")
    p.add_argument("--text", type=Path, action="append")
    p.add_argument("--kinds", nargs="+", default=KINDS)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--banyan", default=PROJECT / "build/release/banyan")
    o = p.parse_args()
    texts = o.text or sorted((PROJECT / "bench/texts").glob("*.json"))
    texts = [conversation(o, path) for path in texts]
    for kind in o.kinds:
        server = server_of(o, kind)
        for text in texts:
            timings = complete(server, text)
            tokens, accepted = len(text[2]), timings.get("draft_n_accepted", 0)
            result = {
                "kind": kind,
                "text": text[0],
                "tokens": tokens,
                "steps": tokens - accepted,
                "drafted": timings.get("draft_n", 0),
                "accepted": accepted,
            }
            print(json.dumps(result), flush=True)
        del server


if __name__ == "__main__":
    main()
