"""A judge that branches, solves and merges: one verdict for each dimension, then a grade."""

import json

import banyan as sgl
from common import choose_backend

DIMENSIONS = ["clarity", "depth", "style"]
REPORT = {"type": "object",
          "properties": {"summary": {"type": "string", "maxLength": 120},
                         "grade": {"enum": ["A", "B", "C", "D"]}},
          "required": ["summary", "grade"], "additionalProperties": False}


@sgl.function
def judge(s, essay):
    s += sgl.system("You are a strict judge of essays.")
    s += sgl.user("Essay: " + essay)
    forks = s.fork(len(DIMENSIONS))
    forks += lambda i: sgl.user(f"Judge its {DIMENSIONS[i]} in one sentence.")
    forks += sgl.assistant(sgl.gen("verdict", max_tokens=48, temperature=0, stop="\n"))
    forks.join()
    s += sgl.user("Verdicts:\n" + "\n".join(s["verdict"]) + "\nWhich grade?")
    s += sgl.assistant(sgl.select("grade", ["A", "B", "C", "D"]))
    s += sgl.user("Write the report as JSON.")
    s += sgl.assistant(sgl.gen("report", max_tokens=128, temperature=0, json_schema=REPORT))


if __name__ == "__main__":
    choose_backend()
    state = judge.run("The sea is wide and blue. It holds more fish than anybody can count.")
    print(state["grade"], json.loads(state["report"]))
    print(state.usage())
