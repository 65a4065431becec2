#!/usr/bin/env python3
"""Writes docs/MODELS.md from the output of the program.

    python tools/make_models_page.py build/release/banyan

The first tables are the output of `banyan models --markdown`, which a test compares with the page.
The last one is from `banyan inspect` on tests/unit/models/published_configs.json.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMATS = ("bf16", "int8", "int4")

INTRODUCTION = """# Models

The tables are the output of `banyan models --markdown`; a test compares them. A model is \
supported if the first entry of `architectures` in its `config.json` is listed, and the family \
implements every key that would change the computation. Otherwise the error names the \
architecture or the key. Only text is supported, not images or audio. MTP layers are skipped \
where the table says so.

A GGUF file, local or on a hub (`OWNER/NAME:Q4_K_M`, [INSTALL.md](INSTALL.md)), is supported if \
llama.cpp's `general.architecture` is one of these: `bailingmoe2` (Ling 2.0), `bailingmoe3` (Ling \
3.0), `deepseek2` (V2, V3 and models with its layers: Kimi K2, Moonlight, GLM-4.7-Flash), \
`deepseek32`, `ernie4_5`, `ernie4_5-moe`, `exaone4`, `gemma2`, `gemma3`, `gemma4`, `glm-dsa` \
(GLM-5), `glm4`, `glm4moe`, `gpt-oss`, `granite`, `granitehybrid`, `granitemoe`, `hunyuan-dense`, \
`hunyuan-moe`, `kimi-linear`, `lfm2`, `lfm2moe`, `llama` (also Mistral and Mixtral), `llama4`, \
`minimax-m2`, `minimax-m3`, `mistral3`, `mistral4`, `nemotron_h`, `nemotron_h_moe`, `olmo2` (also \
Olmo 3), `phi3`, `qwen2`, `qwen3`, `qwen35` and `qwen35moe` (also Qwen3.6), `qwen3moe`, \
`qwen3next`, `seed_oss` and `smollm3`. For any other, the error shows this list.

Its tensors may be F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, \
IQ4_NL, IQ4_XS or MXFP4. All stay packed in memory, unless `--quantization` or `--dtype` requests \
otherwise. GGUF lacks some settings of `config.json`. The window of Mistral 7B v0.1 is missing, as \
are limits of Mamba's time steps, the scale of Mistral Small 4's queries beyond 8k tokens and, in \
older files, DeepSeek-V2's groups of experts, and llama.cpp computes without them too. So is \
whether a SentencePiece tokenizer adds a space after a \
special token; as in llama.cpp, it does.

"""

MEMORY = """
## Memory

Size of the weights in memory by format, from `banyan inspect --load-format dummy` on the \
published configs. A checkpoint that is already quantised takes the size of its files. Sequence \
states and step memory come on top; `banyan inspect` shows how much.

| checkpoint | parameters | active | bf16 | int8 | int4 |
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
