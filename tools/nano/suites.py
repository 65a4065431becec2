"""python suites.py [--out DIR] [--seed N] [--cases N] [--prompts FILE]: writes held-out instances
as the suites that `banyan eval nano` asks. None of them can be in a training run: see
Instance.is_held_out."""

import argparse
import json
import random
from pathlib import Path

import corpus
from corpus import recall

from text import HERE

NEEDLE_CHARACTERS = (2000, 8000, 15500)  # about 0.5k, 2k and 4k tokens


def case(suite, made):
    """The conversation up to the answer, and the answer as the suite compares it."""
    last = next(i for i, m in enumerate(made.messages) if m["role"] == "assistant")
    said = made.messages[last]
    out = {"suite": suite, "messages": made.messages[:last]}
    if made.tools:
        out["tools"] = made.tools
    if made.think:
        out["think"] = True
    if suite == "tools":
        calls = said.get("tool_calls")
        out["answer"] = calls[0]["function"] if calls else None
    elif suite == "extraction":
        out["answer"], out["schema"] = json.loads(said["content"]), made.schema
    elif suite == "arithmetic":
        out["answer"] = int(said["content"].rsplit("#### ", 1)[1])
    else:
        out["answer"] = said["content"]
    return out | {"about": made.about}


def needle(rng, index):
    characters = NEEDLE_CHARACTERS[index % len(NEEDLE_CHARACTERS)]
    made = corpus.instance([lambda r: recall.needle(r, characters)], rng, held_out=True)
    made.about["depth_tenth"] = int(made.about["depth"] * 10)
    return made


def everyday(path):
    """suite -> its cases, of what people might type (everyday.txt)."""
    suites, cases = {}, []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            suite = line.strip("[]")
            cases = suites.setdefault(suite, [])
        elif "|" in line and not line.startswith("#"):
            answer, prompt = line.split("|", 1)
            if suite not in ("everyday-stories", "everyday-sums"):
                answer = answer.split(";")
            messages = [{"role": "user", "content": prompt}]
            cases.append({"suite": suite, "messages": messages, "answer": answer, "about": {}})
    return suites


def write(path, cases):
    path.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument(
        "--out", type=Path, default=HERE.parent.parent / "models" / "banyan-nano" / "eval"
    )
    p.add_argument("--seed", default="held out")
    p.add_argument("--cases", type=int, default=100)
    p.add_argument("--prompts", type=Path, help="only the suites of this file, as everyday.txt is")
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    for suite, cases in everyday(o.prompts or HERE / "everyday.txt").items():
        write(o.out / f"{suite}.jsonl", cases)
    if o.prompts:
        return
    for suite, makers in corpus.SUITES.items():
        rng = random.Random(f"{o.seed}/{suite}")
        cases = min(o.cases, {"needle": 30, "stories": 60}.get(suite, o.cases))
        instances = (
            needle(rng, i) if suite == "needle" else corpus.instance(makers, rng, True)
            for i in range(cases)
        )
        write(o.out / f"{suite}.jsonl", [case(suite, made) for made in instances])


if __name__ == "__main__":
    main()
