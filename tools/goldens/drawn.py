"""Checkpoints whose weights are scaled uniform numbers from numpy's PCG64, as a recipe:
`weights.txt` has a line for each tensor,

    DTYPE SHAPE CENTER WIDTH NAME

after a first line `numpy SEED`. An element is CENTER + (2 u - 1) WIDTH, each step in float32, then
rounded to DTYPE; u are the numbers of default_rng([SEED, crc32 of NAME]). A normal distribution
would pass through the machine's own log and exp; these are the same bytes on every machine, and
tests/support/numpy_random.cpp makes them too.
"""

import zlib

import numpy
import torch

DTYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def generator(seed, purpose):
    """A random generator for one purpose of one case, independent of all others."""
    return numpy.random.default_rng([seed, zlib.crc32(purpose.encode())])


def numbers(seed, name, shape, center, width):
    """The tensor `name` in float32."""
    unit = generator(seed, name).random(size=shape, dtype=numpy.float32)
    scaled = (unit * numpy.float32(2) - numpy.float32(1)) * numpy.float32(width)
    return torch.from_numpy(numpy.float32(center) + scaled)


def tensor_of(seed, line):
    """The name and the tensor of a recipe's line."""
    dtype, shape, center, width, name = line.split(" ")
    shape = [int(extent) for extent in shape.split("x")]
    return name, numbers(seed, name, shape, float(center), float(width)).to(DTYPES[dtype])


def recipe_of(seed, dtype, spreads):
    """The recipe of tensors of one dtype; `spreads` maps name -> shape, center, width."""
    lines = [f"numpy {seed}"]
    for name, (shape, center, width) in sorted(spreads.items()):
        extents = "x".join(map(str, shape))
        lines.append(f"{NAMES[dtype]} {extents} {center} {numpy.float32(width)!s} {name}")
    return "\n".join(lines) + "\n"
