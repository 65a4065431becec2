"""The cases of families with softmax attention that are kept as a recipe (goldens/grown.py)."""

from goldens.case import Case


def decoder(architecture, model_type, **more):
    """Small odd sizes; 97 tokens are what the simulation speaks of."""
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": 97,
        "hidden_size": 24,
        "intermediate_size": 28,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
        "torch_dtype": "float32",
    } | more


def small(architecture, model_type, **more):
    """A dense decoder of two layers."""
    config = decoder(
        architecture,
        model_type,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=20,
        hidden_size=32,
    )
    config.pop("head_dim")
    if "rope_parameters" in more:
        config.pop("rope_theta")
    return config | more


def gemma(architecture, model_type, **more):
    config = small(architecture, model_type, tie_word_embeddings=True, head_dim=10)
    config.pop("hidden_act")
    return config | more


def gemma4(**more):
    config = gemma(
        "Gemma4ForCausalLM",
        "gemma4_text",
        hidden_activation="gelu_pytorch_tanh",
        head_dim=8,
        global_head_dim=12,
        num_key_value_heads=2,
        sliding_window=7,
        vocab_size_per_layer_input=97,
        rope_parameters={
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
            "full_attention": {
                "rope_type": "proportional",
                "rope_theta": 1000.0,
                "partial_rotary_factor": 0.5,
            },
        },
    )
    config.pop("rope_theta", None)
    return config | more


def gpt_oss(**more):
    return decoder(
        "GptOssForCausalLM",
        "gpt_oss",
        intermediate_size=10,
        num_local_experts=5,
        num_experts_per_tok=3,
        sliding_window=7,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        attention_bias=True,
        swiglu_limit=1.25,
        rope_scaling={
            "rope_type": "yarn",
            "factor": 4.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 64,
            "truncate": False,
        },
    ) | more


def noaux(**more):
    """DeepSeek-V3's mixture of experts in GLM's words."""
    return {
        "moe_intermediate_size": 10,
        "n_routed_experts": 6,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.8,
        "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0,
    } | more


def deepseek_v2(**more):
    """Softmax routing with weights as they are, and YaRN that also scales the scores."""
    config = decoder(
        "DeepseekV2ForCausalLM",
        "deepseek_v2",
        num_attention_heads=3,
        num_key_value_heads=3,
        kv_lora_rank=12,
        qk_nope_head_dim=10,
        qk_rope_head_dim=6,
        v_head_dim=8,
        moe_intermediate_size=10,
        n_routed_experts=8,
        n_shared_experts=2,
        num_experts_per_tok=3,
        moe_layer_freq=1,
        norm_topk_prob=False,
        scoring_func="softmax",
        first_k_dense_replace=1,
        rope_scaling={
            "type": "yarn",
            "factor": 4.0,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": 0.707,
            "mscale_all_dim": 0.707,
            "original_max_position_embeddings": 64,
        },
        rms_norm_eps=1e-6,
    )
    config.pop("head_dim")
    return config | more


def without(config, *keys):
    return {k: v for k, v in config.items() if k not in keys}


def grown(name, notes, seed, config, **more):
    return Case(
        name=name, notes=notes, seed=seed, config=config, prompt_tokens=40, grown=True, **more
    )


