#include "models/config_keys.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace banyan {
namespace {

// Bookkeeping, training, and how a text is generated, which generation_config.json and requests say.
constexpr auto kHarmless = std::to_array<std::string_view>({
    // What the file is, and who wrote it.
    "model_type", "architectures", "transformers_version", "_name_or_path", "auto_map", "dtype",
    "torch_dtype", "tokenizer_class", "_commit_hash", "unsloth_version", "unsloth_fixed",
    "model_name", "finetuning_task", "task_specific_params", "problem_type", "id2label", "label2id",
    "num_labels", "prefix", "custom_pipelines", "use_bfloat16", "_attn_implementation",
    "attn_implementation", "_attn_implementation_autoset", "_experts_implementation",
    "_flash_attn_2_enabled", "use_flash_attn", "use_flash_attention", "flash_attn", "torchscript",
    "pruned_heads", "tf_legacy_loss", "quantization", "is_decoder", "is_encoder_decoder",
    "is_llama_config", "architecture", "base_model", "sentence_transformers",
    // Ids of tokens, of which the tokenizer's configuration reads what matters.
    "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
    "bos_index", "eos_index", "pad_index", "unk_index", "decoder_start_token_id",
    "forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "suppress_tokens",
    "begin_suppress_tokens",
    // What generate() of transformers once took from here.
    "max_length", "min_length", "max_new_tokens", "min_new_tokens", "do_sample", "early_stopping",
    "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k", "top_p", "min_p",
    "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size", "num_return_sequences", "remove_invalid_values",
    "exponential_decay_length_penalty", "return_dict", "return_dict_in_generate", "output_scores",
    "output_hidden_states", "output_attentions", "output_router_logits", "num_logits_to_keep",
    "use_cache", "cache_implementation", "keys_to_ignore_at_inference",
    // Training.
    "initializer_range", "initializer_factor", "init_std", "embedding_initializer_range",
    "attention_dropout", "dropout", "hidden_dropout", "hidden_dropout_prob", "resid_dropout",
    "resid_pdrop", "residual_dropout", "embd_pdrop", "emb_pdrop", "embed_dropout", "embd_dropout",
    "embedding_dropout", "output_dropout", "attn_pdrop", "attn_dropout", "activation_dropout",
    "attention_probs_dropout_prob", "mlp_dropout", "layerdrop", "classifier_dropout",
    "classifier_dropout_prob", "classifier_activation", "gradient_checkpointing",
    "use_gradient_checkpointing", "aux_loss_alpha", "seq_aux", "router_aux_loss_coef",
    "aux_loss_coef", "z_loss_coefficient", "router_z_loss_coef", "mtp_loss_scaling_factor",
    "router_jitter_noise", "input_jitter_noise", "ep_size", "ep_group", "pretraining_tp",
    "deterministic", "use_logit_checkpointing", "fused_cross_entropy", "fuse_cross_entropy",
    "fuse_norm", "fuse_swiglu", "use_l2warp", "expert_capacity", "capacity_factor", "moe_token_dropping",
    "moe_aux_loss_coeff", "moe_router_bias_update_rate", "moe_router_load_balancing_type",
    "multi_gate", "router_type", "training_dtype", "seq_length", "max_seq_len",
    "max_sequence_length", "chunk_size_feed_forward",
});

// Asked for unless its value is null, false, 0 or empty.
constexpr auto kVariants = std::to_array<std::string_view>({
    // Biases and norms.
    "attention_bias", "attention_out_bias", "attn_bias", "qkv_bias", "use_qkv_bias", "use_bias",
    "bias", "mlp_bias", "lm_head_bias", "enable_bias", "add_bias_linear", "add_qkv_bias", "o_bias",
    "norm_bias", "use_qk_norm", "qk_norm", "qk_layernorm", "use_qk_layernorm", "qk_l2_clip_threshold",
    "norm_head",
    "norm_softmax", "use_layernorm", "use_post_norm", "use_sandwich_norm", "use_nGPT", "value_norm",
    "up_proj_norm", "v_norm", "add_out_norm", "gated_norm_rank", "attention_output_gate",
    "attn_output_gate", "use_attention_gate", "output_gate_type", "gated_attention",
    "gated_attention_proj_granularity_type", "use_gated_attention", "head_wise_attn_gate",
    // Positions.
    "alibi", "use_alibi", "use_nope", "use_mla_nope", "mla_use_nope", "nope_layer_interval",
    "no_rope_layers", "no_rope_layer_interval", "rope_interleaved", "rope_interleave",
    "use_mrope", "mrope_section", "use_dynamic_ntk", "use_logn_attn", "attn_temperature_tuning",
    "floor_scale", "attn_scale", "log_scaling_alpha", "log_scaling_n_floor", "rope_local_base_freq",
    "local_rope_theta", "layer_rope_theta", "swa_rope_theta", "global_rope_theta",
    "compress_rope_theta", "rope_ratio", "rotary_dim", "rotary_pct", "rope_percent",
    "position_embedding_type", "learned_pos_emb", "use_learned_position_embeddings",
    "original_max_position_embeddings",
    // Which positions a layer sees, and what it keeps of them.
    "sliding_window", "use_sliding_window", "sliding_window_pattern", "sliding_window_size",
    "sliding_window_layers", "window_size", "attention_window_size", "attention_chunk_size",
    "chunk_size", "local_attention", "local_layer_ids", "layer_types", "layers_block_type",
    "attn_type_list", "attention_types", "attention_type", "attn_layers", "attn_layer_indices",
    "attn_layer_period", "attn_layer_offset", "full_attn_idxs", "full_attention_interval",
    "global_attn_every_n_layers", "interleaved_sliding_window", "use_bidirectional_attention",
    "per_layer_config", "num_attention_heads_per_layer", "block_configs", "swa_head_dim",
    "swa_num_attention_heads", "swa_num_key_value_heads", "attention_sink", "use_attention_sink",
    "add_full_attention_sink_bias", "add_swa_attention_sink_bias", "num_kv_shared_layers",
    "cla_share_factor", "use_cla", "multi_query", "new_decoder_architecture", "parallel_attn",
    "use_parallel_residual", "index_topk", "index_head_dim", "index_n_heads", "indexer_types",
    "moba_chunk_size", "moba_topk", "use_moba", "sparse_attention", "sparse_config",
    // Recurrence.
    "layer_group_size", "group_norm_size", "linear_attn_config", "linear_conv_kernel_dim",
    "linear_head_dim", "linear_num_heads", "linear_key_head_dim", "linear_num_key_heads",
    "linear_num_value_heads", "linear_value_head_dim", "mamba_d_state", "mamba_d_conv",
    "mamba_expand", "ssm_state_size", "state_size", "conv_kernel", "conv_L_cache", "lru_width",
    "kda_lower_bound", "kda_safe_gate", "short_conv_kernel_size", "use_short_conv", "linear_silu",
    "mtp_use_kda", "engram_config",
    // Latent attention.
    "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "qk_head_dim",
    "v_head_dim", "o_lora_rank", "o_groups", "use_mla", "mla_scale_q_lora", "mla_scale_kv_lora",
    // Factors and bounds of activations.
    "attn_logit_softcapping", "final_logit_softcapping", "logits_soft_cap",
    "output_logit_soft_cap", "router_logit_softcapping", "moe_router_logit_softcapping",
    "query_pre_attn_scalar", "clip_qkv", "swiglu_limit", "swiglu_limits", "swiglu_limits_shared",
    "expert_swiglu_limit_list", "share_expert_swiglu_limit_list", "swiglu_alpha", "mup_enabled",
    "use_mup", "scale_depth", "dim_model_base", "scale_embedding", "scale_router_input",
    "hidden_size_per_layer_input", "altup_num_inputs", "laurel_rank", "hc_mult", "hc_count",
    "mhc_config", "activation_sparsity_pattern", "use_double_wide_mlp", "hidden_activation",
    "residual_in_fp32", "rescale_every", "add_cross_attention", "cross_attention_layers",
    "tie_encoder_decoder", "adapter_rank", "lora_rank",
    // Experts.
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_moe_experts",
    "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts",
    "shared_expert_intermediate_size", "shared_experts_intermediate_size",
    "shared_intermediate_size", "moe_shared_expert_intermediate_size", "shared_expert_sink",
    "use_shared_expert_gate", "num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k",
    "moe_intermediate_size", "expert_ffn_hidden_size", "zero_expert_num", "first_k_dense_replace",
    "mlp_only_layers", "mlp_layer_types", "moe_layers", "moe_layers_enum", "interleave_moe_layer_step",
    "moe_layer_start_index", "moe_layer_end_index", "expert_layer_offset", "num_dense_layers",
    "dense_intermediate_size", "scoring_func", "score_function", "moe_router_activation_func",
    "topk_method", "norm_topk_prob", "moe_renormalize", "use_grouped_topk", "use_expert_bias",
    "use_routing_bias", "router_bias", "moe_router_enable_expert_bias", "moe_latent_size",
    "moe_apply_router_weight_on_input", "num_nextn_predict_layers", "num_mtp_layers",
    "mtp_num_hidden_layers", "num_hash_layers",
    // A model within a model, or not one that predicts the next token.
    "text_config", "vision_config", "audio_config", "language_config", "encoder_config",
    "decoder_config", "is_encoder", "ngram_size", "ngram_vocab_size_base",
    "emb_neighbor_num", "oe_vocab_size_ratio", "heads_per_ngram",
});

// The same, but a factor or a step of 1 asks for nothing either.
constexpr auto kFactors = std::to_array<std::string_view>({
    "partial_rotary_factor", "rotary_percent", "logit_scale", "logits_scaling", "scale_emb",
    "embedding_multiplier", "residual_multiplier", "attention_multiplier", "lm_head_multiplier",
    "key_multiplier", "attention_in_multiplier", "attention_out_multiplier",
    "logits_mup_width_multiplier", "attention_value_scale", "embedding_scale", "output_multiplier",
    "output_multiplier_scale", "embedding_multiplier_scale", "routed_scaling_factor", "route_scale",
    "moe_routed_scaling_factor", "router_scaling_factor", "n_group", "num_expert_group",
    "topk_group", "moe_layer_freq", "moe_layer_interval", "expert_layer_period",
    "decoder_sparse_step", "hidden_multiplier", "mlp_multiplier", "width_multiplier",
});

// Asked for unless they are true.
constexpr auto kAlwaysOn = std::to_array<std::string_view>({"use_rmsnorm", "use_rms_norm", "causal",
                                                            "is_causal", "use_rotary"});

template <class List>
bool contains(const List& list, std::string_view key) {
  return std::ranges::find(list, key) != list.end();
}

bool is_variant(std::string_view key) {
  return contains(kVariants, key) || contains(kFactors, key) || contains(kAlwaysOn, key);
}

bool asks_for_something(const ConfigFile& config, std::string_view key) {
  if (contains(kAlwaysOn, key)) return !config.holds(key, {true});
  if (contains(kFactors, key) && config.holds(key, {1, 1.0})) return false;
  return !config.is_off(key);
}

}  // namespace

void refuse_variants(const ConfigFile& config) {
  auto architecture = config.architecture();
  for (const std::string& key : config.unread()) {
    if (!is_variant(key) || !asks_for_something(config, key)) continue;
    config.expect(false, "{} = {} would change what {} computes, and is not supported", key,
                  config.shown(key), architecture ? *architecture : "the model");
  }
}

std::vector<std::string> unknown_keys(const ConfigFile& config) {
  std::vector<std::string> unknown = config.unread();
  std::erase_if(unknown,
                [](const std::string& key) { return contains(kHarmless, key) || is_variant(key); });
  return unknown;
}

}  // namespace banyan
