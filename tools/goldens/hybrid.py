"""Kimi-Linear and the Ling line (3, 2.5 and 2.0) in float64, from their formulas, with the names
and shapes of their published checkpoints."""

import json
import math
from types import SimpleNamespace

import torch
from torch.nn.functional import silu

from goldens import recurrent
from goldens.ground import load_tensors, rms_norm, rope_of

ARCHITECTURES = (
    "KimiLinearForCausalLM",
    "BailingMoeV3ForCausalLM",
    "BailingMoeV2_5ForCausalLM",
    "BailingMoeV2ForCausalLM",
)
INNER_EPS = 1e-6  # of MLA's inner norms, whatever rms_norm_eps says


def knows(config):
    return config["architectures"][0] in ARCHITECTURES


class Family:
    """What differs between them: names, layer types, a few switches."""

    def __init__(self, config):
        self.config = config
        self.kimi = config["architectures"][0] == "KimiLinearForCausalLM"
        self.lightning = config["architectures"][0] == "BailingMoeV2_5ForCausalLM"
        self.gqa = config["architectures"][0] == "BailingMoeV2ForCausalLM"
        self.attention = "self_attn" if self.kimi else "attention"
        self.embedding = "model.embed_tokens" if self.kimi else "model.word_embeddings"
        self.moe = "block_sparse_moe" if self.kimi else "mlp"
        self.expert = ("w1", "w3", "w2") if self.kimi else ("gate_proj", "up_proj", "down_proj")
        self.bias = "gate.e_score_correction_bias" if self.kimi else "gate.expert_bias"
        self.mla_output = "o_proj" if self.kimi else "dense"

    def get(self, *names, default=None):
        return next((self.config[n] for n in names if self.config.get(n) is not None), default)

    def is_mla(self, layer):
        if self.gqa:
            return False
        if self.kimi:
            return layer + 1 in self.config["linear_attn_config"]["full_attn_layers"]
        size, layers = self.config["layer_group_size"], self.config["num_hidden_layers"]
        return (layer + 1) % size == 0 or layer >= layers // size * size

    def is_dense(self, layer):
        return layer < self.config["first_k_dense_replace"]

    def kda(self):
        """Heads, their dimension, taps and the lower bound of KDA layers."""
        if self.kimi:
            c = self.config["linear_attn_config"]
            return c["num_heads"], c["head_dim"], c["short_conv_kernel_size"], None
        bound = self.config["kda_lower_bound"] if self.config["kda_safe_gate"] else None
        return (
            self.config["num_attention_heads"],
            self.config["head_dim"],
            self.config["short_conv_kernel_size"],
            bound,
        )


def mixer_shapes(family, layer):
    c, hidden = family.config, family.config["hidden_size"]
    heads = c["num_attention_heads"]
    if family.is_mla(layer):
        nope, rope, rank = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["kv_lora_rank"]
        shapes = {}
        if q_rank := c.get("q_lora_rank"):
            shapes |= {
                "q_a_proj.weight": (q_rank, hidden),
                "q_a_layernorm.weight": (q_rank,),
                "q_b_proj.weight": (heads * (nope + rope), q_rank),
            }
        else:
            shapes["q_proj.weight"] = (heads * (nope + rope), hidden)
        shapes |= {
            "kv_a_proj_with_mqa.weight": (rank + rope, hidden),
            "kv_a_layernorm.weight": (rank,),
            "kv_b_proj.weight": (heads * (nope + c["v_head_dim"]), rank),
            f"{family.mla_output}.weight": (hidden, heads * c["v_head_dim"]),
        }
        granularity = c.get("gated_attention_proj_granularity_type")
        if granularity:
            rows = heads * (1 if granularity == "head_wise" else c["v_head_dim"])
            shapes["g_proj.weight"] = (rows, hidden)
        return shapes
    if family.gqa:
        dim, rows = c["head_dim"], heads + 2 * c["num_key_value_heads"]
        return {
            "query_key_value.weight": (rows * dim, hidden),
            "query_layernorm.weight": (dim,),
            "key_layernorm.weight": (dim,),
            "dense.weight": (hidden, heads * dim),
        }
    if family.lightning:
        width = heads * c["head_dim"]
        return {
            "query_key_value.weight": (3 * width, hidden),
            "query_layernorm.weight": (c["head_dim"],),
            "key_layernorm.weight": (c["head_dim"],),
            "g_proj.weight": (width, hidden),
            "g_norm.weight": (width,),
            "dense.weight": (hidden, width),
        }
    heads, dim, taps, _ = family.kda()
    width = heads * dim
    shapes = {f"{n}_proj.weight": (width, hidden) for n in "qkv"}
    shapes |= {f"{n}_conv1d.weight": (width, 1, taps) for n in "qkv"}
    for n in "fg":
        if family.kimi:
            shapes |= {f"{n}_a_proj.weight": (dim, hidden), f"{n}_b_proj.weight": (width, dim)}
        else:
            shapes[f"{n}_proj.weight"] = (width, hidden)
    return shapes | {
        "b_proj.weight": (heads, hidden),
        "A_log": (1, 1, heads, 1) if family.kimi else (heads,),
        "dt_bias": (width,),
        "o_norm.weight": (dim,),
        "o_proj.weight": (hidden, width),
    }


