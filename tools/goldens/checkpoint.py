"""Writes a random checkpoint folder for a case: config, generation config and weights.

Weights are scaled uniform numbers from numpy's PCG64, so the bytes are the same on every machine
(a normal distribution would pass through the machine's own log and exp). Norm weights are not ones
and biases not zeros, so leaving one out shows.
"""

import json
import zlib

import numpy
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from goldens import grown, hybrid, sparse

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Deviations of matrices times the root of their fan-in, where it is not 1. The last two keep a tied
# model from predicting its own input.
GAINS = {"lm_head": 3.0, "q_proj": 1.5, "k_proj": 1.5, "o_proj": 2.0, "down_proj": 2.0}
GAINS["mlp.gate.weight"] = GAINS["block_sparse_moe.gate.weight"] = 2.0  # routers, not "gate_proj"


def generator(case, purpose):
    """A random generator for one purpose of one case, independent of all others."""
    return numpy.random.default_rng([case.seed, zlib.crc32(purpose.encode())])


def uniform(rng, shape, deviation):
    unit = rng.random(size=shape, dtype=numpy.float32) * numpy.float32(2) - numpy.float32(1)
    return torch.from_numpy(unit * numpy.float32(deviation * 3**0.5))


def random_weight(case, name, shape):
    """A tensor of a scale that fits its place: scores and logits spread by a few units."""
    rng = generator(case, name)
    if name.endswith("norm.weight"):
        return 1 + uniform(rng, shape, 0.3)
    if name.endswith(".bias"):
        return uniform(rng, shape, 0.4)
    if name.endswith(("embed_tokens.weight", "word_embeddings.weight")):
        return uniform(rng, shape, case.embedding_deviation)
    if name.endswith(("inv_freq", "A_log", "dt_bias")):
        return uniform(rng, shape, 1.0)
    if name.endswith(("expert_bias", "score_correction_bias")):
        return uniform(rng, shape, 0.1)
    if "conv1d" in name:
        return uniform(rng, shape, 0.6)
    gain = next((gain for part, gain in GAINS.items() if part in name), 1.0)
    return uniform(rng, shape, gain / shape[-1] ** 0.5)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_weights(folder, tensors, shards):
    """One model.safetensors, or `shards` files of consecutive tensors and their index."""
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = names[len(names) * shard // shards : len(names) * (shard + 1) // shards]
        save_file({n: tensors[n] for n in part}, folder / file, metadata={"format": "pt"})
        weight_map |= {n: file for n in part}
    total_size = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map}
    write_json(folder / "model.safetensors.index.json", index)


def own_shapes(folder):
    """What the transformers model of the config calls its tensors."""
    config = AutoConfig.from_pretrained(folder)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    if config.tie_word_embeddings:
        del shapes["lm_head.weight"]
    return sparse.published_shapes(shapes, config)


@torch.no_grad()
def save_model(case, folder):
    """Has transformers save a model of the case, all of whose tensors are random."""
    config = AutoConfig.for_model(**case.config)
    model = AutoModelForCausalLM.from_config(config, dtype=TORCH_DTYPES[case.dtype])
    for name, tensor in model.state_dict().items():
        tensor.copy_(random_weight(case, name, tuple(tensor.shape)))
    model.save_pretrained(folder)


def write_checkpoint(case, folder):
    """Writes the folder; names and shapes are those of the published checkpoints."""
    folder.mkdir(parents=True)
    if case.saved:
        save_model(case, folder)
        write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": case.eos})
        return
    write_json(folder / "config.json", case.config)
    write_json(folder / "generation_config.json", {"bos_token_id": 1, "eos_token_id": case.eos})
    if case.grown:
        grown.write_weights(case, folder)
        return
    shapes = hybrid.shapes_of(case.config) if hybrid.knows(case.config) else own_shapes(folder)
    shapes |= case.extra_tensors
    dtype = TORCH_DTYPES[case.dtype]
    write_weights(
        folder, {n: random_weight(case, n, s).to(dtype) for n, s in shapes.items()}, case.shards
    )


def prompt_of(case):
    """The token ids of the case's prompt."""
    rng = generator(case, "prompt")
    return rng.integers(0, case.config["vocab_size"], case.prompt_tokens).tolist()
