"""Checkpoints that are kept as a recipe: `weights.txt` has a line for each tensor,

    DTYPE SHAPE CENTER STEP NAME

after a first line with the seed. Element i of a tensor is CENTER + n STEP, where n follows from a
hash of seed, name and i; of U8 it is CENTER + n mod STEP. STEP has 8 bits, so its product with n
is exact and the sum is rounded once. tests/support/models/grown_checkpoint.cpp makes the same
bytes.
"""

import tempfile
from pathlib import Path

import numpy
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, Mistral4Config, Mistral4ForCausalLM
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)

from goldens import drawn

# transformers knows it as a part of Mistral3ForConditionalGeneration alone.
AutoModelForCausalLM.register(Mistral4Config, Mistral4ForCausalLM, exist_ok=True)

# The text model alone has the published names as well, without the two prefixes that come first.
register_checkpoint_conversion_mapping(
    "minimax_m3_vl_text", get_checkpoint_conversion_mapping("minimax_m3_vl")[2:]
)

MXFP4 = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
BLOCK = 32


def words(seed, name, count):
    """`count` words of 64 bits."""
    hashed = 0xCBF29CE484222325
    for byte in f"{seed}/{name}".encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    with numpy.errstate(over="ignore"):
        index = numpy.arange(1, count + 1, dtype=numpy.uint64)
        z = numpy.uint64(hashed) + index * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
        return z ^ z >> numpy.uint64(31)


def eight_bits(value):
    """`value` rounded to 8 bits."""
    mantissa, exponent = numpy.frexp(value)
    return float(numpy.ldexp(numpy.round(mantissa * 256) / 256, exponent))


def tensor_of(seed, line):
    """The name and the tensor of a recipe's line."""
    dtype, shape, center, step, name = line.split(" ")
    shape = [int(extent) for extent in shape.split("x")]
    numbers = (words(seed, name, int(numpy.prod(shape))) >> numpy.uint64(48)).astype(numpy.int64)
    if dtype == "U8":
        values = (int(center) + numbers % int(step)).astype(numpy.uint8)
        return name, torch.from_numpy(values).reshape(shape)
    product = (numbers - 32768).astype(numpy.float32) * numpy.float32(float(step))
    values = torch.from_numpy(numpy.float32(float(center)) + product).reshape(shape)
    return name, values.to({"F32": torch.float32, "BF16": torch.bfloat16}[dtype])


def tensors_of(recipe):
    """The tensors of a recipe of this kind or of goldens/drawn.py."""
    seed, *lines = recipe.splitlines()
    if seed.startswith("numpy "):
        return dict(drawn.tensor_of(int(seed[6:]), line) for line in lines)
    return dict(tensor_of(seed, line) for line in lines)


def spread(case, name, shape):
    """Center and deviation that fit a tensor's place."""
    if name.endswith("linear_attn.norm.weight"):
        return 1, 0.3
    if name.endswith(("norm.weight", "norm_1.weight", "norm_2.weight")):
        return case.norm_center, 0.3
    if name.endswith(("score_correction_bias", "expert_bias")):
        return 0, 0.1
    if name.endswith((".bias", "_bias")):
        return 0, 0.4
    if name.endswith(("router.scale", "per_expert_scale", "layer_scalar")):
        return 1, 0.3
    if name.endswith(("embed_tokens.weight", "embed_tokens_per_layer.weight")):
        return 0, case.embedding_deviation
    if name.endswith("sinks"):
        return 0, 1.5
    gains = {"lm_head": 3.0, "q_proj": 1.5, "k_proj": 1.5, "qkv_proj": 1.5, "o_proj": 2.0}
    gains |= {"gate.weight": 2.0, "router.weight": 2.0, "down_proj": 2.0, ".w2.": 2.0}
    gains |= {"router.proj": 12.0}  # of a row that is divided by the root of its width
    gain = next((gain for part, gain in gains.items() if part in name), 1.0)
    columns = shape[-2] if case.transposed and len(shape) == 3 else shape[-1]
    return 0, gain / columns**0.5


def published_shapes(case):
    """What transformers' own save_pretrained calls the tensors of the case."""
    config = AutoConfig.for_model(**case.config)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        with safe_open(Path(folder) / "model.safetensors", "pt") as file:
            return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}


def recipe_of(case):
    lines = [str(case.seed)]
    shapes = published_shapes(case) | case.extra_tensors
    for name, shape in sorted(shapes.items()):
        if case.mxfp4 and len(shape) == 3:
            experts, columns, rows = shape
            groups = f"{experts}x{rows}x{columns // BLOCK}"
            lines += [f"U8 {groups}x16 0 256 {name}_blocks", f"U8 {groups} 121 3 {name}_scales"]
            continue
        center, deviation = spread(case, name, shape)
        step = eight_bits(deviation * 3**0.5 / 32768)
        dtype = {"float32": "F32", "bfloat16": "BF16"}[case.dtype]
        lines.append(f"{dtype} {'x'.join(map(str, shape))} {center} {step!r} {name}")
    return "\n".join(lines) + "\n"


def plain(tensors):
    """With the matrices that stand for blocks and scales, [experts, columns, rows]."""
    result = {}
    table = torch.tensor(MXFP4)
    for name, tensor in tensors.items():
        if name.endswith("_scales"):
            continue
        if not name.endswith("_blocks"):
            result[name] = tensor
            continue
        codes = torch.stack([tensor & 15, tensor >> 4], -1).flatten(-2).long()
        scales = torch.exp2(tensors[name[:-7] + "_scales"].float() - 127)
        result[name[:-7]] = (table[codes] * scales[..., None]).flatten(-2).mT.contiguous()
    return result


def write_weights(case, folder):
    """The recipe, and for the reference a file of the plain weights."""
    recipe = recipe_of(case)
    (folder / "weights.txt").write_text(recipe)
    save_file(plain(tensors_of(recipe)), folder / "model.safetensors", metadata={"format": "pt"})
