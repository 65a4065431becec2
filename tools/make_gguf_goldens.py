#!/usr/bin/env python3
"""Makes the GGUF golden model of tests/golden/gguf, or checks it.

    python tools/make_gguf_goldens.py            write it
    python tools/make_gguf_goldens.py --check    compare what is committed with that

A small Llama whose matrices are each in another type, and a small mixture of experts whose experts
are. The `gguf` package packs and unpacks them; of types that it only unpacks, the blocks are random
bytes. The reference is what transformers computes in float32 from what the package unpacks.
"""

import argparse
import pathlib
import re
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
    "layers.1.self_attn.q_proj": Type.IQ4_NL,
    "layers.1.self_attn.k_proj": Type.IQ4_XS,
    "layers.1.self_attn.v_proj": Type.Q2_K,
    "layers.1.self_attn.o_proj": Type.Q3_K,
    "layers.1.mlp.gate_proj": Type.IQ4_XS,
    "layers.1.mlp.up_proj": Type.IQ4_XS,
    "layers.1.mlp.down_proj": Type.Q3_K,
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
EXPERT_TYPES = {
    "experts.0.gate_proj": Type.Q3_K,
    "experts.0.up_proj": Type.Q3_K,
    "experts.0.down_proj": Type.Q4_K,
}
EXPERT_NAMES = {
    "mlp.gate": "ffn_gate_inp",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}
# Where blocks have f16 numbers, and about what a number is in units of the first.
HALVES = {
    Type.Q4_K: ((0, 2), 300),
    Type.Q5_K: ((0, 2), 300),
    Type.Q6_K: ((208,), 300),
    Type.Q2_K: ((80, 82), 12),
    Type.Q3_K: ((108,), 42),
    Type.IQ4_NL: ((0,), 70),
    Type.IQ4_XS: ((0,), 1300),
}
SIZES = dict(
    vocab_size=32,
    hidden_size=256,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=128,
    rms_norm_eps=1e-3,
    tie_word_embeddings=False,
    torch_dtype="float32",
)
CASE = Case(
    name="gguf",
    notes="",
    prompt_tokens=40,
    seed=31,
    whole=True,
    config=llama(intermediate_size=256, num_hidden_layers=2, **SIZES),
)
EXPERTS_CASE = Case(
    name="gguf",
    notes="",
    prompt_tokens=40,
    seed=32,
    whole=True,
    config=llama(
        architectures=["Qwen3MoeForCausalLM"],
        model_type="qwen3_moe",
        head_dim=16,
        num_hidden_layers=1,
        intermediate_size=256,
        moe_intermediate_size=256,
        num_experts=3,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        **SIZES,
    ),
)


def random_blocks(name, shape, kind, deviation):
    """Blocks of random codes whose numbers are about as large as `deviation`."""
    numbers, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    rng = drawn.generator(CASE.seed, name)
    count = numpy.prod(shape) // numbers
    blocks = rng.integers(0, 256, (count, block_bytes)).astype(numpy.uint8)
    places, units = HALVES[kind]
    for at in places:
        scale = (deviation / units * (0.5 + rng.random(len(blocks)))).astype(numpy.float16)
        blocks[:, at : at + 2] = scale.view(numpy.uint8).reshape(-1, 2)
    return blocks.reshape(*shape[:-1], -1)


def encode(name, tensor, types):
    """The bytes, the type, and the numbers that they stand for."""
    kind = next((k for part, k in types.items() if part in name), Type.F32)
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


def llama_tensors(tensors):
    """Names, bytes and types for the file, and the names and numbers of the checkpoint."""
    for name, tensor in tensors.items():
        heads = {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2], 0)
        data, kind, values = encode(name, turned(tensor, heads) if heads else tensor, TYPES)
        yield gguf_name(name), data, kind, {name: turned_back(values, heads) if heads else values}


def expert_tensors(tensors):
    stacks = {}
    for name, tensor in tensors.items():
        if found := re.search(r"experts\.(\d+)\.(\w+)_proj", name):
            stacks.setdefault(found[2], {})[name] = tensor
            continue
        module = name.removeprefix("model.layers.0.").removesuffix(".weight")
        own = EXPERT_NAMES.get(module)
        own = f"blk.0.{own}.weight" if own else gguf_name(name)
        yield own, tensor, Type.F32, {name: tensor}
    for part, experts in stacks.items():
        whole = numpy.stack(list(experts.values()))
        data, kind, values = encode(next(iter(experts)), whole, EXPERT_TYPES)
        yield f"blk.0.ffn_{part}_exps.weight", data, kind, dict(zip(experts, values))


def make_one(folder, case, architecture, tensors_of):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        dense = pathlib.Path(scratch) / "dense"
        write_checkpoint(case, dense)
        (folder / "config.json").write_text((dense / "config.json").read_text())
        writer = gguf.GGUFWriter(folder / "model.gguf", architecture)
        writer.add_head_count(case.config["num_attention_heads"])
        writer.add_head_count_kv(case.config["num_key_value_heads"])
        writer.add_token_list(["a", "b"])
        tensors = {n: t.numpy() for n, t in load_file(dense / "model.safetensors").items()}
        plain = {}
        for name, data, kind, values in tensors_of(tensors):
            writer.add_tensor(name, data, raw_dtype=kind)
            plain |= {n: torch.from_numpy(v).clone() for n, v in values.items()}
        if architecture == "llama":
            writer.add_tensor("rope_freqs.weight", numpy.ones(32, dtype=numpy.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        save_file(plain, dense / "model.safetensors", metadata={"format": "pt"})
        ids = prompt_of(case)
        logits = reference.run(reference.load_model(dense, torch.float32), ids)["logits"]
    expected = {"prompt_ids": torch.tensor(ids), "logits": logits.contiguous()}
    save_file(expected, folder / "reference.safetensors")


def make(folder):
    make_one(folder, CASE, "llama", llama_tensors)
    make_one(folder / "experts", EXPERTS_CASE, "qwen3moe", expert_tensors)


def check():
    """Makes them in a temporary folder and compares; returns the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        make(pathlib.Path(scratch))
        for part in (".", "experts"):
            made, committed = pathlib.Path(scratch) / part, FOLDER / part
            for name in ("config.json", "model.gguf"):
                if (made / name).read_bytes() != (committed / name).read_bytes():
                    sys.exit(f"{part}/{name} differs")
            new, old = (load_file(f / "reference.safetensors")["logits"] for f in (made, committed))
            if not torch.allclose(new, old, rtol=1e-5, atol=1e-5):
                sys.exit(f"the logits of {part} differ")
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
