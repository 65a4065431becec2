"""python export.py --run DIR [--out models/banyan-nano]: writes a run's checkpoint as a Hugging
Face folder: weights under Ling 3's names, tokenizer, template, configs, checksums."""

import argparse
import hashlib
import json
import shutil
from pathlib import Path

import torch
from model import Nano
from safetensors.torch import load_file, save_file

from text import END, HERE, ROLE_END, START

ROOT = HERE.parent.parent
IN_F32 = ("A_log", "dt_bias", "expert_bias")
SUMMED = (
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


def tensors_of(state):
    """Experts apart, in bf16, but for what the family keeps in f32."""
    out = {}
    for name, tensor in state.items():
        tensor = tensor if name.endswith(IN_F32) else tensor.bfloat16()
        if ".experts." not in name:
            out[name] = tensor.contiguous()
            continue
        scope, kind = name.rsplit(".", 1)
        for e, expert in enumerate(tensor):
            out[f"{scope}.{e}.{kind}.weight"] = expert.contiguous()
    return out


def load(folder):
    """The network of an exported folder."""
    model = Nano(json.loads((folder / "config.json").read_text()))
    tensors, state = load_file(folder / "model.safetensors"), model.state_dict()
    for name, into in state.items():
        if ".experts." in name:
            scope, kind = name.rsplit(".", 1)
            into.copy_(
                torch.stack([tensors[f"{scope}.{e}.{kind}.weight"] for e in range(len(into))])
            )
        else:
            into.copy_(tensors[name])
    return model


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_sums(folder):
    def digest(name):
        return hashlib.sha256((folder / name).read_bytes()).hexdigest()

    lines = [f"{digest(name)}  {name}" for name in sorted(SUMMED)]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--run", type=Path, required=True)
    p.add_argument("--out", type=Path, default=ROOT / "models" / "banyan-nano")
    o = p.parse_args()
    o.out.mkdir(parents=True, exist_ok=True)
    state = torch.load(o.run / "checkpoint-0.pt", weights_only=True)
    save_file(tensors_of(state["model"]), o.out / "model.safetensors", {"format": "pt"})
    (o.out / "model.safetensors").chmod(0o644)
    shutil.copy(HERE / "config.json", o.out)
    shutil.copy(HERE / "chat_template.jinja", o.out)
    shutil.copy(o.run / "tokenizer.json", o.out)
    config = json.loads((HERE / "config.json").read_text())
    write_json(
        o.out / "generation_config.json",
        {
            "bos_token_id": config["bos_token_id"],
            "eos_token_id": [config["eos_token_id"], config["pad_token_id"]],
            "pad_token_id": config["pad_token_id"],
            "do_sample": False,
        },
    )
    write_json(
        o.out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": START,
            "eos_token": ROLE_END,
            "pad_token": END,
            "model_max_length": config["max_position_embeddings"],
            "add_bos_token": True,
            "clean_up_tokenization_spaces": False,
        },
    )
    write_sums(o.out)
    size = (o.out / "model.safetensors").stat().st_size
    print(f"{o.out}: step {state['step']}, {size / 1e6:.1f} MB of weights")


if __name__ == "__main__":
    main()
