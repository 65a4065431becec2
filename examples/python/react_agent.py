"""A ReAct agent with a real tool: it thinks, calls a calculator, reads the result, answers."""

import ast
import operator

import banyan as sgl
from common import choose_backend

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
             ast.Div: operator.truediv}
PREFIX = """Answer with the tool Calculate.

Question: How much is 12 * 12 + 1?
Thought: I have to calculate 12 * 12 + 1.
Action: Calculate
Input: 12 * 12 + 1
Observation: 145
Thought: I know the answer.
Action: Finish
Input: 145

"""


def calculate(text):
    """The value of + - * / over numbers."""
    def value(node):
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return node.value
        raise ValueError(text)

    try:
        return str(value(ast.parse(text.strip(), mode="eval").body))
    except (ValueError, SyntaxError, ZeroDivisionError) as error:
        return f"error: {error}"


@sgl.function
def agent(s, question, turns=3):
    s += PREFIX + f"Question: {question}\n"
    for i in range(turns):
        s += "Thought:" + sgl.gen(f"thought_{i}", max_tokens=24, stop="\n", temperature=0) + "\n"
        s += "Action: " + sgl.select(f"action_{i}", ["Calculate", "Finish"]) + "\n"
        if s[f"action_{i}"] == "Finish":
            break
        s += "Input: " + sgl.gen(f"input_{i}", max_tokens=24, temperature=0,
                                 regex=r"[0-9.]+( [-+*/] [0-9.]+){1,3}\n")
        s += f"Observation: {calculate(s[f'input_{i}'])}\n"
    s += "Input: " + sgl.gen("answer", max_tokens=16, regex=r"-?[0-9.]+", temperature=0)


if __name__ == "__main__":
    choose_backend()
    state = agent.run("How much is 17 * 23 - 5?")
    print(state.text()[len(PREFIX):])
    print(state.usage())
