"""Skeleton of thought: an outline first, then its points at the same time."""

import banyan as sgl
from common import choose_backend


@sgl.function
def answer(s, question, points=3):
    s += sgl.system("You are a helpful assistant.")
    s += sgl.user(f"{question} Give an outline of {points} points, each of three to five words.")
    s += sgl.assistant(sgl.gen("outline", max_tokens=80, temperature=0,
                               regex="".join(rf"{i + 1}\. [A-Za-z ,'-]{{10,60}}\n"
                                             for i in range(points))))
    forks = s.fork(points)
    for i, fork in enumerate(forks):
        fork += sgl.user(f"Write one sentence about point {i + 1}, and nothing else.")
        fork += sgl.assistant(sgl.gen("sentence", max_tokens=64, temperature=0, stop="\n"))
    forks.join()
    return "\n".join(s["sentence"])


if __name__ == "__main__":
    choose_backend()
    state = answer.run("How can I sleep better?")
    print(state["outline"])
    print(state.ret_value)
    print(state.usage())
