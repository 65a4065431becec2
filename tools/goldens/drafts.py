"""What goldens of drafters (MTP layers, EAGLE-3 heads) share: a prompt, and two steps after it."""

import argparse
import pathlib

import torch
from safetensors.torch import save_file

from goldens import grown
from goldens.case import Case
from goldens.ground import load_tensors

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"
PROMPT = [5, 9, 77, 5, 30, 0, 42, 42, 61, 13, 88, 2, 7, 7, 50, 19, 33, 64, 91, 3, 12]


def base_tensors(name):
    """Of the golden checkpoint that is drafted for."""
    recipe = ROOT / "models" / name / "weights.txt"
    if recipe.exists():
        return grown.tensors_of(recipe.read_text())
    return load_tensors(ROOT / "models" / name)


def recipe_of(name, shapes, seed, norm_center=1):
    case = Case(
        name=name, notes="", config={}, prompt_tokens=0, seed=seed, norm_center=norm_center
    )
    lines = [str(case.seed)]
    for tensor, shape in sorted(shapes.items()):
        center, deviation = grown.spread(case, tensor, shape)
        step = grown.eight_bits(deviation * 3**0.5 / 32768)
        lines.append(f"F32 {'x'.join(map(str, shape))} {center} {step!r} {tensor}")
    return "\n".join(lines) + "\n"


def two_steps(predict, logprobs, hidden):
    """Log-probabilities of the token after the prompt, and of the one after the most likely.

    `hidden` are the model's states for the prompt's tokens but the last; predict(ids, states)
    gives the drafter's states, and logprobs(states) what the last of them predicts.
    """
    ids = PROMPT[1:]
    states = predict(ids, hidden)
    first = logprobs(states)
    second = logprobs(predict(ids + [int(first.argmax())], torch.cat([hidden, states[-1:]])))
    return {"first": first.float(), "second": second.float()}


def save(folder, name, recipe, reference):
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text(recipe)
    reference = {"prompt_ids": torch.tensor(PROMPT)} | reference
    save_file(reference, folder / f"{name}.reference.safetensors")


def make_each(description, names, make):
    """Makes all, or the one that the command line names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--only", choices=names)
    only = parser.parse_args().only
    for name in names:
        if only in (None, name):
            make(name)
