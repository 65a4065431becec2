#!/usr/bin/env python3
"""What quantising a model's weights costs on real text: ours beside llama.cpp's formats.

    python tools/measure_quantisation.py BANYAN MODEL TEXT [--tokens N]

Scores the first N tokens of TEXT in pieces of the model's context, with the weights as they are and
quantised in each way, and prints for each: bits per weight, perplexity, the mean loss of
log-probability of a token, and the mean of its absolute change. llama.cpp's formats are made from
the same weights by its `gguf` package and given to Banyan as a GGUF file. Rows that do not divide
into blocks of 32 are left as they are everywhere, and the output head is quantised with the rest.

Two runs of each: the weights as f32 (what the format's rounding of weights costs), and the codes as
they are, where activations are rounded to 8 bits too, as llama.cpp does.
"""

import argparse
import json
import math
import pathlib
import subprocess
import tempfile

import gguf
import numpy
from safetensors.numpy import load_file

PIECE = 256
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOP_NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name):
    module = name.removesuffix(".weight")
    if module in TOP_NAMES:
        return TOP_NAMES[module] + ".weight"
    _, _, index, rest = module.split(".", 3)
    return f"blk.{index}.{LAYER_NAMES[rest]}.weight"


def turned(weight, heads):
    """Rows of q and k as llama.cpp has them: the two halves of a head in turn."""
    halves = weight.reshape(heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return numpy.ascontiguousarray(halves.swapaxes(1, 2).reshape(weight.shape))


def write_gguf(model, path, kind):
    """The checkpoint's matrices as `kind`, where their rows divide into blocks."""
    config = json.loads((model / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    for name, tensor in load_file(model / "model.safetensors").items():
        tensor = tensor.astype(numpy.float32)
        if ".q_proj." in name:
            tensor = turned(tensor, config["num_attention_heads"])
        if ".k_proj." in name:
            tensor = turned(tensor, config["num_key_value_heads"])
        if tensor.ndim == 2 and tensor.shape[1] % 32 == 0:
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(name), tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(*command):
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def logprobs(banyan, pieces, *options):
    """log p of every token but the first of each piece."""
    values = []
    for piece in pieces:
        ids = ",".join(map(str, piece))
        values += run(banyan, "score", "--json", "--ids", ids, *options)["logprobs"][1:]
    return numpy.array(values)


def bits_per_weight(banyan, *options):
    """Of the matrices that are quantised."""
    weights = run(banyan, "inspect", "--json", *options)["weights"]
    some = [w for w in weights if "int" in w["memory"] or "fp" in w["memory"]]
    return 8 * sum(w["bytes"] for w in some) / max(1, sum(w["parameters"] for w in some))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("banyan", type=pathlib.Path)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--tokens", type=int, default=16384)
    a = parser.parse_args()
    text = a.text.read_text(errors="replace")[: a.tokens * 6]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        (folder / "text").write_text(text)
        ids = run(a.banyan, "tokenize", "--json", "--model", a.model, "--file", folder / "text")
        ids = ids["ids"][: a.tokens]
        pieces = [ids[i : i + PIECE] for i in range(0, len(ids) - 1, PIECE)]
        model = ("--model", a.model)
        exact = logprobs(a.banyan, pieces, *model, "--dtype", "f32")
        print(f"{len(exact)} tokens, perplexity {math.exp(-exact.mean()):.4f} as it is\n")
        columns = "perplexity | loss | change"
        print(f"| format | bits | as f32: {columns} | codes: {columns} |")
        print("|---|---|---|---|---|---|---|---|")
        tensors = load_file(a.model / "model.safetensors").values()
        widths = [t.shape[1] for t in tensors if t.ndim > 1]
        keep = ["--quantization-override", "down_proj=none"] if any(w % 32 for w in widths) else []
        variants = {}
        for kind in ("Q8_0", "Q4_0"):
            path = folder / f"{kind}.gguf"
            write_gguf(a.model, path, gguf.GGMLQuantizationType[kind])
            variants[f"llama.cpp {kind}"] = (*model, "--gguf", path)
        for kind in ("int8", "int4", "fp8", "mxfp4"):
            out = folder / kind
            run(a.banyan, "quantize", "--json", *model, "--to", kind, "--out", out, *keep)
            variants[kind] = ("--model", out)
        for name, options in variants.items():
            cells = [f"{bits_per_weight(a.banyan, *options):.2f}"]
            for more in (("--dtype", "f32"), ()):
                values = logprobs(a.banyan, pieces, *options, *more)
                cells.append(f"{math.exp(-values.mean()):.4f}")
                cells.append(f"{(exact - values).mean():.5f}")
                cells.append(f"{numpy.abs(exact - values).mean():.5f}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
