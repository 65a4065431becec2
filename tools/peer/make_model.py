"""python make_model.py --shape tools/shapes/qwen3-0.6b --tokenizer DIR --out DIR: one model for
both sides of a comparison with llama.cpp. DIR becomes a Hugging Face folder without weights (Banyan
draws them with --load-format dummy) with a GGUF of the same shape and vocabulary beside it, whose
weights are random bytes of the format: speed does not depend on them. One tensor is in memory at a
time. Needs numpy and gguf 0.19 from PyPI; the families are in families.py."""

import argparse
import json
import math
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np
from families import FAMILIES, Matrix

DEVIATION = 0.02  # of the weights


def blocks(codes_bytes, deviation):
    """Draws of a format of blocks: an f16 scale, then codes, uniform with that deviation."""
    block = np.dtype([("scale", np.float16), ("codes", np.uint8, codes_bytes)])

    def draw(random, weights):
        drawn = np.empty(weights // 32, block)
        drawn["scale"] = DEVIATION / deviation
        drawn["codes"] = random.integers(0, 256, (len(drawn), codes_bytes), np.uint8)
        return drawn

    return draw


def draw_bf16(random, weights):
    width = DEVIATION * math.sqrt(12)
    values = (random.random(weights, np.float32) - np.float32(0.5)) * np.float32(width)
    return (values.view(np.uint32) >> 16).astype(np.uint16)


# A draw gives a flat array of so many weights.
FORMATS = {
    "BF16": draw_bf16,
    "Q8_0": blocks(32, 256 / math.sqrt(12)),
    "Q4_0": blocks(16, 16 / math.sqrt(12)),
}


def write_vocabulary(writer, folder, config):
    """The byte-level BPE of tokenizer.json as llama.cpp reads it."""
    data = json.loads((folder / "tokenizer.json").read_text())
    tokens = [f"[PAD{i}]" for i in range(config["vocab_size"])]
    kinds = [gguf.TokenType.UNUSED] * len(tokens)
    for text, index in data["model"]["vocab"].items():
        tokens[index], kinds[index] = text, gguf.TokenType.NORMAL
    for entry in data["added_tokens"]:
        tokens[entry["id"]] = entry["content"]
        kinds[entry["id"]] = (
            gguf.TokenType.CONTROL if entry["special"] else gguf.TokenType.USER_DEFINED
        )
    merges = data["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_add_bos_token(False)


def write_key(writer, key, value):
    # bool is an int too
    add = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        list: writer.add_array,
    }[type(value)]
    add(key, value)


def draw(tensor, kind, random):
    if isinstance(tensor, Matrix):
        return FORMATS[kind.name](random, math.prod(tensor.shape))
    if tensor.value is None:
        return random.standard_normal(tensor.shape, np.float32) * np.float32(DEVIATION)
    return np.full(tensor.shape, tensor.value, np.float32)


def write_tensors(writer, tensors, kind):
    for name, tensor in tensors:
        stored = kind if isinstance(tensor, Matrix) else gguf.GGMLQuantizationType.F32
        per_block, block_bytes = gguf.GGML_QUANT_SIZES[stored]
        size = math.prod(tensor.shape) // per_block * block_bytes
        writer.add_tensor_info(name, tensor.shape, np.dtype(np.float32), size, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(1)
    for _, tensor in tensors:
        writer.write_tensor_data(draw(tensor, kind, random))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shape", type=Path, required=True, help="folder with a config.json")
    p.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--format", choices=FORMATS, default="Q8_0")
    o = p.parse_args()
    config = json.loads((o.shape / "config.json").read_text())
    family = FAMILIES.get(config["model_type"])
    if family is None:
        known = ", ".join(FAMILIES)
        sys.exit(f"{o.shape}: model_type is {config['model_type']}, known here are {known}")
    o.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(o.shape / "config.json", o.out)
    for file in o.tokenizer.glob("tokenizer*.json"):
        shutil.copy(file, o.out)

    writer = gguf.GGUFWriter(str(o.out / f"{o.format}.gguf"), family.architecture)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{o.format}"])
    for key, value in family.keys(config).items():
        write_key(writer, f"{family.architecture}.{key}", value)
    write_vocabulary(writer, o.out, config)
    write_tensors(writer, list(family.tensors(config)), gguf.GGMLQuantizationType[o.format])
    writer.close()


if __name__ == "__main__":
    main()
