"""python read_quantised.py --banyan build/release/banyan: reads what `banyan quantize` writes with
transformers and compressed-tensors, as others will. A small random Llama is quantised in every
format; each copy must load, and no weight may be further from the original's than codes and bf16
explain: codes in another order, or scales of another group, are off by a whole weight.

Needs torch, transformers 5.23 and compressed-tensors 0.20 from PyPI."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

# format -> the largest error of a weight, as a part of the largest weight that shares its scale,
# and how many columns share one; None: the whole row
FORMATS = {
    "int8": (0.01, None),
    "int4": (0.25, 32),
    "int4:64": (0.25, 64),
    "fp8": (0.07, None),
    "mxfp4": (0.34, 32),
}


def random_llama(folder):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=False,
    )
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)


def error_of(read, original, group):
    """The largest error of any weight, as a part of the largest weight of its group."""
    groups = original.float().unflatten(-1, (-1, group or original.shape[-1]))
    errors = (read.float().reshape(groups.shape) - groups).abs()
    return (errors / groups.abs().amax(-1, keepdim=True)).max().item()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--banyan", type=Path, required=True)
    o = p.parse_args()
    ids = torch.arange(1, 40)[None]
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        original = random_llama(source)
        logits = original(ids).logits.float()
        for name, (bound, group) in FORMATS.items():
            out = Path(folder, name.replace(":", "-"))
            command = [o.banyan, "quantize", "--model", source, "--to", name, "--out", out]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            model = AutoModelForCausalLM.from_pretrained(out, dtype=torch.bfloat16)
            moved = (model(ids).logits.float() - logits).norm() / logits.norm()
            worst = max(
                error_of(read.weight, kept.weight, group)
                for read, kept in zip(model.modules(), original.modules())
                if isinstance(kept, torch.nn.Linear)
            )
            failed |= worst > bound
            print(f"{name:8} logits {moved:.3f}  weights {worst:.4f} (bound {bound:.4f})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