def mlp_shapes(names, hidden, inner):
    gate, up, down = (f"{n}.weight" for n in names)
    return {gate: (inner, hidden), up: (inner, hidden), down: (hidden, inner)}


def ffn_shapes(family, layer):
    """Below the layer's scope."""
    c, hidden = family.config, family.config["hidden_size"]
    plain = ("gate_proj", "up_proj", "down_proj")
    if family.is_dense(layer):
        shapes = mlp_shapes(plain, hidden, c["intermediate_size"])
        return {f"mlp.{name}": shape for name, shape in shapes.items()}
    inner, experts = c["moe_intermediate_size"], c["num_experts"]
    shared = c.get("moe_shared_expert_intermediate_size", inner) * c["num_shared_experts"]
    shapes = {"gate.weight": (experts, hidden), family.bias: (experts,)}
    for e in range(experts):
        for name, shape in mlp_shapes(family.expert, hidden, inner).items():
            shapes[f"experts.{e}.{name}"] = shape
    for name, shape in mlp_shapes(plain, hidden, shared).items():
        shapes[f"shared_experts.{name}"] = shape
    return {f"{family.moe}.{name}": shape for name, shape in shapes.items()}


def shapes_of(config):
    """Every tensor that a model of this config has, by name."""
    family, hidden = Family(config), config["hidden_size"]
    shapes = {f"{family.embedding}.weight": (config["vocab_size"], hidden)}
    for layer in range(config["num_hidden_layers"]):
        scope = f"model.layers.{layer}."
        shapes[f"{scope}input_layernorm.weight"] = (hidden,)
        shapes[f"{scope}post_attention_layernorm.weight"] = (hidden,)
        for name, shape in mixer_shapes(family, layer).items():
            shapes[f"{scope}{family.attention}.{name}"] = shape
        for name, shape in ffn_shapes(family, layer).items():
            shapes[f"{scope}{name}"] = shape
    head = (config["vocab_size"], hidden)
    return shapes | {"model.norm.weight": (hidden,), "lm_head.weight": head}


def yarn_mscale(rope):
    """The factor on MLA's scores that a YaRN config asks for."""
    all_dims = rope.get("mscale_all_dim", 0)
    return (0.1 * all_dims * math.log(rope["factor"]) + 1) ** 2 if all_dims else 1.0


def rotate_pairs(x, config):
    """x [heads, T, dim]: pairs (2i, 2i + 1) turned by position times frequency i."""
    f, scale = rope_of(config, x.shape[-1])
    angle = torch.arange(x.shape[1]).double()[:, None] * f
    a, b = x[..., 0::2], x[..., 1::2]
    cos, sin = angle.cos() * scale, angle.sin() * scale
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)


