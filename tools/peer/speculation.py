"""python speculation.py MODEL.gguf --tokenizer DIR [--text FILE ...] [--kinds NGRAM_SIMPLE ...]: what
llama.cpp gains by drafts from text, on the conversations of `banyan bench speculation`, with the
wheel of xllamacpp (PyPI) and Jinja2.

A grammar that allows only the recorded tokens makes the model write the answer, which its drafters
do not see. Checking it takes time at each token: it is measured by the same number of tokens without
a grammar and without drafts, and left out of every speed. Prints a JSON object for each text and
kind: tokens/s without and with drafts, steps, drafted and accepted tokens.
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
    """The name of a text, and the tokens of its prompt and of its answer."""
    text = json.loads(path.read_text())
    config = json.loads((Path(o.tokenizer) / "tokenizer_config.json").read_text())
    prompt = (
        jinja2.Environment()
        .from_string(config["chat_template"])
        .render(messages=text["messages"][:-1], add_generation_prompt=True, enable_thinking=False)
    )
    return text["name"], tokens_of(o, prompt), tokens_of(o, text["messages"][-1]["content"])


def server_of(o, kind, settings):
    params = xllamacpp.CommonParams()
    params.model.path = o.model
    params.n_parallel = 1
    params.n_ctx = 4096
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = o.threads
    params.verbosity = 0
    types = xllamacpp.common_speculative_type
    params.speculative.types = [getattr(types, f"COMMON_SPECULATIVE_TYPE_{kind}")]
    for setting in settings:
        name, value = setting.split("=")
        *path, last = name.split(".")
        to = params.speculative
        for part in path:
            to = getattr(to, part)
        setattr(to, last, type(getattr(to, last))(value))
    return xllamacpp.Server(params)


def complete(server, prompt, answer, grammar):
    request = {
        "prompt": prompt,
        "n_predict": len(answer),
        "ignore_eos": True,
        "cache_prompt": False,
        "temperature": 0,
        "return_tokens": True,
    }
    if grammar:
        request["grammar"] = "root ::= " + " ".join(f"<[{token}]>" for token in answer)
    done = server.handle_completions(request)
    if grammar and done["tokens"] != answer:
        raise SystemExit("the grammar did not lead to the recorded tokens")
    return done["timings"]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("model")
    p.add_argument("--tokenizer", required=True, help="folder with tokenizer files and a template")
    p.add_argument("--text", type=Path, action="append")
    p.add_argument("--kinds", nargs="+", default=KINDS)
    p.add_argument("--set", nargs="+", default=[], help="draft.n_max=8, ngram_simple.size_n=4, ...")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--banyan", default=PROJECT / "build/release/banyan")
    o = p.parse_args()
    texts = o.text or sorted((PROJECT / "bench/texts").glob("*.json"))
    texts = [conversation(o, path) for path in texts]
    plain = {}
    server = server_of(o, "NONE", [])
    for name, prompt, answer in texts:
        free = complete(server, prompt, answer, grammar=False)["predicted_ms"]
        plain[name] = free, complete(server, prompt, answer, grammar=True)["predicted_ms"] - free
    del server
    for kind in o.kinds:
        server = server_of(o, kind, o.set)
        for name, prompt, answer in texts:
            free_ms, grammar_ms = plain[name]
            timings = complete(server, prompt, answer, grammar=True)
            drafts_ms = timings["predicted_ms"] - grammar_ms
            accepted = timings.get("draft_n_accepted", 0)
            result = {
                "kind": kind,
                "text": name,
                "tokens": len(answer),
                "steps": len(answer) - accepted,
                "drafted": timings.get("draft_n", 0),
                "accepted": accepted,
                "grammar_ms_per_token": round(grammar_ms / len(answer), 2),
                "plain_per_s": round(len(answer) * 1e3 / free_ms, 1),
                "drafts_per_s": round(len(answer) * 1e3 / drafts_ms, 1),
                "ratio": round(free_ms / drafts_ms, 2),
            }
            print(json.dumps(result), flush=True)
        del server


if __name__ == "__main__":
    main()
