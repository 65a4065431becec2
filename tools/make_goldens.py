#!/usr/bin/env python3
"""Makes the golden models of tests/golden/models with transformers, or checks them.

    python tools/make_goldens.py [--only NAME]     write the checkpoints and their references
    python tools/make_goldens.py --check           compare what is committed with what would be made

What is written, and how to read it: tools/README.md. The versions that made the committed files
are pinned in tools/requirements.txt.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import logging

from goldens import ground, hybrid, reference
from goldens.cases import CASES
from goldens.checkpoint import TORCH_DTYPES, prompt_of, write_checkpoint, write_json
from goldens.grown_cases import GROWN_CASES
from goldens.sparse_cases import SPARSE_CASES

MODELS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "models"

# A greedy token that hangs on less than this is decided by rounding: choose another seed.
MARGIN_MIN = 0.005
# And an expert that is chosen by less than this.
ROUTER_MARGIN_MIN = 2e-5
# Another machine's matrix products may add in another order.
CHECK_TOLERANCE = 1e-5


def relative_error(actual, expected):
    """The largest absolute difference, over the largest absolute value expected."""
    return float((actual.double() - expected.double()).abs().max() / expected.double().abs().max())


def errors(actual, expected):
    """The relative error of each entry of the stream, of the final norm and of the logits."""
    return {
        "hidden": [relative_error(a, e) for a, e in zip(actual["hidden"], expected["hidden"])],
        "final": relative_error(actual["final"], expected["final"]),
        "logits": relative_error(actual["logits"], expected["logits"]),
    }


def rounded(value):
    """Two significant digits, enough for an error and stable between machines."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.1e}")


def exact_run(case, checkpoint, ids):
    """What float64 makes of the case; no router may choose by a rounding error."""
    if case.grown or case in SPARSE_CASES:
        return reference.run(reference.load_model(checkpoint, torch.float64), ids)
    if not hybrid.knows(case.config):
        return ground.run(checkpoint, ids)
    exact = hybrid.run(checkpoint, ids)
    if exact["margin"] < ROUTER_MARGIN_MIN:
        margin = exact["margin"]
        raise RuntimeError(f"{case.name}: margin {margin} of an expert; choose another seed")
    return exact


def make_case(case, folder):
    """Writes one checkpoint and its reference into `folder`; returns its line of the manifest."""
    checkpoint = folder / case.name
    shutil.rmtree(checkpoint, ignore_errors=True)
    write_checkpoint(case, checkpoint)
    ids = prompt_of(case)
    expected = reference.reference_of(checkpoint, ids, case.by_formula)
    margin = min(float(expected[f"{start}_margins"].min()) for start in ("greedy", "single"))
    if margin < MARGIN_MIN:
        raise RuntimeError(f"{case.name}: margin {margin} of a greedy token; choose another seed")
    entry = {
        "name": case.name,
        "architecture": case.config["architectures"][0],
        "dtype": case.dtype,
        "layers": case.config.get("num_layers") or case.config["num_hidden_layers"],
        "prompt_tokens": len(ids),
        "notes": case.notes,
        "margin_min": float(f"{margin:.2g}"),
        "error_f32": rounded(errors(expected, exact_run(case, checkpoint, ids))),
    }
    if case.dtype != "float32":
        native = reference.run(reference.load_model(checkpoint, TORCH_DTYPES[case.dtype]), ids)
        entry["error_native"] = rounded(errors(native, expected))
        expected["logits_native"] = native["logits"].contiguous()
    if (checkpoint / "weights.txt").exists():
        (checkpoint / "model.safetensors").unlink()
    if case.grown:
        for name in ("hidden", "final", "logits"):
            expected[name] = expected[name][..., -case.reference_rows :, :].contiguous()
    save_file(expected, folder / f"{case.name}.reference.safetensors")
    return entry


def make(folder, only=None):
    """Writes the cases and the manifest; with `only`, that case, its old line replaced."""
    manifest = folder / "manifest.json"
    entries = {}
    if only:
        entries = {e["name"]: e for e in json.loads(manifest.read_text())["cases"]}
    for case in CASES:
        if only in (None, case.name):
            entries[case.name] = make_case(case, folder)
            print(case.name, entries[case.name]["error_f32"]["logits"], file=sys.stderr)
    write_json(manifest, {"cases": [entries[c.name] for c in CASES if c.name in entries]})


def difference(made, committed):
    """Why two files differ by more than another machine's rounding explains, or None."""
    if made.read_bytes() == committed.read_bytes():
        return None
    if not made.name.endswith(".reference.safetensors"):
        return "other bytes"
    new, old = load_file(made), load_file(committed)
    if new.keys() != old.keys():
        return f"other tensors: {sorted(new.keys() ^ old.keys())}"
    for name in new:
        if new[name].shape != old[name].shape or new[name].dtype != old[name].dtype:
            return f"{name} has another shape or dtype"
        tolerance = CHECK_TOLERANCE if new[name].dtype == torch.float32 else 0
        if name == "logits_native":
            tolerance = 0.02
        if relative_error(new[name], old[name]) > tolerance:
            return f"{name} differs by {relative_error(new[name], old[name]):.1e}"
    return None


def check():
    """Makes everything in a temporary folder and compares; returns the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder)
        made = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
        committed = {p.relative_to(MODELS) for p in MODELS.rglob("*") if p.is_file()}
        complaints = [f"{p}: only on one side" for p in sorted(made ^ committed)]
        for path in sorted(made & committed):
            # The manifest's errors are those of the machine that made it.
            if path.name != "manifest.json" and (why := difference(folder / path, MODELS / path)):
                complaints.append(f"{path}: {why}")
    print("\n".join(complaints) or f"{len(committed)} files are as made")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    parser.add_argument("--only", metavar="NAME", help="make one case")
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)  # products always add in the same order
    if arguments.check:
        sys.exit(check())
    MODELS.mkdir(parents=True, exist_ok=True)
    make(MODELS, arguments.only)


if __name__ == "__main__":
    main()
