"""Writes a random checkpoint folder for a case: config, generation config and weights.

Weights are scaled uniform numbers (goldens/drawn.py). Norm weights are not ones and biases not
zeros, so leaving one out shows.
"""

import json

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from goldens import drawn, grown, hybrid, sparse

TORCH_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Deviations of matrices times the root of their fan-in, where it is not 1. The last two keep a tied
# model from predicting its own input.
GAINS = {"lm_head": 3.0, "q_proj": 1.5, "k_proj": 1.5, "o_proj": 2.0, "down_proj": 2.0}
GAINS["mlp.gate.weight"] = GAINS["block_sparse_moe.gate.weight"] = 2.0  # routers, not "gate_proj"


def width(deviation):
    """The largest of uniform numbers around 0 that have this deviation."""
    return deviation * 3**0.5


def spread_of(case, name, shape):
    """Center and width that fit a tensor's place: scores and logits spread by a few units."""
    if name.endswith("norm.weight"):
        return 1, width(0.3)
    if name.endswith(".bias"):
        return 0, width(0.4)
    if name.endswith(("embed_tokens.weight", "word_embeddings.weight")):
        return 0, width(case.embedding_deviation)
    if name.endswith(("inv_freq", "A_log", "dt_bias")):
        return 0, width(1.0)
    if name.endswith(("expert_bias", "score_correction_bias")):
        return 0, width(0.1)
    if "conv1d" in name:
        return 0, width(0.6)
    gain = next((gain for part, gain in GAINS.items() if part in name), 1.0)
    return 0, width(gain / shape[-1] ** 0.5)


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_shards(folder, tensors, shards):
    """Files of consecutive tensors and their index."""
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


def write_weights(case, shapes, folder):
    """The weights in one file or shards, and where they are not kept whole, their recipe."""
    spreads = {name: (shape, *spread_of(case, name, shape)) for name, shape in shapes.items()}
    recipe = drawn.recipe_of(case.seed, TORCH_DTYPES[case.dtype], spreads)
    tensors = grown.tensors_of(recipe)
    if case.shards > 1:
        write_shards(folder, {name: tensors[name] for name in shapes}, case.shards)
        return
    if not case.whole:
        (folder / "weights.txt").write_text(recipe)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


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
        shape = tuple(tensor.shape)
        tensor.copy_(drawn.numbers(case.seed, name, shape, *spread_of(case, name, shape)))
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
    write_weights(case, shapes | case.extra_tensors, folder)


def prompt_of(case):
    """The token ids of the case's prompt."""
    rng = drawn.generator(case.seed, "prompt")
    return rng.integers(0, case.config["vocab_size"], case.prompt_tokens).tolist()
