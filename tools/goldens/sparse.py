"""Mixtures of experts between their published names and those of transformers, which stacks the
experts of a layer."""

import re

import torch
from safetensors.torch import load_file

EXPERTS = re.compile(r"(.*\.mlp\.experts)\.(gate_up_proj|down_proj)$")


def published_shapes(shapes, config):
    """One tensor for each expert's projection; experts that compute nothing have none."""
    published = {}
    for name, shape in shapes.items():
        if not (match := EXPERTS.match(name)):
            published[name] = shape
            continue
        scope, kind = match.groups()
        count, rows, columns = shape
        for e in range(min(count, getattr(config, "n_routed_experts", count))):
            if kind == "down_proj":
                published[f"{scope}.{e}.down_proj.weight"] = (rows, columns)
            else:
                for part in ("gate_proj", "up_proj"):
                    published[f"{scope}.{e}.{part}.weight"] = (rows // 2, columns)
    return published


def is_left_out(name, config):
    """Whether transformers loads a model without using this tensor."""
    further = f"model.layers.{config.num_hidden_layers}."
    return name.endswith("rotary_emb.inv_freq") or name.startswith(further)


@torch.no_grad()
def load_by_hand(model, folder):
    """Fills the model, which from_pretrained cannot where some experts have no tensors; fails
    unless every tensor of the checkpoint but those of model.mtp was used."""
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        tensors |= load_file(path)
    for name, target in model.state_dict().items():
        match = EXPERTS.match(name)
        if not match:
            target.copy_(tensors.pop(name))
            continue
        scope, kind = match.groups()
        parts = ("down_proj",) if kind == "down_proj" else ("gate_proj", "up_proj")
        for e in range(len(target)):
            names = [f"{scope}.{e}.{part}.weight" for part in parts]
            if names[0] in tensors:
                target[e].copy_(torch.cat([tensors.pop(n) for n in names]))
    left = [name for name in tensors if not name.startswith("model.mtp.")]
    if left:
        raise RuntimeError(f"{folder}: {left} were not loaded")
    return model.eval()
