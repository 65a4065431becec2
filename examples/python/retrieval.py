"""Retrieval: documents that match a question become its prompt, the common ones first."""

import banyan as sgl
from common import choose_backend

DOCUMENTS = {
    "banyan": "A banyan is a fig tree whose branches grow roots of their own.",
    "oak": "An oak lives for several hundred years and bears acorns.",
    "bamboo": "Bamboo is a grass; some kinds grow a metre in a day.",
    "cactus": "A cactus keeps water in its stem, and its leaves are thorns.",
}
QUESTIONS = ["How does a banyan grow?", "What does an oak bear?",
             "Is bamboo a tree, and is a cactus one?"]


def find(question):
    """The documents whose names are in the question; in one order, so that prefixes repeat."""
    return [text for name, text in DOCUMENTS.items() if name in question.lower()]


@sgl.function
def answer(s, question):
    s += "Answer the question by the documents.\n"
    for document in find(question):
        s += f"Document: {document}\n"
    s += f"Question: {question}\nAnswer:"
    s += sgl.gen("answer", max_tokens=32, temperature=0, stop="\n")


if __name__ == "__main__":
    choose_backend()
    for question, state in zip(QUESTIONS, answer.run_batch([[q] for q in QUESTIONS])):
        print(question, state["answer"])
