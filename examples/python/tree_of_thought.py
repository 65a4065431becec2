"""Tree of thought, in the shape of the game of 24: propose, judge, keep the best."""

import banyan as sgl
from common import choose_backend

BRANCHES, KEPT, DEPTH = 3, 2, 2
VERDICTS = ["sure", "likely", "impossible"]


def propose(s, depth):
    forks = s.fork(BRANCHES)
    for fork in forks:
        fork += sgl.user("Propose the next step: one line of arithmetic.")
        fork += sgl.assistant(sgl.gen(f"step_{depth}", max_tokens=32, temperature=0.8, stop="\n"))
    return list(forks)


def judge(states, depth):
    for state in states:
        with state.copy() as judged:
            judged += sgl.user("Can 24 still be reached from here?")
            judged += sgl.assistant(sgl.select(f"verdict_{depth}", VERDICTS))
    # A branch's variables come back as lists.
    return sorted(states, key=lambda s: VERDICTS.index(s[f"verdict_{depth}"][0]))[:KEPT]


@sgl.function
def solve(s, numbers):
    s += sgl.system("You play the game of 24: reach 24 with four numbers and + - * /.")
    s += sgl.user(f"The numbers are {numbers}.")
    s += sgl.assistant("Let me think step by step.")
    states = [s]
    for depth in range(DEPTH):
        states = judge([child for state in states for child in propose(state, depth)], depth)
    for state in states:
        state += sgl.user("Give the final expression.")
        state += sgl.assistant(sgl.gen("answer", max_tokens=32, temperature=0))
    return [state["answer"] for state in states]


if __name__ == "__main__":
    choose_backend()
    state = solve.run("4 7 8 8")
    for answer in state.ret_value:
        print(answer)
    print(state.usage())