def mla(family, tensors, scope, x):
    c = family.config
    heads, nope, rope = c["num_attention_heads"], c["qk_nope_head_dim"], c["qk_rope_head_dim"]

    def weight(name):
        return tensors[f"{scope}{name}.weight"]

    if c.get("q_lora_rank"):
        q = rms_norm(x @ weight("q_a_proj").T, weight("q_a_layernorm"), INNER_EPS)
        q = q @ weight("q_b_proj").T
    else:
        q = x @ weight("q_proj").T
    q = q.unflatten(-1, (heads, -1)).transpose(0, 1)
    latent, k_rope = (x @ weight("kv_a_proj_with_mqa").T).split([c["kv_lora_rank"], rope], -1)
    latent = rms_norm(latent, weight("kv_a_layernorm"), INNER_EPS)
    kv = (latent @ weight("kv_b_proj").T).unflatten(-1, (heads, -1)).transpose(0, 1)
    q_rope, k_rope = q[..., nope:], k_rope[None]
    if not c.get("mla_use_nope", False):
        q_rope, k_rope = rotate_pairs(q_rope, c), rotate_pairs(k_rope, c)
    scores = q[..., :nope] @ kv[..., :nope].transpose(1, 2) + q_rope @ k_rope.transpose(1, 2)
    scores = scores * (nope + rope) ** -0.5 * yarn_mscale(c.get("rope_scaling") or {})
    ahead = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    mixed = scores.masked_fill(ahead, -math.inf).softmax(-1) @ kv[..., nope:]
    mixed = mixed.transpose(0, 1)
    if c.get("gated_attention_proj_granularity_type"):
        mixed = mixed * torch.sigmoid(x @ weight("g_proj").T).unflatten(-1, (heads, -1))
    return mixed.flatten(1) @ weight(family.mla_output).T


def gated_mlp(tensors, scope, names, x, limit=0):
    gate, up, down = (tensors[f"{scope}{n}.weight"] for n in names)
    a, b = silu(x @ gate.T), x @ up.T
    if limit:
        a, b = a.clamp(max=limit), b.clamp(-limit, limit)
    return (a * b) @ down.T


def route(family, tensors, scope, x):
    """Chosen experts and their weights, [T, top_k], and the least margin of any choice."""
    c = family.config
    top_k = family.get("num_experts_per_tok", "num_experts_per_token")
    groups = family.get("n_group", "num_expert_group", default=1)
    scores = torch.sigmoid(x @ tensors[f"{scope}gate.weight"].T)
    choice = scores + tensors[f"{scope}{family.bias}"]
    grouped = choice.unflatten(-1, (groups, -1))
    ranked, order = grouped.topk(2, -1).values.sum(-1).sort(-1, descending=True)
    kept = c["topk_group"]
    margin = float((ranked[:, kept - 1] - ranked[:, kept]).min()) if kept < groups else math.inf
    mask = torch.ones_like(grouped, dtype=torch.bool)
    mask.scatter_(1, order[:, :kept, None].expand(-1, -1, grouped.shape[-1]), False)
    best = choice.masked_fill(mask.flatten(1), -math.inf).topk(top_k + 1, -1)
    margin = min(margin, float((best.values[:, top_k - 1] - best.values[:, top_k]).min()))
    ids = best.indices[:, :top_k]
    weights = scores.gather(1, ids)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * c["routed_scaling_factor"]
    return ids, weights, margin


def ffn(family, tensors, layer, x):
    """-> the output and the router's least margin."""
    c, scope = family.config, f"model.layers.{layer}."
    plain = ("gate_proj", "up_proj", "down_proj")
    if family.is_dense(layer):
        return gated_mlp(tensors, f"{scope}mlp.", plain, x), math.inf

    def limit(key):
        limits = c.get(key) or []
        return limits[layer] if layer < len(limits) else 0

    scope = f"{scope}{family.moe}."
    ids, weights, margin = route(family, tensors, scope, x)
    out = gated_mlp(
        tensors, f"{scope}shared_experts.", plain, x, limit("share_expert_swiglu_limit_list")
    )
    for e in range(c["num_experts"]):
        share = (weights * (ids == e)).sum(-1, keepdim=True)
        expert = gated_mlp(
            tensors, f"{scope}experts.{e}.", family.expert, x, limit("expert_swiglu_limit_list")
        )
        out = out + share * expert
    return out, margin


def rotate_part(x, config):
    """x [T, heads, dim]: the first part of each head turned in halves."""
    width = int(x.shape[-1] * config["partial_rotary_factor"])
    f, scale = rope_of(config, width)
    angle = (torch.arange(len(x)).double()[:, None] * f)[:, None]
    a, b = x[..., :width].chunk(2, -1)
    cos, sin = angle.cos() * scale, angle.sin() * scale
    return torch.cat([a * cos - b * sin, b * cos + a * sin, x[..., width:]], -1)


def moba_block(config, layer):
    """Tokens of a block of keys in this layer; 0 where it attends to all."""
    if "moba_block_size" not in config:
        return 0
    frequency = config["moba_layer_freq"]
    if isinstance(frequency, int):
        sparse = (layer + 1) % frequency != 0
    else:
        sparse = frequency[layer] != 0
    return config["moba_block_size"] if sparse else 0


