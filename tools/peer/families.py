"""The families that make_model.py knows. FAMILIES names, for a config.json's model_type,
llama.cpp's architecture, the keys of its GGUF (without the architecture before them) and its
tensors. A new one is an entry there."""

from collections import namedtuple

Family = namedtuple("Family", "architecture keys tensors")
Matrix = namedtuple("Matrix", "shape")  # in the format that is asked for; [experts,] rows, columns
Vector = namedtuple("Vector", "shape value", defaults=(1.0,))  # f32; None: drawn

SIGMOID = 2  # expert_gating_func


def common_keys(c):
    keys = {
        "context_length": c["max_position_embeddings"],
        "embedding_length": c["hidden_size"],
        "block_count": c["num_hidden_layers"],
        "attention.head_count": c["num_attention_heads"],
        "attention.layer_norm_rms_epsilon": float(c["rms_norm_eps"]),
        "rope.freq_base": float(c.get("rope_parameters", c)["rope_theta"]),
    }
    dense = c.get("intermediate_size")
    return keys | ({"feed_forward_length": dense} if dense else {})


def grouped_keys(c):
    """Of attention whose heads share keys and values in groups."""
    return {
        "attention.head_count_kv": c["num_key_value_heads"],
        "attention.key_length": c["head_dim"],
        "attention.value_length": c["head_dim"],
    }


def latent_keys(c):
    """Of attention to latents, all heads of which share one."""
    nope, rope = c["qk_nope_head_dim"], c["qk_rope_head_dim"]
    return {
        "attention.q_lora_rank": c["q_lora_rank"],
        "attention.kv_lora_rank": c["kv_lora_rank"],
        "attention.key_length": c["kv_lora_rank"] + rope,
        "attention.value_length": c["kv_lora_rank"],
        "attention.key_length_mla": nope + rope,
        "attention.value_length_mla": c["v_head_dim"],
        "rope.dimension_count": rope,
    }


def expert_keys(c):
    """As Ling's configs name them."""
    return {
        "expert_count": c["num_experts"],
        "expert_used_count": c["num_experts_per_tok"],
        "expert_group_count": c["n_group"],
        "expert_group_used_count": c["topk_group"],
        "expert_shared_count": c["num_shared_experts"],
        "expert_feed_forward_length": c["moe_intermediate_size"],
        "expert_shared_feed_forward_length": shared_width(c),
        "expert_weights_scale": float(c["routed_scaling_factor"]),
        "expert_weights_norm": c["norm_topk_prob"],
        "expert_gating_func": SIGMOID,
        "leading_dense_block_count": c["first_k_dense_replace"],
    }


def shared_width(c):
    return c.get("moe_shared_expert_intermediate_size", c["moe_intermediate_size"])


def decoder(c, mixer, experts=None, second_norm="ffn"):
    """(name, tensor) of embedding, layers and head; mixer(c, i) gives those of layer i's attention,
    by their names in the layer, experts(c) those of a mixture's feed-forward block."""
    hidden = c["hidden_size"]
    yield "token_embd.weight", Matrix((c["vocab_size"], hidden))
    yield "output_norm.weight", Vector((hidden,))
    if not c["tie_word_embeddings"]:
        yield "output.weight", Matrix((c["vocab_size"], hidden))
    norms = {f"{name}_norm.weight": Vector((hidden,)) for name in ("attn", second_norm)}
    for i in range(c["num_hidden_layers"]):
        sparse = experts is not None and i >= c.get("first_k_dense_replace", 0)
        rest = experts(c) if sparse else mlp(c["intermediate_size"], c)
        for name, tensor in {**norms, **mixer(c, i), **rest}.items():
            yield f"blk.{i}.{name}", tensor


def mlp(inner, c, suffix="", lead=()):
    hidden = c["hidden_size"]
    return {
        f"ffn_gate{suffix}.weight": Matrix((*lead, inner, hidden)),
        f"ffn_up{suffix}.weight": Matrix((*lead, inner, hidden)),
        f"ffn_down{suffix}.weight": Matrix((*lead, hidden, inner)),
    }


def ling_experts(c):
    count = c["num_experts"]
    return {
        "ffn_gate_inp.weight": Vector((count, c["hidden_size"]), None),
        "exp_probs_b.bias": Vector((count,), 0.0),
        **mlp(c["moe_intermediate_size"], c, "_exps", (count,)),
        **mlp(c["num_shared_experts"] * shared_width(c), c, "_shexp"),
    }


