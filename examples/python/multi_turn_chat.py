"""A chat of several turns: each goes on where the last one ended."""

import banyan as sgl
from common import choose_backend


@sgl.function
def chat(s, questions):
    s += sgl.system("You are a helpful assistant. Answer in one sentence.")
    for i, question in enumerate(questions):
        s += sgl.user(question)
        s += sgl.assistant(sgl.gen(f"answer_{i}", max_tokens=64, temperature=0))


if __name__ == "__main__":
    choose_backend()
    state = chat.run(["What is the capital of France?", "And of Japan?",
                      "Which of the two is larger?"], stream=True)
    for i in range(3):
        for piece in state.text_iter(f"answer_{i}"):
            print(piece, end="", flush=True)
        print()
    print(state.usage())
