"""Few-shot classification with questions of MMLU's kind: the examples are computed once."""

import banyan as sgl
from common import choose_backend

EXAMPLES = [
    ("Which planet is the largest?\nA. Mars\nB. Jupiter\nC. Venus\nD. Earth", "B"),
    ("What is 7 times 8?\nA. 54\nB. 63\nC. 56\nD. 48", "C"),
    ("Who wrote Hamlet?\nA. Shakespeare\nB. Goethe\nC. Dante\nD. Homer", "A"),
]
QUESTIONS = [
    ("What is the chemical symbol of gold?\nA. Ag\nB. Fe\nC. Gd\nD. Au", "D"),
    ("How many sides has a hexagon?\nA. 5\nB. 6\nC. 7\nD. 8", "B"),
    ("Which gas do plants take in?\nA. Oxygen\nB. Helium\nC. Carbon dioxide\nD. Neon", "C"),
]


@sgl.function
def classify(s, question):
    s += "Multiple-choice questions with their answers.\n\n"
    for text, answer in EXAMPLES:
        s += f"{text}\nAnswer: {answer}\n\n"
    s += question + "\nAnswer: " + sgl.select("answer", ["A", "B", "C", "D"])


if __name__ == "__main__":
    choose_backend()
    states = classify.run_batch([{"question": text} for text, _ in QUESTIONS], progress_bar=True)
    right = 0
    for state, (text, answer) in zip(states, QUESTIONS):
        print(f"{text.splitlines()[0]} {state['answer']} (right: {answer})")
        right += state["answer"] == answer
    print(f"{right} of {len(QUESTIONS)} right; {states[-1].usage()}")
