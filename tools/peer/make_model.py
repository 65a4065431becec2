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


def k_blocks(fields, halves):
    """Draws of a format of 256 numbers a block: random bytes, but for the f16 `halves`."""
    block = np.dtype(fields)

    def draw(random, weights):
        count = weights // 256
        drawn = random.integers(0, 256, count * block.itemsize, np.uint8).view(block)
        for name, value in halves.items():
            drawn[name] = np.float16(value)
        return drawn

    return draw


def q4_k(codes_bytes, largest):
    """Codes up to `largest` times levels up to 63, less a minimum times levels as large."""
    scale = DEVIATION / (63 * largest / 4)
    fields = [("d", np.float16), ("dmin", np.float16), ("rest", np.uint8, 12 + codes_bytes)]
    return k_blocks(fields, {"d": scale, "dmin": scale * largest / 2})


def draw_mxfp4(random, weights):
    """A power of two, then codes of e2m1 between -6 and 6."""
    block = np.dtype([("exponent", np.uint8), ("codes", np.uint8, 16)])
    drawn = np.empty(weights // 32, block)
    drawn["exponent"] = 127 + round(math.log2(DEVIATION / 3))
    drawn["codes"] = random.integers(0, 256, (len(drawn), 16), np.uint8)
    return drawn


# A draw gives a flat array of so many weights.
DRAWS = {
    "BF16": draw_bf16,
    "Q8_0": blocks(32, 256 / math.sqrt(12)),
    "Q4_0": blocks(16, 16 / math.sqrt(12)),
    "Q4_K": q4_k(128, 15),
    "Q5_K": q4_k(160, 31),
    "MXFP4": draw_mxfp4,
    "Q6_K": k_blocks([("codes", np.uint8, 208), ("d", np.float16)], {"d": DEVIATION / 1366}),
}


def uses_more_bits(layer, layers):
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


def q4_k_m(name, config):
    """llama.cpp's mixture (llama-quant.cpp) of a tensor: more bits for the head, and in half of the
    layers for values and what leads back from the feed-forward block."""
    if name == "output.weight":
        return "Q6_K"
    if name == "token_embd.weight":
        return "Q6_K" if config["tie_word_embeddings"] else "Q4_K"
    _, layer, module, _ = name.split(".")
    if module == "attn_qkv":
        return "Q5_K"
    more = uses_more_bits(int(layer), config["num_hidden_layers"])
    return "Q6_K" if more and module.startswith(("attn_v", "ffn_down")) else "Q4_K"


FORMATS = {name: lambda tensor, config, name=name: name for name in ("BF16", "Q8_0", "Q4_0")}
FORMATS["Q4_K_M"] = q4_k_m
# As gpt-oss is published for llama.cpp: experts of four bits, all else of eight.
FORMATS["MXFP4"] = lambda tensor, config: "MXFP4" if "_exps." in tensor else "Q8_0"
FILE_TYPES = {"MXFP4": "MXFP4_MOE"}  # where they have another name


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
    ends = config["eos_token_id"]
    writer.add_eos_token_id(ends[0] if isinstance(ends, list) else ends)
    writer.add_add_bos_token(False)


def write_key(writer, key, value):
    # bool is an int too
    add = {
        bool: writer.add_bool,
        int: writer.add_uint32,
        float: writer.add_float32,
        str: writer.add_string,
        list: writer.add_array,
    }[type(value)]
    add(key, value)


def draw(tensor, kind, random):
    if isinstance(tensor, Matrix):
        return DRAWS[kind.name](random, math.prod(tensor.shape))
    if tensor.value is None:
        return random.standard_normal(tensor.shape, np.float32) * np.float32(DEVIATION)
    return np.full(tensor.shape, tensor.value, np.float32)


def write_tensors(writer, tensors, kind_of):
    """kind_of(name) names the type of a matrix."""
    kinds = {
        name: gguf.GGMLQuantizationType[kind_of(name) if isinstance(tensor, Matrix) else "F32"]
        for name, tensor in tensors
    }
    for name, tensor in tensors:
        stored = kinds[name]
        per_block, block_bytes = gguf.GGML_QUANT_SIZES[stored]
        size = math.prod(tensor.shape) // per_block * block_bytes
        writer.add_tensor_info(name, tensor.shape, np.dtype(np.float32), size, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    random = np.random.default_rng(1)
    for name, tensor in tensors:
        writer.write_tensor_data(draw(tensor, kinds[name], random))


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shape", type=Path, required=True, help="folder with a config.json")
    p.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--format", choices=FORMATS, default="Q8_0")
    p.add_argument("--layers", type=int, help="only the first so many, where all are too large")
    o = p.parse_args()
    whole = json.loads((o.shape / "config.json").read_text())
    config = whole.get("text_config", whole)
    if o.layers:
        config["num_hidden_layers"] = o.layers
        if "layer_types" in config:
            config["layer_types"] = config["layer_types"][: o.layers]
    family = FAMILIES.get(config["model_type"])
    if family is None:
        known = ", ".join(FAMILIES)
        sys.exit(f"{o.shape}: model_type is {config['model_type']}, known here are {known}")
    o.out.mkdir(parents=True, exist_ok=True)
    (o.out / "config.json").write_text(json.dumps(whole, indent=2) + "\n")
    for file in o.tokenizer.glob("tokenizer*.json"):
        shutil.copy(file, o.out)

    writer = gguf.GGUFWriter(str(o.out / f"{o.format}.gguf"), family.architecture)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{FILE_TYPES.get(o.format, o.format)}"])
    for key, value in family.keys(config).items():
        write_key(writer, f"{family.architecture}.{key}", value)
    write_vocabulary(writer, o.out, config)
    kind_of = FORMATS[o.format]
    write_tensors(writer, list(family.tensors(config)), lambda name: kind_of(name, config))
    writer.close()


if __name__ == "__main__":
    main()
