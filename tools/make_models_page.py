#!/usr/bin/env python3
"""Writes docs/MODELS.md from what the program says.

    python tools/make_models_page.py build/release/banyan

The first tables are `banyan models --markdown`, which a test compares with the page; the last one
is what `banyan inspect` counts for the shapes of tests/unit/models/published_configs.json.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMATS = ("bf16", "int8", "int4")

INTRODUCTION = """# Models

What `banyan models` lists: the tables are what `banyan models --markdown` prints, and a test \
compares them. A model runs when the first entry of `architectures` in its `config.json` is one of \
these, and every key that would change the computation is one that the family reads; others are \
refused by name. Text alone: images and sound are not read. Layers that predict further tokens are \
left out.

"""

MEMORY = """
## Memory

Weights in memory by format, as `banyan inspect --load-format dummy` counts them for the published \
shapes; a checkpoint that is quantised already takes what its file does. States of sequences and \
the step come on top: `banyan inspect` says how much.

| checkpoint | parameters | for each token | bf16 | int8 | int4 |
|---|---|---|---|---|---|
"""


def billions(count):
    return f"{count / 1e9:.3g} B"


def inspect(program, config, form):
    plain = {k: v for k, v in config.items() if k != "quantization_config"}
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(plain))
        command = [program, "inspect", "--model", folder, "--load-format", "dummy", "--json"]
        command += ["--dtype", "bf16"] if form == "bf16" else ["--quantization", form]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main():
    program = sys.argv[1]
    command = [program, "models", "--markdown"]
    page = INTRODUCTION + subprocess.run(command, check=True, capture_output=True, text=True).stdout
    page += MEMORY
    configs = json.loads((ROOT / "tests/unit/models/published_configs.json").read_text())
    for name, model in configs.items():
        found = [inspect(program, model["config"], form) for form in FORMATS]
        sizes = " | ".join(f"{info['weight_bytes'] / 1e9:.3g} GB" for info in found)
        parameters = billions(found[0]["parameters_total"])
        active = billions(found[0]["parameters_active"])
        page += f"| {name} | {parameters} | {active} | {sizes} |\n"
    (ROOT / "docs/MODELS.md").write_text(page)


if __name__ == "__main__":
    main()
