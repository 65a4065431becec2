"""The golden cases: one config.json each, written by hand so that every spelling is a chosen one.

Between them the cases turn on every feature of their families at once with odd sizes: an error in
one formula, default or layout moves some layer of some case by far more than the tests allow.
"""

from goldens.case import Case
from goldens.grown_cases import GROWN_CASES
from goldens.hybrid_cases import HYBRID_CASES
from goldens.recurrent_cases import RECURRENT_CASES
from goldens.sparse_cases import SPARSE_CASES


def llama(**more):
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
    } | more


def mistral(**more):
    return llama(architectures=["MistralForCausalLM"], model_type="mistral") | more


def qwen2(**more):
    return llama(architectures=["Qwen2ForCausalLM"], model_type="qwen2") | more


def qwen3(**more):
    return llama(architectures=["Qwen3ForCausalLM"], model_type="qwen3") | more


LLAMA_CASES = [
    Case(
        name="llama2-mha",
        notes="no num_key_value_heads, rope_theta, rms_norm_eps; old rotary_emb.inv_freq tensors",
        prompt_tokens=56,
        embedding_deviation=0.005,
        seed=1001,
        config=llama(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=76,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=256,
            rope_scaling=None,
            pretraining_tp=1,
            torch_dtype="float32",
        ),
        extra_tensors={f"model.layers.{i}.self_attn.rotary_emb.inv_freq": (6,) for i in range(2)},
    ),
    Case(
        name="llama31-gqa",
        notes="rope llama3 in the old spelling; G = 3; several eos ids; prompt longer than 128",
        prompt_tokens=140,
        seed=2,
        config=llama(
            vocab_size=97,
            hidden_size=72,
            intermediate_size=68,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=None,
            max_position_embeddings=512,
            rms_norm_eps=2e-3,
            rope_theta=500000.0,
            rope_scaling={
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
            tie_word_embeddings=False,
            torch_dtype="float32",
            eos_token_id=[3, 5, 8],
        ),
        eos=[3, 5, 8],
    ),
    Case(
        name="llama32-tied-sharded",
        notes="three shards of bfloat16; rope llama3 in the version 5 spelling; tied",
        prompt_tokens=70,
        embedding_deviation=0.25,
        seed=1903,
        dtype="bfloat16",
        shards=3,
        config=llama(
            vocab_size=131,
            hidden_size=48,
            intermediate_size=100,
            num_hidden_layers=3,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=256,
            rms_norm_eps=3e-3,
            rope_parameters={
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 32.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
            tie_word_embeddings=True,
            dtype="bfloat16",
        ),
    ),
    Case(
        name="llama-bias",
        notes="attention_bias and mlp_bias; explicit head_dim with Hq * d != D",
        prompt_tokens=45,
        seed=1804,
        config=llama(
            vocab_size=131,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=16,
            attention_bias=True,
            mlp_bias=True,
            max_position_embeddings=256,
            rms_norm_eps=5e-3,
            rope_theta=10000,
            dtype="float32",
        ),
    ),
    Case(
        name="llama-linear-f16",
        notes="rope linear under the legacy key `type`; float16; tied",
        prompt_tokens=60,
        embedding_deviation=0.25,
        seed=1805,
        dtype="float16",
        config=llama(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=100,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=3,
            max_position_embeddings=256,
            rms_norm_eps=1e-3,
            rope_theta=20000.0,
            rope_scaling={"type": "linear", "factor": 2.5},
            tie_word_embeddings=True,
            torch_dtype="float16",
        ),
    ),
]

MISTRAL_CASES = [
    Case(
        name="mistral-window",
        notes="sliding window of 11 in every layer, far shorter than the prompt",
        prompt_tokens=70,
        seed=406,
        config=mistral(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=3,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=256,
            rms_norm_eps=4e-3,
            rope_theta=10000.0,
            sliding_window=11,
            tie_word_embeddings=False,
            torch_dtype="float32",
        ),
    ),
    Case(
        name="mistral-nemo-bf16",
        notes="explicit head_dim; num_key_value_heads missing (8 in this family); window null",
        prompt_tokens=56,
        seed=107,
        dtype="bfloat16",
        config=mistral(
            vocab_size=131,
            hidden_size=56,
            intermediate_size=76,
            num_hidden_layers=2,
            num_attention_heads=16,
            head_dim=8,
            max_position_embeddings=256,
            rms_norm_eps=2e-3,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
            sliding_window=None,
            dtype="bfloat16",
        ),
    ),
]

QWEN2_CASES = [
    Case(
        name="qwen2-tied",
        notes="bias on q, k, v only; a sliding_window that use_sliding_window switches off; tied",
        prompt_tokens=56,
        embedding_deviation=0.25,
        seed=1908,
        config=qwen2(
            vocab_size=131,
            hidden_size=48,
            intermediate_size=76,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=256,
            max_window_layers=1,
            sliding_window=8,
            use_sliding_window=False,
            rms_norm_eps=6e-3,
            rope_theta=1000000.0,
            tie_word_embeddings=True,
            torch_dtype="float32",
        ),
    ),
    Case(
        name="qwen2-window",
        notes="sliding window from layer max_window_layers on",
        prompt_tokens=60,
        seed=209,
        config=qwen2(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=3,
            num_attention_heads=3,
            num_key_value_heads=1,
            max_position_embeddings=256,
            max_window_layers=1,
            sliding_window=9,
            use_sliding_window=True,
            rms_norm_eps=3e-3,
            rope_theta=1000000.0,
            tie_word_embeddings=False,
            torch_dtype="float32",
        ),
    ),
    Case(
        name="qwen2-layer-types-bf16",
        notes="layer_types outrank max_window_layers; version 5 spellings; bfloat16",
        prompt_tokens=70,
        seed=310,
        dtype="bfloat16",
        config=qwen2(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=76,
            num_hidden_layers=3,
            num_attention_heads=6,
            num_key_value_heads=2,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            max_position_embeddings=256,
            max_window_layers=3,
            sliding_window=8,
            use_sliding_window=True,
            rms_norm_eps=2e-3,
            rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
            tie_word_embeddings=False,
            dtype="bfloat16",
        ),
    ),
]

QWEN3_CASES = [
    Case(
        name="qwen3-tied",
        notes="q_norm and k_norm per head; explicit head_dim with Hq * d != D; tied",
        prompt_tokens=56,
        embedding_deviation=0.25,
        seed=2311,
        config=qwen3(
            vocab_size=131,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=24,
            attention_bias=False,
            max_position_embeddings=256,
            max_window_layers=2,
            sliding_window=None,
            use_sliding_window=False,
            rms_norm_eps=1e-2,
            rope_scaling=None,
            rope_theta=1000000,
            tie_word_embeddings=True,
            torch_dtype="float32",
        ),
    ),
    Case(
        name="qwen3-bf16",
        notes="bfloat16 with q_norm and k_norm; untied",
        prompt_tokens=66,
        seed=912,
        dtype="bfloat16",
        config=qwen3(
            vocab_size=97,
            hidden_size=56,
            intermediate_size=100,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=16,
            max_position_embeddings=256,
            rms_norm_eps=2e-2,
            rope_theta=1000000.0,
            tie_word_embeddings=False,
            torch_dtype="bfloat16",
        ),
    ),
    Case(
        name="qwen3-yarn",
        notes="rope yarn with every default, in the old spelling; attention_bias (q, k, v and o)",
        prompt_tokens=66,
        seed=413,
        config=qwen3(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=2,
            num_attention_heads=3,
            num_key_value_heads=1,
            head_dim=24,
            attention_bias=True,
            max_position_embeddings=2560,
            rms_norm_eps=1e-2,
            rope_theta=100.0,
            rope_scaling={
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 512,
            },
            tie_word_embeddings=False,
            torch_dtype="float32",
        ),
    ),
    Case(
        name="qwen3-yarn-window",
        notes="rope yarn with every field given and truncate false; layer_types with a window",
        prompt_tokens=60,
        seed=14,
        config=qwen3(
            vocab_size=97,
            hidden_size=48,
            intermediate_size=52,
            num_hidden_layers=2,
            num_attention_heads=6,
            num_key_value_heads=2,
            head_dim=16,
            layer_types=["full_attention", "sliding_attention"],
            max_position_embeddings=256,
            sliding_window=10,
            use_sliding_window=True,
            rms_norm_eps=2e-2,
            rope_parameters={
                "rope_type": "yarn",
                "rope_theta": 10000.0,
                "factor": 8.0,
                "original_max_position_embeddings": 32,
                "beta_fast": 4.0,
                "beta_slow": 0.5,
                "attention_factor": 1.25,
                "truncate": False,
            },
            tie_word_embeddings=False,
            dtype="float32",
        ),
    ),
]

CASES = LLAMA_CASES + MISTRAL_CASES + QWEN2_CASES + QWEN3_CASES + HYBRID_CASES + SPARSE_CASES
CASES += GROWN_CASES + RECURRENT_CASES
