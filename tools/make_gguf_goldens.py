#!/usr/bin/env python3
"""Makes the GGUF golden model of tests/golden/gguf, or checks it.

    python tools/make_gguf_goldens.py            write it
    python tools/make_gguf_goldens.py --check    compare what is committed with that

One small Llama whose matrices are each in another type. The `gguf` package packs and unpacks them;
of types that it only unpacks, the blocks are random bytes. The reference is what transformers
computes in float32 from what the package unpacks.
"""

import argparse
import pathlib
import sys
import tempfile

import gguf
import numpy
import torch
from gguf import GGMLQuantizationType as Type
from safetensors.torch import load_file, save_file
from transformers import logging

from goldens import drawn, reference
from goldens.cases import Case, llama
from goldens.checkpoint import prompt_of, write_checkpoint
from measure_quantisation import gguf_name, turned

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "gguf"
TYPES = {
    "embed_tokens": Type.F16,
    "q_proj": Type.Q8_0,
    "k_proj": Type.Q4_0,
    "v_proj": Type.Q4_1,
    "o_proj": Type.Q6_K,
    "gate_proj": Type.Q5_K,
    "up_proj": Type.Q4_K,
    "down_proj": Type.MXFP4,
    "lm_head": Type.BF16,
}
HALVES = {Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,)}  # where blocks have f16 numbers
CASE = Case(
    name="gguf",
    notes="",
    prompt_tokens=40,
    seed=31,
    whole=True,
    config=llama(
        vocab_size=32,
        hidden_size=256,
        intermediate_size=256,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        rms_norm_eps=1e-3,
        tie_word_embeddings=False,
        torch_dtype="float32",
    ),
)


def random_blocks(name, shape, kind, deviation):
    """Blocks of random codes whose numbers are about as large as `deviation`."""
    _, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    rng = drawn.generator(CASE.seed, name)
    blocks = rng.integers(0, 256, (shape[0] * shape[1] // 256, block_bytes)).astype(numpy.uint8)
    for at in HALVES[kind]:
        scale = (deviation / 300 * (0.5 + rng.random(len(blocks)))).astype(numpy.float16)
        blocks[:, at : at + 2] = scale.view(numpy.uint8).reshape(-1, 2)
    return blocks.reshape(shape[0], -1)


def encode(name, tensor):
    """The bytes, the type, and the numbers that they stand for."""
    kind = next((k for part, k in TYPES.items() if part in name), Type.F32)
    if kind in HALVES:
        data = random_blocks(name, tensor.shape, kind, float(tensor.std()))
    else:
        data = gguf.quants.quantize(tensor, kind)
    return data, kind, gguf.quants.dequantize(data, kind).reshape(tensor.shape)


def turned_back(weight, heads):
    rows = numpy.arange(weight.shape[0]).reshape(-1, 1)
    back = numpy.empty_like(weight)
    back[turned(rows, heads)[:, 0]] = weight
    return back


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        dense = pathlib.Path(scratch) / "dense"
        write_checkpoint(CASE, dense)
        (folder / "config.json").write_text((dense / "config.json").read_text())
        writer = gguf.GGUFWriter(folder / "model.gguf", "llama")
        writer.add_head_count(CASE.config["num_attention_heads"])
        writer.add_head_count_kv(CASE.config["num_key_value_heads"])
        writer.add_token_list(["a", "b"])
        plain = {}
        for name, tensor in load_file(dense / "model.safetensors").items():
            heads = {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2], 0)
            tensor = tensor.numpy()
            data, kind, values = encode(name, turned(tensor, heads) if heads else tensor)
            writer.add_tensor(gguf_name(name), data, raw_dtype=kind)
            plain[name] = torch.from_numpy(turned_back(values, heads) if heads else values).clone()
        writer.add_tensor("rope_freqs.weight", numpy.ones(32, dtype=numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        save_file(plain, dense / "model.safetensors", metadata={"format": "pt"})
        ids = prompt_of(CASE)
        logits = reference.run(reference.load_model(dense, torch.float32), ids)["logits"]
    expected = {"prompt_ids": torch.tensor(ids), "logits": logits.contiguous()}
    save_file(expected, folder / "reference.safetensors")


def check():
    """Makes it in a temporary folder and compares; returns the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder)
        for name in ("config.json", "model.gguf"):
            if (folder / name).read_bytes() != (FOLDER / name).read_bytes():
                sys.exit(f"{name} differs")
        new, old = (load_file(f / "reference.safetensors")["logits"] for f in (folder, FOLDER))
        if not torch.allclose(new, old, rtol=1e-5, atol=1e-5):
            sys.exit("the logits differ")
    print("as made")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    if arguments.check:
        check()
    else:
        make(FOLDER)


if __name__ == "__main__":
    main()