def grouped_attention(c, query_parts=1):
    hidden, dim = c["hidden_size"], c["head_dim"]
    queries, keys = c["num_attention_heads"] * dim, c["num_key_value_heads"] * dim
    return {
        "attn_q.weight": Matrix((queries * query_parts, hidden)),
        "attn_k.weight": Matrix((keys, hidden)),
        "attn_v.weight": Matrix((keys, hidden)),
        "attn_output.weight": Matrix((hidden, queries)),
    }


def qwen3_attention(c, _, query_parts=1):
    norms = {f"attn_{x}_norm.weight": Vector((c["head_dim"],)) for x in "qk"}
    return {**norms, **grouped_attention(c, query_parts)}


def fused_attention(c, _):
    hidden, dim, heads = c["hidden_size"], c["head_dim"], c["num_attention_heads"]
    return {
        "attn_q_norm.weight": Vector((dim,)),
        "attn_k_norm.weight": Vector((dim,)),
        "attn_qkv.weight": Matrix(((heads + 2 * c["num_key_value_heads"]) * dim, hidden)),
        "attn_output.weight": Matrix((hidden, heads * dim)),
    }


def is_full(c, i):
    """Whether layer i of Ling 3 has MLA; the others have KDA."""
    layers, group = c["num_hidden_layers"], c["layer_group_size"]
    return (i + 1) % group == 0 or i >= layers // group * group


def ling3_mixer(c, i):
    return latent_attention(c) if is_full(c, i) else kimi_delta(c)


def latent_attention(c):
    hidden, heads, rank = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"]
    nope, rope, value = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
    q_rank = c["q_lora_rank"]
    ungated = c["model_type"] == "glm4_moe_lite"
    return {
        **({} if ungated else {"attn_gate.weight": Matrix((heads, hidden))}),
        "attn_q_a.weight": Matrix((q_rank, hidden)),
        "attn_q_a_norm.weight": Vector((q_rank,)),
        "attn_q_b.weight": Matrix((heads * (nope + rope), q_rank)),
        "attn_kv_a_mqa.weight": Matrix((rank + rope, hidden)),
        "attn_kv_a_norm.weight": Vector((rank,)),
        "attn_k_b.weight": Matrix((heads, rank, nope)),
        "attn_v_b.weight": Matrix((heads, value, rank)),
        "attn_output.weight": Matrix((hidden, heads * value)),
    }


def kimi_delta(c):
    hidden, heads, dim = c["hidden_size"], c["num_attention_heads"], c["head_dim"]
    inner, kernel = heads * dim, c["short_conv_kernel_size"]
    return {
        **{f"ssm_conv1d_{x}.weight": Vector((1, inner, 1, kernel), None) for x in "qkv"},
        **{f"attn_{x}.weight": Matrix((inner, hidden)) for x in "qkv"},
        "ssm_f_a.weight": Matrix((inner, hidden)),
        "ssm_g_a.weight": Matrix((inner, hidden)),
        "ssm_beta.weight": Matrix((heads, hidden)),
        "ssm_a": Vector((heads, 1)),
        "ssm_dt.bias": Vector((inner,), 0.0),
        "ssm_norm.weight": Vector((dim,)),
        "attn_output.weight": Matrix((hidden, inner)),
    }


def qwen3_keys(c):
    return common_keys(c) | grouped_keys(c)


def ling2_keys(c):
    rotated = int(c["head_dim"] * c["partial_rotary_factor"])
    return common_keys(c) | grouped_keys(c) | expert_keys(c) | {"rope.dimension_count": rotated}


def ling3_keys(c):
    """A layer without keys and values is recurrent."""
    layers = range(c["num_hidden_layers"])
    return (
        common_keys(c)
        | expert_keys(c)
        | latent_keys(c)
        | {
            "attention.head_count_kv": [int(is_full(c, i)) for i in layers],
            "ssm.conv_kernel": c["short_conv_kernel_size"],
            "kda.head_dim": c["head_dim"],
            "kda.safe_gate": c["kda_safe_gate"],
            "kda.gate_lower_bound": float(c["kda_lower_bound"]),
        }
    )


def as_ling(c):
    """GLM-4.7-Flash's config with the names of Ling's for experts."""
    return c | {"num_experts": c["n_routed_experts"], "num_shared_experts": c["n_shared_experts"]}


def glm_lite_keys(c):
    one = {"attention.head_count_kv": 1, "vocab_size": c["vocab_size"]}
    return common_keys(c) | expert_keys(as_ling(c)) | latent_keys(c) | one


def glm_lite_tensors(c):
    return decoder(as_ling(c), lambda c, _: latent_attention(c), ling_experts)


