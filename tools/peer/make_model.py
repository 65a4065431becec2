"""python make_model.py --shape tools/shapes/qwen3-0.6b --tokenizer DIR --out DIR: one model for
both sides of a comparison with llama.cpp. DIR becomes a Hugging Face folder without weights (Banyan
draws them with --load-format dummy) with a GGUF of the same shape and vocabulary beside it, whose
weights are random too: speed does not depend on them. Needs numpy and gguf from PyPI; Qwen3 shapes
only."""

import argparse
import json
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np

FORMATS = {
    "BF16": gguf.GGMLQuantizationType.BF16,
    "Q8_0": gguf.GGMLQuantizationType.Q8_0,
    "Q4_0": gguf.GGMLQuantizationType.Q4_0,
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


def write_shape(writer, c):
    writer.add_context_length(c["max_position_embeddings"])
    writer.add_embedding_length(c["hidden_size"])
    writer.add_block_count(c["num_hidden_layers"])
    writer.add_feed_forward_length(c["intermediate_size"])
    writer.add_head_count(c["num_attention_heads"])
    writer.add_head_count_kv(c["num_key_value_heads"])
    writer.add_key_length(c["head_dim"])
    writer.add_value_length(c["head_dim"])
    writer.add_layer_norm_rms_eps(c["rms_norm_eps"])
    writer.add_rope_freq_base(c["rope_theta"])


def shapes(c):
    """name -> (rows, columns), or (width,) of a norm."""
    hidden, inner, dim = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    queries, keys = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    yield "token_embd.weight", (c["vocab_size"], hidden)
    yield "output_norm.weight", (hidden,)
    for i in range(c["num_hidden_layers"]):
        for name, shape in {
            "attn_norm": (hidden,),
            "ffn_norm": (hidden,),
            "attn_q_norm": (dim,),
            "attn_k_norm": (dim,),
            "attn_q": (queries, hidden),
            "attn_k": (keys, hidden),
            "attn_v": (keys, hidden),
            "attn_output": (hidden, queries),
            "ffn_gate": (inner, hidden),
            "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner),
        }.items():
            yield f"blk.{i}.{name}.weight", shape


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--shape", type=Path, required=True, help="folder with a config.json of Qwen3")
    p.add_argument("--tokenizer", type=Path, required=True, help="folder with a tokenizer.json")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--format", choices=FORMATS, default="Q8_0")
    o = p.parse_args()
    config = json.loads((o.shape / "config.json").read_text())
    if config["model_type"] != "qwen3":
        sys.exit(f"{o.shape}: model_type is {config['model_type']}, only qwen3 is known here")
    o.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(o.shape / "config.json", o.out)
    for file in o.tokenizer.glob("tokenizer*.json"):
        shutil.copy(file, o.out)

    kind, random = FORMATS[o.format], np.random.default_rng(1)
    writer = gguf.GGUFWriter(str(o.out / f"{o.format}.gguf"), "qwen3")
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{o.format}"])
    write_shape(writer, config)
    write_vocabulary(writer, o.out, config)
    for name, shape in shapes(config):
        if len(shape) == 1:
            writer.add_tensor(name, np.ones(shape, np.float32))
            continue
        weights = random.standard_normal(shape, np.float32) * np.float32(0.02)
        writer.add_tensor(name, gguf.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file(progress=sys.stderr.isatty())
    writer.close()


if __name__ == "__main__":
    main()
