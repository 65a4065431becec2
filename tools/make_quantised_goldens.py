#!/usr/bin/env python3
"""Makes the quantised golden models of tests/golden/quantised, or checks them.

    python tools/make_quantised_goldens.py            write the checkpoints and their references
    python tools/make_quantised_goldens.py --check    compare what is committed with that

One small Llama, quantised in every way that checkpoints are. The reference of each is what
transformers computes in float32 from the weights that its codes stand for, by the formulas of the
format alone; compressed-tensors' own packing is used where it has one. tools/README.md lists them.
"""

import argparse
import dataclasses
import json
import pathlib
import shutil
import sys
import tempfile

import torch
from compressed_tensors.compressors.nvfp4.helpers import pack_fp4_to_uint8
from compressed_tensors.compressors.pack_quantized.helpers import pack_to_int32
from safetensors.torch import load_file, save_file
from transformers import logging

from goldens import drawn, reference
from goldens.cases import Case, llama
from goldens.checkpoint import prompt_of, write_checkpoint, write_json

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "quantised"
LINEARS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def case_of(name, hidden=64, intermediate=96, heads=4, kv_heads=2, dtype="float32"):
    return Case(
        name=name,
        notes="",
        prompt_tokens=40,
        seed=20 + len(name),
        dtype=dtype,
        whole=True,
        config=llama(
            vocab_size=96,
            hidden_size=hidden,
            intermediate_size=intermediate,
            num_hidden_layers=1,
            num_attention_heads=heads,
            num_key_value_heads=kv_heads,
            max_position_embeddings=128,
            rms_norm_eps=1e-3,
            tie_word_embeddings=False,
            torch_dtype=dtype,
        ),
    )


def groups_of(w, group):
    """[n, k] as [n, groups, group]."""
    return w.reshape(w.shape[0], -1, group)


def quantise(w, group, bits, symmetric):
    """Integer codes, scales and zero points [n, groups] by the range of each group."""
    g = groups_of(w, group)
    top = 2 ** (bits - 1)
    if symmetric:
        scale = g.abs().amax(-1) / (top - 0.5)
        zero = torch.full_like(scale, top)
    else:
        low, high = g.amin(-1).clamp(max=0), g.amax(-1).clamp(min=0)
        scale = (high - low) / (2 * top - 1)
        zero = (-low / scale).round()
    return scale, zero, 2 * top - 1


def encode(w, group, scale, zero, top):
    g = groups_of(w, group)
    codes = (g / scale[..., None] + zero[..., None]).round().clamp(0, top)
    values = (codes - zero[..., None]) * scale[..., None]
    return codes.reshape(w.shape).int(), values.reshape(w.shape)


def words(fields, bits):
    """Packs the last axis into int32 words, the first field lowest."""
    per = 32 // bits
    fields = fields.reshape(*fields.shape[:-1], -1, per).long()
    word = sum(fields[..., i] << (bits * i) for i in range(per))
    return torch.where(word >= 2**31, word - 2**32, word).int()