def gpt_oss_keys(c):
    yarn = c["rope_scaling"]
    return (
        common_keys(c)
        | grouped_keys(c)
        | {
            "rope.scaling.type": "yarn",
            "rope.scaling.factor": float(yarn["factor"]),
            "rope.scaling.original_context_length": yarn["original_max_position_embeddings"],
            "rope.scaling.yarn_beta_fast": float(yarn["beta_fast"]),
            "rope.scaling.yarn_beta_slow": float(yarn["beta_slow"]),
            "attention.sliding_window": c["sliding_window"],
            "expert_count": c["num_local_experts"],
            "expert_used_count": c["num_experts_per_tok"],
            "expert_feed_forward_length": c["intermediate_size"],
        }
    )


def with_biases(matrices):
    biases = {
        name.replace(".weight", ".bias"): Vector(tensor.shape[:-1], 0.0)
        for name, tensor in matrices.items()
    }
    return {**matrices, **biases}


def gpt_oss_attention(c, _):
    sinks = {"attn_sinks.weight": Vector((c["num_attention_heads"],), 0.0)}
    return {**with_biases(grouped_attention(c)), **sinks}


def gpt_oss_experts(c):
    count, hidden = c["num_local_experts"], c["hidden_size"]
    return {
        "ffn_gate_inp.weight": Vector((count, hidden), None),
        "ffn_gate_inp.bias": Vector((count,), 0.0),
        **with_biases(mlp(c["intermediate_size"], c, "_exps", (count,))),
    }


def qwen35_keys(c):
    value_heads, value_dim = c["linear_num_value_heads"], c["linear_value_head_dim"]
    rope = c["rope_parameters"]
    return (
        common_keys(c)
        | grouped_keys(c)
        | {
            "rope.dimension_sections": [*rope["mrope_section"], 0],
            "rope.dimension_count": int(c["head_dim"] * rope["partial_rotary_factor"]),
            "expert_count": c["num_experts"],
            "expert_used_count": c["num_experts_per_tok"],
            "expert_feed_forward_length": c["moe_intermediate_size"],
            "expert_shared_feed_forward_length": c["shared_expert_intermediate_size"],
            "ssm.conv_kernel": c["linear_conv_kernel_dim"],
            "ssm.state_size": c["linear_key_head_dim"],
            "ssm.group_count": c["linear_num_key_heads"],
            "ssm.time_step_rank": value_heads,
            "ssm.inner_size": value_heads * value_dim,
            "full_attention_interval": c["full_attention_interval"],
        }
    )


def qwen35_mixer(c, i):
    if c["layer_types"][i] == "full_attention":
        return qwen3_attention(c, i, 2)  # a gate beside each query
    hidden, heads = c["hidden_size"], c["linear_num_value_heads"]
    inner = heads * c["linear_value_head_dim"]
    mixed = 2 * c["linear_num_key_heads"] * c["linear_key_head_dim"] + inner
    return {
        "attn_qkv.weight": Matrix((mixed, hidden)),
        "attn_gate.weight": Matrix((inner, hidden)),
        "ssm_conv1d.weight": Vector((mixed, c["linear_conv_kernel_dim"]), None),
        "ssm_alpha.weight": Matrix((heads, hidden)),
        "ssm_beta.weight": Matrix((heads, hidden)),
        "ssm_a": Vector((heads,), -1.0),
        "ssm_dt.bias": Vector((heads,), 0.0),
        "ssm_norm.weight": Vector((c["linear_value_head_dim"],)),
        "ssm_out.weight": Matrix((hidden, inner)),
    }


def qwen35_experts(c):
    count, hidden = c["num_experts"], c["hidden_size"]
    return {
        "ffn_gate_inp.weight": Vector((count, hidden), None),
        "ffn_gate_inp_shexp.weight": Vector((hidden,), None),
        **mlp(c["moe_intermediate_size"], c, "_exps", (count,)),
        **mlp(c["shared_expert_intermediate_size"], c, "_shexp"),
    }


FAMILIES = {
    "qwen3": Family("qwen3", qwen3_keys, lambda c: decoder(c, qwen3_attention)),
    "bailing_moe": Family(
        "bailingmoe2", ling2_keys, lambda c: decoder(c, fused_attention, ling_experts)
    ),
    "bailing_hybrid": Family(
        "bailingmoe3", ling3_keys, lambda c: decoder(c, ling3_mixer, ling_experts)
    ),
    "glm4_moe_lite": Family("deepseek2", glm_lite_keys, glm_lite_tensors),
    "gpt_oss": Family(
        "gpt-oss",
        gpt_oss_keys,
        lambda c: decoder(c, gpt_oss_attention, gpt_oss_experts, "post_attention"),
    ),
    "qwen3_5_moe_text": Family(
        "qwen35moe",
        qwen35_keys,
        lambda c: decoder(c, qwen35_mixer, qwen35_experts, "post_attention"),
    ),
}