def unselected(q, k, block, top_k, group):
    """[kv_heads, rows, keys]: which keys are in no block that the row's queries chose, of q
    [rows, heads, dim] and k [keys, kv_heads, dim]. Lu et al. 2025 (arXiv:2502.13189), with one
    choice for the heads of a group: by the mean of their queries and the means of the keys."""
    rows, kv_heads = len(q), k.shape[1]
    mask = torch.ones(kv_heads, rows, rows, dtype=torch.bool)
    mean_q = q.unflatten(1, (kv_heads, group)).mean(2)
    for head in range(kv_heads):
        for t in range(rows):
            own = t // block
            means = [k[b * block : (b + 1) * block, head].mean(0) for b in range(own)]
            scores = [float(mean_q[t, head] @ mean) for mean in means]
            best = sorted(range(own), key=lambda b, s=scores: (-s[b], b))[: top_k - 1]
            for b in [*best, own]:
                mask[head, t, b * block : (b + 1) * block] = False
    return mask


def gqa(tensors, scope, x, config, block):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    qkv = (x @ tensors[f"{scope}query_key_value.weight"].T).unflatten(-1, (-1, config["head_dim"]))
    q, k, v = qkv.split([heads, kv_heads, kv_heads], 1)
    eps = config["rms_norm_eps"]
    q = rotate_part(rms_norm(q, tensors[f"{scope}query_layernorm.weight"], eps), config)
    k = rotate_part(rms_norm(k, tensors[f"{scope}key_layernorm.weight"], eps), config)
    group = heads // kv_heads
    ahead = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    if block > 0:
        unseen = unselected(q, k, block, config["moba_topk"], group)
        ahead = ahead | unseen.repeat_interleave(group, 0)
    k, v = (y.repeat_interleave(group, 1).transpose(0, 1) for y in (k, v))
    scores = q.transpose(0, 1) @ k.transpose(1, 2) * config["head_dim"] ** -0.5
    mixed = scores.masked_fill(ahead, -math.inf).softmax(-1) @ v
    return mixed.transpose(0, 1).flatten(1) @ tensors[f"{scope}dense.weight"].T


def mixer(family, tensors, layer, x):
    c, scope = family.config, f"model.layers.{layer}.{family.attention}."
    if family.is_mla(layer):
        return mla(family, tensors, scope, x)
    if family.gqa:
        return gqa(tensors, scope, x, c, moba_block(c, layer))
    if family.lightning:
        return recurrent.lightning(tensors, scope, x, c, layer, lambda y: rotate_part(y, c))
    heads, _, _, bound = family.kda()
    return recurrent.kda(tensors, scope, x, heads, bound, c["rms_norm_eps"])


def run(folder, ids):
    """The tensors of reference.run, in float64, and the least margin of any router's choice."""
    return run_tensors(folder, load_tensors(folder), ids)


def run_tensors(folder, tensors, ids):
    config = json.loads((folder / "config.json").read_text())
    family, eps = Family(config), config["rms_norm_eps"]
    x = tensors[f"{family.embedding}.weight"][torch.tensor(ids)]
    stream, margin = [x], math.inf
    for layer in range(config["num_hidden_layers"]):
        scope = f"model.layers.{layer}."
        normed = rms_norm(x, tensors[f"{scope}input_layernorm.weight"], eps)
        x = x + mixer(family, tensors, layer, normed)
        normed = rms_norm(x, tensors[f"{scope}post_attention_layernorm.weight"], eps)
        out, layer_margin = ffn(family, tensors, layer, normed)
        x, margin = x + out, min(margin, layer_margin)
        stream.append(x)
    final = rms_norm(x, tensors["model.norm.weight"], eps)
    logits = final @ tensors["lm_head.weight"].T
    return {"hidden": torch.stack(stream), "final": final, "logits": logits, "margin": margin}


class FormulaModel:
    """What reference.greedy needs of a model."""

    def __init__(self, folder):
        self.folder, self.tensors = folder, load_tensors(folder)

    def run(self, ids):
        """The tensors of reference.run, rounded to float32."""
        outputs = run_tensors(self.folder, self.tensors, ids)
        return {name: outputs[name].float() for name in ("hidden", "final", "logits")}

    def __call__(self, ids, use_cache):
        assert not use_cache
        return SimpleNamespace(logits=self.run(ids[0].tolist())["logits"][None])