GROWN_CASES = [
    grown(
        "gpt-oss",
        "sinks, a window every other layer, biases everywhere, clamped gates, YaRN not truncated",
        201,
        gpt_oss(),
        transposed=True,
    ),
    grown(
        "gpt-oss-mxfp4",
        "experts as published: blocks and scales, gates and ups in turns",
        1202,
        gpt_oss(
            hidden_size=64,
            intermediate_size=32,
            num_hidden_layers=2,
            layer_types=["sliding_attention", "full_attention"],
            swiglu_limit=7.0,
        ),
        transposed=True,
        mxfp4=True,
    ),
    grown(
        "glm4",
        "four norms a layer, half of each head turns, neighbours; gate and up in one matrix",
        203,
        decoder(
            "Glm4ForCausalLM",
            "glm4",
            num_hidden_layers=2,
            partial_rotary_factor=0.5,
            attention_bias=True,
        ),
    ),
    grown(
        "glm4-moe",
        "half of each head turns, halves; norms of heads, biases of q, k and v, shared experts",
        204,
        decoder(
            "Glm4MoeForCausalLM",
            "glm4_moe",
            num_hidden_layers=2,
            partial_rotary_factor=0.5,
            attention_bias=True,
            use_qk_norm=True,
            **noaux(),
        ),
    ),
    grown(
        "glm4-moe-lite",
        "latent attention with values wider than keys, one dense layer, YaRN-free",
        1205,
        {
            k: v
            for k, v in decoder(
                "Glm4MoeLiteForCausalLM",
                "glm4_moe_lite",
                num_hidden_layers=2,
                num_attention_heads=3,
                num_key_value_heads=3,
                q_lora_rank=10,
                kv_lora_rank=12,
                qk_nope_head_dim=6,
                qk_rope_head_dim=4,
                v_head_dim=10,
                **noaux(),
            ).items()
            if k != "head_dim"
        },
    ),
    grown(
        "minimax-m2",
        "norms over all heads, three quarters of a head turn, sigmoids with a bias on the block",
        206,
        decoder(
            "MiniMaxM2ForCausalLM",
            "minimax_m2",
            num_hidden_layers=2,
            intermediate_size=10,
            rotary_dim=6,
            num_local_experts=6,
            num_experts_per_tok=2,
            use_qk_norm=True,
            scoring_func="sigmoid",
            use_routing_bias=True,
        ),
    ),
    grown(
        "minimax-m3",
        "an index chooses 4 of 10 blocks; norms less one, clamped gates, a dense layer",
        1213,
        decoder(
            "MiniMaxM3SparseForCausalLM",
            "minimax_m3_vl_text",
            hidden_act="swigluoai",
            intermediate_size=10,
            dense_intermediate_size=28,
            shared_intermediate_size=14,
            rotary_dim=6,
            partial_rotary_factor=0.75,
            num_local_experts=6,
            num_experts_per_tok=2,
            n_shared_experts=1,
            moe_layer_freq=[0, 1, 1],
            scoring_func="sigmoid",
            use_routing_bias=True,
            routed_scaling_factor=2.0,
            swiglu_alpha=1.702,
            swiglu_limit=1.25,
            use_gemma_norm=True,
            use_qk_norm=True,
            qk_norm_type="per_head",
            attention_output_gate=False,
            sparse_attention_config={
                "use_sparse_attention": True,
                "sparse_index_dim": 10,
                "sparse_num_index_heads": 2,
                "sparse_topk_blocks": 4,
                "sparse_block_size": 4,
                "sparse_disable_index_value": [0, 1, 1],
                "sparse_score_type": "max",
                "sparse_init_block": 0,
                "sparse_local_block": 1,
                "sparse_attention_freq": [0, 1, 1],
            },
        ),
        norm_center=0,
    ),
    grown(
        "mixtral",
        "two of five experts, a window in every layer",
        207,
        decoder(
            "MixtralForCausalLM",
            "mixtral",
            num_hidden_layers=2,
            intermediate_size=10,
            num_local_experts=5,
            num_experts_per_tok=2,
            sliding_window=9,
        ),
    ),
    grown(
        "gemma2",
        "norms less one around blocks, capped scores and logits, an uneven query scale",
        208,
        gemma(
            "Gemma2ForCausalLM",
            "gemma2",
            hidden_act="gelu_pytorch_tanh",
            hidden_activation="gelu_pytorch_tanh",
            query_pre_attn_scalar=13,
            attn_logit_softcapping=3.0,
            final_logit_softcapping=5.0,
            sliding_window=7,
        ),
        norm_center=0,
        embedding_deviation=0.2,
    ),
    grown(
        "gemma3",
        "layers with windows turn by another theta, the others linearly stretched; head norms",
        209,
        gemma(
            "Gemma3ForCausalLM",
            "gemma3_text",
            num_hidden_layers=3,
            hidden_activation="gelu_pytorch_tanh",
            query_pre_attn_scalar=11,
            sliding_window=7,
            sliding_window_pattern=3,
            rope_local_base_freq=50.0,
            rope_scaling={"rope_type": "linear", "factor": 8.0},
        ),
        norm_center=0,
        embedding_deviation=0.2,
    ),
    grown(
        "ministral3",
        "YaRN, and queries that grow with the position",
        210,
        small(
            "Ministral3ForCausalLM",
            "ministral3",
            head_dim=8,
            rope_parameters={
                "rope_type": "yarn",
                "rope_theta": 1000.0,
                "factor": 8.0,
                "original_max_position_embeddings": 16,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "llama_4_scaling_beta": 0.6,
            },
        ),
    ),
    grown(
        "seed-oss",
        "biases of q, k and v alone, heads wider than a part of the stream",
        211,
        small(
            "SeedOssForCausalLM",
            "seed_oss",
            head_dim=10,
            attention_bias=True,
            attention_out_bias=False,
        ),
    ),
    grown(
        "smollm3",
        "a layer without rotation, which has a window",
        212,
        small(
            "SmolLM3ForCausalLM",
            "smollm3",
            num_hidden_layers=3,
            no_rope_layer_interval=2,
            use_sliding_window=True,
            sliding_window=7,
            tie_word_embeddings=True,
        ),
    ),
    grown(
        "olmo3",
        "norms after blocks alone and over all heads; YaRN in layers without a window",
        1213,
        small(
            "Olmo3ForCausalLM",
            "olmo3",
            rope_theta=500000.0,  # in layers with windows transformers reads no other
            layer_types=["sliding_attention", "full_attention"],
            sliding_window=7,
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        ),
    ),
    grown(
        "ernie4-5",
        "neighbours turn; biases everywhere",
        1214,
        small("Ernie4_5ForCausalLM", "ernie4_5", head_dim=8, use_bias=True),
    ),
    grown(
        "hunyuan",
        "heads are normed after they turn; a theta that alpha raises",
        215,
        small(
            "HunYuanDenseV1ForCausalLM",
            "hunyuan_v1_dense",
            head_dim=8,
            use_qk_norm=True,
            rope_scaling={
                "type": "dynamic",
                "alpha": 7.0,
                "beta_fast": 32,
                "beta_slow": 1,
                "factor": 1.0,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
            },
        ),
    ),
    grown(
        "exaone4",
        "norms after blocks alone and of heads; no rotation where there is no window",
        216,
        small(
            "Exaone4ForCausalLM",
            "exaone4",
            head_dim=8,
            layer_types=["sliding_attention", "full_attention"],
            sliding_window=7,
            sliding_window_pattern=2,
        ),
    ),
    grown(
        "phi3",
        "q, k and v in one matrix, gate and up in one; a window; part of a head turns",
        1217,
        small("Phi3ForCausalLM", "phi3", sliding_window=9, partial_rotary_factor=0.75),
    ),
    grown(
        "granite",
        "factors on embeddings, scores, blocks and logits",
        218,
        small(
            "GraniteForCausalLM",
            "granite",
            attention_multiplier=0.2,
            residual_multiplier=0.6,
            embedding_multiplier=3.0,
            logits_scaling=0.5,
            tie_word_embeddings=True,
        ),
    ),
    grown(
        "granite-moe",
        "the same factors, experts by softmax, a shared one",
        231,
        small(
            "GraniteMoeSharedForCausalLM",
            "granitemoeshared",
            attention_multiplier=0.2,
            residual_multiplier=0.6,
            embedding_multiplier=3.0,
            logits_scaling=0.5,
            intermediate_size=10,
            shared_intermediate_size=14,
            num_local_experts=5,
            num_experts_per_tok=2,
        ),
    ),
    grown(
        "ernie4-5-moe",
        "a dense layer first, experts by softmax and bias, two shared ones",
        219,
        small(
            "Ernie4_5_MoeForCausalLM",
            "ernie4_5_moe",
            moe_intermediate_size=8,
            moe_num_experts=5,
            moe_num_shared_experts=2,
            moe_k=2,
            moe_layer_start_index=1,
            moe_layer_end_index=-1,
            moe_layer_interval=1,
            use_bias=False,
        ),
    ),
    grown(
        "hunyuan-moe",
        "experts and a shared one in every layer, lists of numbers that are the same",
        220,
        small(
            "HunYuanMoEV1ForCausalLM",
            "hunyuan_v1_moe",
            head_dim=8,
            intermediate_size=12,
            use_qk_norm=True,
            num_experts=5,
            moe_topk=[2, 2],
        ),
    ),
    grown(
        "llama4",
        "chunks and norms after turning, every third layer neither but queries that grow; experts",
        221,
        small(
            "Llama4ForCausalLM",
            "llama4_text",
            num_hidden_layers=4,
            num_key_value_heads=2,
            head_dim=8,
            intermediate_size=12,
            intermediate_size_mlp=20,
            num_local_experts=5,
            num_experts_per_tok=1,
            interleave_moe_layer_step=2,
            attention_chunk_size=16,
            no_rope_layer_interval=3,
            no_rope_layers=[1, 1, 0, 1],
            attn_temperature_tuning=True,
            floor_scale=8,
            attn_scale=0.4,
            use_qk_norm=True,
            rope_scaling={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 1.0,
                "original_max_position_embeddings": 64,
            },
        ),
        transposed=True,
    ),
    grown(
        "mistral4",
        "latent attention by queries that grow with the position, YaRN, a softmax over experts",
        2222,
        {
            k: v
            for k, v in small(
                "Mistral4ForCausalLM",
                "mistral4",
                num_attention_heads=3,
                num_key_value_heads=3,
                q_lora_rank=10,
                kv_lora_rank=12,
                qk_nope_head_dim=6,
                qk_rope_head_dim=4,
                v_head_dim=10,
                rope_parameters={
                    "rope_type": "yarn",
                    "rope_theta": 1000.0,
                    "factor": 8.0,
                    "original_max_position_embeddings": 16,
                    "max_position_embeddings": 128,
                    "beta_fast": 32.0,
                    "beta_slow": 1.0,
                    "mscale": 1.0,
                    "mscale_all_dim": 1.0,
                    "llama_4_scaling_beta": 0.6,
                    "partial_rotary_factor": 0.4,
                },
                **noaux(),
            ).items()
            if k != "num_nextn_predict_layers"
        },
    ),
    grown(
        "deepseek-v2",
        "q of low rank, groups scored by their best expert, a factor on routing weights",
        1251,
        deepseek_v2(
            q_lora_rank=14,
            topk_method="group_limited_greedy",
            n_group=4,
            topk_group=2,
            routed_scaling_factor=4.0,
        ),
    ),
    grown(
        "deepseek-v2-lite",
        "q without a rank, experts chosen from all",
        1252,
        deepseek_v2(
            q_lora_rank=None,
            topk_method="greedy",
            n_group=1,
            topk_group=1,
            routed_scaling_factor=1.0,
            num_hidden_layers=2,
        ),
    ),
    grown(
        "hy3",
        "sigmoid routing with a bias and a factor, a shared expert, QK norm, a dense layer",
        1261,
        without(
            decoder(
                "HYV3ForCausalLM",
                "hy_v3",
                rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
                moe_intermediate_size=10,
                num_experts=6,
                num_experts_per_tok=2,
                num_shared_experts=2,
                router_scaling_factor=1.7,
                mlp_layer_types=["dense", "sparse", "sparse"],
            ),
            "rope_theta",
        ),
    ),
    grown(
        "solar-open",
        "GLM-4.5's experts in every layer, heads that turn whole",
        262,
        without(
            decoder(
                "SolarOpenForCausalLM",
                "solar_open",
                num_hidden_layers=2,
                rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
                **noaux(),
            ),
            "rope_theta",
            "intermediate_size",
            "first_k_dense_replace",
            "num_nextn_predict_layers",
        ),
    ),
    grown(
        "gemma4",
        "an embedding for each layer, two sizes of heads, shared keys, wide blocks that share",
        3223,
        gemma4(
            hidden_size_per_layer_input=6,
            num_hidden_layers=5,
            layer_types=[
                "sliding_attention",
                "full_attention",
                "sliding_attention",
                "sliding_attention",
                "full_attention",
            ],
            num_kv_shared_layers=2,
            use_double_wide_mlp=True,
        ),
        embedding_deviation=0.2,
    ),
    grown(
        "gemma4-moe",
        "keys that are values, experts next to dense blocks, capped logits",
        224,
        gemma4(
            hidden_size_per_layer_input=0,
            num_key_value_heads=4,
            num_global_key_value_heads=2,
            attention_k_eq_v=True,
            enable_moe_block=True,
            num_experts=5,
            top_k_experts=2,
            moe_intermediate_size=10,
            final_logit_softcapping=5.0,
            layer_types=["sliding_attention", "full_attention"],
        ),
        embedding_deviation=0.2,
    ),
]
