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
refused by name. Text alone: images and sound are not read. Layers that predict further tokens \
(MTP) are left out where the table says so.

A GGUF file is a model by itself if llama.cpp's `general.architecture` is one of `deepseek2` (V3 \
and what has its layers: Kimi K2, Moonlight, GLM-4.7-Flash), `ernie4_5`, `ernie4_5-moe`, \
`exaone4`, `gemma2`, `gemma3`, `glm4`, `glm4moe`, `gpt-oss`, `granite`, `lfm2`, `lfm2moe`, \
`llama` (also Mistral and Mixtral), `minimax-m2`, `mistral3`, `olmo2` (also Olmo 3), `phi3`, \
`qwen2`, `qwen3`, `qwen3moe`, `seed_oss` and `smollm3`; others are refused with this list. Its \
tensors may be F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, \
IQ4_NL, IQ4_XS or MXFP4. Some of what a `config.json` says is not in such a file: the window of \
Mistral 7B v0.1 (llama.cpp computes without it), and the texts in which a SentencePiece \
tokenizer puts no space after a special token (it puts one, as llama.cpp does).

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
        if not model.get("memory", True):
            continue
        found = [inspect(program, model["config"], form) for form in FORMATS]
        sizes = " | ".join(f"{info['weight_bytes'] / 1e9:.3g} GB" for info in found)
        parameters = billions(found[0]["parameters_total"])
        active = billions(found[0]["parameters_active"])
        page += f"| {name} | {parameters} | {active} | {sizes} |\n"
    (ROOT / "docs/MODELS.md").write_text(page)


if __name__ == "__main__":
    main()
