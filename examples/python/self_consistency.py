"""Self-consistency: several chains of thought, and a vote about their answers."""

import collections

import banyan as sgl
from common import choose_backend

PROMPT = """Question: Tom has 3 boxes of 4 pens and gives 2 pens away. How many has he left?
Reasoning: 3 boxes of 4 pens are 12 pens. 12 - 2 = 10.
Answer: 10

Question: {question}
Reasoning:"""


@sgl.function
def solve(s, question, votes=5):
    s += PROMPT.format(question=question)
    forks = s.fork(votes)
    for fork in forks:
        fork += sgl.gen("reasoning", max_tokens=64, temperature=0.8, stop="\n")
        fork += "\nAnswer: " + sgl.gen("answer", dtype=int, max_tokens=8, temperature=0)
    forks.join()
    return collections.Counter(s["answer"])


if __name__ == "__main__":
    choose_backend()
    state = solve.run("A train has 6 cars of 20 seats; 15 seats are taken. How many are free?")
    for answer, votes in state.ret_value.most_common():
        print(f"{answer}: {votes} votes")
    print(state.usage())