def fp8_block(name, w, block=128, scales=torch.float32):
    n, k = w.shape
    grid = torch.zeros(-(-n // block), -(-k // block))
    codes = torch.zeros(n, k, dtype=torch.float8_e4m3fn)
    values = torch.zeros(n, k)
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            part = (slice(i * block, (i + 1) * block), slice(j * block, (j + 1) * block))
            grid[i, j] = (w[part].abs().max() / 448).to(scales).float()
            codes[part] = (w[part] / grid[i, j]).to(torch.float8_e4m3fn)
            values[part] = codes[part].float() * grid[i, j]
    return {f"{name}.weight": codes, f"{name}.weight_scale_inv": grid.to(scales)}, values


def fp8_rows(name, w):
    scale = (w.abs().amax(1, keepdim=True) / 448).bfloat16()
    codes = (w / scale.float()).to(torch.float8_e4m3fn)
    return (
        {f"{name}.weight": codes, f"{name}.weight_scale": scale},
        codes.float() * scale.float(),
    )


def fp8_tensor(name, w):
    scale = w.abs().max() / 448
    codes = (w / scale).to(torch.float8_e4m3fn)
    tensors = {
        f"{name}.weight": codes,
        f"{name}.weight_scale": scale,
        f"{name}.input_scale": torch.tensor(0.02),
    }
    return tensors, codes.float() * scale


def int8_rows(name, w):
    scale = w.abs().amax(1, keepdim=True) / 127
    codes = (w / scale).round().to(torch.int8)
    return {f"{name}.weight": codes, f"{name}.weight_scale": scale}, codes.float() * scale


def packed(name, w, bits=4, symmetric=True, group=32, order=None):
    """compressed-tensors' pack-quantized; `order` gives columns to groups at random."""
    group = min(group, w.shape[1])
    index = torch.arange(w.shape[1]) // group
    if order is not None:
        index = index[torch.from_numpy(order.permutation(w.shape[1]))]
    columns = torch.argsort(index, stable=True)
    scale, zero, top = quantise(w[:, columns], group, bits, symmetric)
    scale = scale.bfloat16()
    codes, values = encode(w[:, columns], group, scale.float(), zero, top)
    back = torch.argsort(columns)
    signed = (codes[:, back] - 2 ** (bits - 1)).to(torch.int8)
    tensors = {
        f"{name}.weight_packed": pack_to_int32(signed, bits),
        f"{name}.weight_scale": scale,
        f"{name}.weight_shape": torch.tensor(w.shape),
    }
    if not symmetric:
        offset = (zero - 2 ** (bits - 1)).to(torch.int8)
        zeros = pack_to_int32(offset, bits, packed_dim=0).contiguous()
        tensors[f"{name}.weight_zero_point"] = zeros
    if order is not None:
        tensors[f"{name}.weight_g_idx"] = index.int()
    return tensors, values[:, back]


def nearest_e2m1(x):
    codes = (x.abs()[..., None] - E2M1).abs().argmin(-1)
    return E2M1[codes] * torch.where(x < 0, -1.0, 1.0)


def mxfp4(name, w):
    g = groups_of(w, 32)
    exponent = torch.floor(torch.log2(g.abs().amax(-1))) - 2
    values = nearest_e2m1(g / 2 ** exponent[..., None])
    tensors = {
        f"{name}.weight_packed": pack_fp4_to_uint8(values.reshape(w.shape)),
        f"{name}.weight_scale": (exponent + 127).to(torch.uint8),
    }
    return tensors, (values * 2 ** exponent[..., None]).reshape(w.shape)


def nvfp4(name, w):
    g = groups_of(w, 16)
    whole = 448 * 6 / w.abs().max()
    scale = (g.abs().amax(-1) / 6 * whole).to(torch.float8_e4m3fn)
    step = (scale.float() / whole)[..., None]
    values = nearest_e2m1(g / step)
    tensors = {
        f"{name}.weight_packed": pack_fp4_to_uint8(values.reshape(w.shape)),
        f"{name}.weight_scale": scale,
        f"{name}.weight_global_scale": whole.reshape(1),
    }
    return tensors, (values * step).reshape(w.shape)


def awq(name, w):
    scale, zero, top = quantise(w, 32, 4, symmetric=False)
    scale = scale.half()
    codes, values = encode(w, 32, scale.float(), zero, top)

    def ordered(x):  # [a, n] -> words over n in AWQ's order
        return words(x.reshape(x.shape[0], -1, 8)[..., AWQ_ORDER].reshape(x.shape), 4)

    tensors = {
        f"{name}.qweight": ordered(codes.t().contiguous()),
        f"{name}.qzeros": ordered(zero.int().t().contiguous()),
        f"{name}.scales": scale.t().contiguous(),
    }
    return tensors, values


def gptq(name, w, bits=4, symmetric=True, version=1, order=None):
    index = torch.arange(w.shape[1]) // 32
    if order is not None:
        index = index[torch.from_numpy(order.permutation(w.shape[1]))]
    columns = torch.argsort(index, stable=True)
    scale, zero, top = quantise(w[:, columns], 32, bits, symmetric)
    scale = scale.half()
    codes, values = encode(w[:, columns], 32, scale.float(), zero, top)
    back = torch.argsort(columns)
    stored_zero = (zero.int() - (1 if version == 1 else 0)) & top
    tensors = {
        f"{name}.qweight": words(codes[:, back], bits).t().contiguous(),
        f"{name}.qzeros": words(stored_zero.t().contiguous(), bits),
        f"{name}.scales": scale.t().contiguous(),
        f"{name}.g_idx": index.int(),
        f"{name}.bias": torch.zeros(w.shape[0], dtype=torch.float16),
    }
    return tensors, values[:, back]


def compressed(format, weights, activations=None):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "quantization_status": "compressed",
        "config_groups": {"group_0": group | {"output_activations": None}},
        "ignore": ["lm_head"],
        "kv_cache_scheme": None,
        "global_compression_ratio": None,
    }


def weights(bits, kind, strategy, symmetric=True, **more):
    return {"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": symmetric} | more


def gptq_config(bits=4, sym=True, desc_act=False, **more):
    return {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": 32,
        "sym": sym,
        "desc_act": desc_act,
        "true_sequential": True,
        "lm_head": False,
    } | more


@dataclasses.dataclass(frozen=True)
class Quantised:
    case: Case
    config: dict
    encode: object  # (name, weight, random generator) -> (tensors, values)


TOKENWISE = weights(8, "int", "token", dynamic=True)
W4 = weights(4, "int", "group", group_size=32)
CASES = [
    Quantised(
        case_of("fp8-block", hidden=160, intermediate=192, heads=5, kv_heads=1),
        {
            "quant_method": "fp8",
            "fmt": "e4m3",
            "activation_scheme": "dynamic",
            "weight_block_size": [128, 128],
            "modules_to_not_convert": ["lm_head"],
        },
        lambda name, w, _: fp8_block(name, w),
    ),
    Quantised(
        case_of("fp8-block-bf16-scales"),
        {"quant_method": "fp8", "weight_block_size": [32, 32]},
        lambda name, w, _: fp8_block(name, w, 32, torch.bfloat16),
    ),
    Quantised(
        case_of("fp8-channel"),
        compressed("float-quantized", weights(8, "float", "channel"), TOKENWISE),
        lambda name, w, _: fp8_rows(name, w),
    ),
    Quantised(
        case_of("fp8-tensor"),
        {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["lm_head"]},
        lambda name, w, _: fp8_tensor(name, w),
    ),
    Quantised(
        case_of("w8a8"),
        compressed("int-quantized", weights(8, "int", "channel"), TOKENWISE),
        lambda name, w, _: int8_rows(name, w),
    ),
    Quantised(case_of("w4a16"), compressed("pack-quantized", W4), lambda n, w, _: packed(n, w)),
    Quantised(
        case_of("w4a16-zero-points"),
        compressed("pack-quantized", W4 | {"symmetric": False}),
        lambda name, w, _: packed(name, w, symmetric=False),
    ),
    Quantised(
        case_of("w4a16-act-order"),
        compressed("pack-quantized", W4 | {"actorder": "group"}),
        lambda name, w, random: packed(name, w, order=random),
    ),
    Quantised(
        case_of("w8a16"),
        compressed("pack-quantized", weights(8, "int", "channel")),
        lambda name, w, _: packed(name, w, bits=8, group=1 << 20),
    ),
    Quantised(
        case_of("mxfp4"),
        compressed("mxfp4-pack-quantized", weights(4, "float", "group", group_size=32)),
        lambda name, w, _: mxfp4(name, w),
    ),
    Quantised(
        case_of("nvfp4"),
        compressed("nvfp4-pack-quantized", weights(4, "float", "tensor_group", group_size=16)),
        lambda name, w, _: nvfp4(name, w),
    ),
    Quantised(
        case_of("awq"),
        {
            "quant_method": "awq",
            "bits": 4,
            "group_size": 32,
            "zero_point": True,
            "version": "gemm",
            "modules_to_not_convert": None,
        },
        lambda name, w, _: awq(name, w),
    ),
    Quantised(case_of("gptq"), gptq_config(), lambda name, w, _: gptq(name, w)),
    Quantised(
        case_of("gptq-zeros-v1"),
        gptq_config(sym=False, checkpoint_format="gptq"),
        lambda name, w, _: gptq(name, w, symmetric=False),
    ),
    Quantised(
        case_of("gptq-act-order-v2"),
        gptq_config(sym=False, desc_act=True, checkpoint_format="gptq_v2"),
        lambda name, w, random: gptq(name, w, symmetric=False, version=2, order=random),
    ),
    Quantised(
        case_of("gptq-8bit"),
        gptq_config(bits=8),
        lambda name, w, _: gptq(name, w, bits=8),
    ),
]


def make_case(quantised, folder):
    """Writes one checkpoint, and its reference beside it."""
    case = quantised.case
    checkpoint = folder / case.name
    shutil.rmtree(checkpoint, ignore_errors=True)
    write_checkpoint(case, checkpoint)
    tensors, plain = {}, {}
    for name, tensor in load_file(checkpoint / "model.safetensors").items():
        module = name.removesuffix(".weight")
        if module.endswith(LINEARS):
            random = drawn.generator(case.seed, "order " + name)
            made, plain[name] = quantised.encode(module, tensor, random)
            tensors |= {n: t.contiguous() for n, t in made.items()}
        else:
            tensors[name] = plain[name] = tensor
    with tempfile.TemporaryDirectory() as scratch:
        dense = pathlib.Path(scratch) / "dense"
        shutil.copytree(checkpoint, dense)
        save_file(plain, dense / "model.safetensors", metadata={"format": "pt"})
        ids = prompt_of(case)
        outputs = reference.run(reference.load_model(dense, torch.float32), ids)
    expected = {"prompt_ids": torch.tensor(ids), "logits": outputs["logits"].contiguous()}
    save_file(expected, folder / f"{case.name}.reference.safetensors")
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    (checkpoint / "generation_config.json").unlink()
    config = case.config | {"quantization_config": quantised.config}
    write_json(checkpoint / "config.json", config)


def make(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for quantised in CASES:
        make_case(quantised, folder)
        print(quantised.case.name, file=sys.stderr)
    write_json(folder / "manifest.json", {"cases": [q.case.name for q in CASES]})


def same(made, committed):
    if made.suffix == ".json":
        return json.loads(made.read_text()) == json.loads(committed.read_text())
    new, old = load_file(made), load_file(committed)
    return new.keys() == old.keys() and all(
        new[n].dtype == old[n].dtype
        and new[n].shape == old[n].shape
        and bool(torch.isclose(new[n].float(), old[n].float(), rtol=1e-5, atol=1e-6).all())
        for n in new
    )


def check():
    """Makes everything in a temporary folder and compares; returns the exit status."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        make(folder)
        made = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file()}
        committed = {p.relative_to(FOLDER) for p in FOLDER.rglob("*") if p.is_file()}
        complaints = [f"{p}: only on one side" for p in sorted(made ^ committed)]
        for path in sorted(made & committed):
            if not same(folder / path, FOLDER / path):
                complaints.append(f"{path} differs")
    print("\n".join(complaints) or f"{len(committed)} files are as made")
    return 1 if complaints else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; write nothing")
    arguments = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    if arguments.check:
        sys.exit(check())
    make(FOLDER)


if __name__ == "__main__":
    main()
