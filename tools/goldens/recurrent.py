"""Mixers with a state of fixed size, in float64, from their formulas: a plain scan over positions.

Kimi Delta Attention as in flash-linear-attention's naive recurrence (arXiv:2510.26692, equation 1),
lightning attention with one decay per head (arXiv:2401.04658).
"""

import math

import torch
from torch.nn.functional import silu, softplus


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def short_convolution(x, weight):
    """silu of a causal depthwise convolution; x [T, C], weight [C, 1, taps], last tap newest."""
    taps = weight.shape[-1]
    padded = torch.cat([x.new_zeros(taps - 1, x.shape[1]), x])
    return silu(sum(padded[j : j + len(x)] * weight[:, 0, j] for j in range(taps)))


def unit(x):
    return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()


def delta_rule(q, k, v, log_decay, beta):
    """q, k, v, log_decay [T, heads, dim], beta [T, heads] -> [T, heads, dim]."""
    state = q.new_zeros(q.shape[1], q.shape[2], v.shape[2])
    out = []
    for t in range(len(q)):
        state = state * log_decay[t].exp()[..., None]
        error = v[t] - torch.einsum("hkv,hk->hv", state, k[t])
        state = state + torch.einsum("hk,hv->hkv", k[t], beta[t][:, None] * error)
        out.append(torch.einsum("hkv,hk->hv", state, q[t]) * q.shape[2] ** -0.5)
    return torch.stack(out)


def kda(tensors, scope, x, heads, lower_bound, eps):
    """The layer below `scope`, which ends in a dot; lower_bound None is the softplus law."""

    def project(name, y):
        return y @ tensors[f"{scope}{name}.weight"].T

    def gate(kind):
        if f"{scope}{kind}_proj.weight" in tensors:
            return project(f"{kind}_proj", x)
        return project(f"{kind}_b_proj", project(f"{kind}_a_proj", x))

    q, k, v = (
        short_convolution(project(f"{n}_proj", x), tensors[f"{scope}{n}_conv1d.weight"]).unflatten(
            -1, (heads, -1)
        )
        for n in "qkv"
    )
    z = (gate("f") + tensors[f"{scope}dt_bias"]).unflatten(-1, (heads, -1))
    rate = tensors[f"{scope}A_log"].exp().reshape(heads, 1)
    law = -rate * softplus(z) if lower_bound is None else lower_bound * torch.sigmoid(rate * z)
    out = delta_rule(unit(q), unit(k), v, law, torch.sigmoid(project("b_proj", x)))
    out = rms_norm(out, tensors[f"{scope}o_norm.weight"], eps).flatten(1)
    return project("o_proj", out * torch.sigmoid(gate("g")))


def lightning_slopes(heads):
    below = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / below) for i in range(below)]
    between = [2 ** (-8 * (i + 1) / (2 * below)) for i in range(0, 2 * below, 2)]
    return slopes + between[: heads - below]


def linear_attention(q, k, v, log_decay):
    """q, k, v [T, heads, dim], log_decay [heads] -> [T, heads, dim]."""
    state = q.new_zeros(q.shape[1], q.shape[2], v.shape[2])
    out = []
    for t in range(len(q)):
        state = state * log_decay.exp()[:, None, None] + torch.einsum("hk,hv->hkv", k[t], v[t])
        out.append(torch.einsum("hkv,hk->hv", state, q[t]) * q.shape[2] ** -0.5)
    return torch.stack(out)


def lightning(tensors, scope, x, config, layer, rotate):
    """The layer below `scope`; rotate(x [T, heads, dim]) turns part of each head."""
    heads, eps = config["num_attention_heads"], config["rms_norm_eps"]
    qkv = (x @ tensors[f"{scope}query_key_value.weight"].T).unflatten(-1, (3, heads, -1))
    if config.get("linear_silu", False):
        qkv = silu(qkv)
    q, k, v = qkv.unbind(1)
    q = rotate(rms_norm(q, tensors[f"{scope}query_layernorm.weight"], eps))
    k = rotate(rms_norm(k, tensors[f"{scope}key_layernorm.weight"], eps))
    depth = 1 - (layer - 1) / (config["num_hidden_layers"] - 1) + 1e-5
    out = linear_attention(q, k, v, -torch.tensor(lightning_slopes(heads)).double() * depth)
    groups = out.flatten(1).unflatten(-1, (config["group_norm_size"], -1))
    weight = tensors[f"{scope}g_norm.weight"].unflatten(0, (config["group_norm_size"], -1))
    normed = rms_norm(groups, weight, eps).flatten(1)
    gate = torch.sigmoid(x @ tensors[f"{scope}g_proj.weight"].T)
    return (normed * gate) @ tensors[f"{scope}dense.weight"].T
