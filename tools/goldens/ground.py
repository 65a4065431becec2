"""The four families of decoder in float64, written from their formulas and not from transformers.

Two uses: it shows how far the float32 reference is from the truth, which is the least error that
anyone can ask of a port; and a disagreement means that the formula or a config default was
misread by one of the two.
"""

import json
import math

import torch
from safetensors.torch import load_file


def load_tensors(folder):
    """Every tensor of the folder as float64."""
    tensors = {}
    for path in sorted(folder.glob("model*.safetensors")):
        tensors |= load_file(path)
    return {name: tensor.double() for name, tensor in tensors.items()}


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def linear(tensors, name, x):
    y = x @ tensors[name + ".weight"].T
    return y + tensors[name + ".bias"] if name + ".bias" in tensors else y


def llama3_frequencies(f, rope, original):
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    turns = original * f / (2 * math.pi)  # in the original context
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * f / rope["factor"] + smooth * f


def yarn_frequencies(f, rope, original, theta):
    d = 2 * len(f)

    def index_of(turns):
        return d * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low, high = index_of(rope.get("beta_fast", 32)), index_of(rope.get("beta_slow", 1))
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, d - 1)
    ramp = ((torch.arange(len(f)).double() - low) / (high - low)).clamp(0, 1)

    def mscale(weight):
        return 0.1 * weight * math.log(rope["factor"]) + 1

    scale = mscale(1)
    if rope.get("mscale") and rope.get("mscale_all_dim"):
        scale = mscale(rope["mscale"]) / mscale(rope["mscale_all_dim"])
    scale = rope.get("attention_factor", scale)
    return f / rope["factor"] * ramp + f * (1 - ramp), scale


def rope_of(config, head_dim):
    """Inverse frequencies [head_dim / 2] and the factor on cos and sin."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10000.0))
    kind = rope.get("rope_type", rope.get("type", "default"))
    f = theta ** -(torch.arange(0, head_dim, 2).double() / head_dim)
    original = rope.get("original_max_position_embeddings", config["max_position_embeddings"])
    match kind:
        case "default":
            return f, 1.0
        case "linear":
            return f / rope["factor"], 1.0
        case "llama3":
            return llama3_frequencies(f, rope, original), 1.0
        case "yarn":
            return yarn_frequencies(f, rope, original, theta)
    raise ValueError(f"rope type {kind}")


def rotate(x, config):
    """x [heads, T, head_dim]: pairs (i, i + head_dim / 2) turned by position times frequency."""
    f, scale = rope_of(config, x.shape[-1])
    angle = torch.arange(x.shape[1]).double()[:, None] * f
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos() * scale, angle.sin() * scale
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def window_of(config, layer):
    """How many keys, its own included, a query of the layer sees; None for all before it."""
    if config["model_type"] == "mistral":
        return config.get("sliding_window", 4096)
    if not config.get("use_sliding_window", False):
        return None
    kinds = config.get("layer_types")
    slides = kinds[layer] == "sliding_attention" if kinds else layer >= config["max_window_layers"]
    return config["sliding_window"] if slides else None


def attention(tensors, config, layer, x):
    scope = f"model.layers.{layer}.self_attn."
    heads = config["num_attention_heads"]
    default_heads = {"mistral": 8, "llama": heads}.get(config["model_type"], 32)
    kv_heads = config.get("num_key_value_heads", default_heads)
    q, k, v = (
        linear(tensors, scope + name, x).unflatten(-1, (count, -1)).transpose(0, 1)
        for name, count in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads))
    )
    if scope + "q_norm.weight" in tensors:
        eps = config["rms_norm_eps"]
        q = rms_norm(q, tensors[scope + "q_norm.weight"], eps)
        k = rms_norm(k, tensors[scope + "k_norm.weight"], eps)
    q, k = rotate(q, config), rotate(k, config)
    group = heads // kv_heads
    scores = q @ k.repeat_interleave(group, 0).transpose(1, 2) / q.shape[-1] ** 0.5
    position = torch.arange(len(x))
    distance = position[:, None] - position
    window = window_of(config, layer) or len(x)
    scores = scores.masked_fill((distance < 0) | (distance >= window), -math.inf)
    mixed = scores.softmax(-1) @ v.repeat_interleave(group, 0)
    return linear(tensors, scope + "o_proj", mixed.transpose(0, 1).flatten(1))


def run(folder, ids):
    """The tensors of reference.run, in float64."""
    config = json.loads((folder / "config.json").read_text())
    tensors = load_tensors(folder)
    eps = config.get("rms_norm_eps", 1e-6)
    x = tensors["model.embed_tokens.weight"][torch.tensor(ids)]
    stream = [x]
    for layer in range(config["num_hidden_layers"]):
        scope = f"model.layers.{layer}."
        normed = rms_norm(x, tensors[scope + "input_layernorm.weight"], eps)
        x = x + attention(tensors, config, layer, normed)
        normed = rms_norm(x, tensors[scope + "post_attention_layernorm.weight"], eps)
        gate = torch.nn.functional.silu(linear(tensors, scope + "mlp.gate_proj", normed))
        inner = gate * linear(tensors, scope + "mlp.up_proj", normed)
        x = x + linear(tensors, scope + "mlp.down_proj", inner)
        stream.append(x)
    final = rms_norm(x, tensors["model.norm.weight"], eps)
    head = tensors.get("lm_head.weight", tensors["model.embed_tokens.weight"])
    return {"hidden": torch.stack(stream), "final": final, "logits": final @ head.T}
