// What gguf_architectures.cpp lists of families with recurrent layers.
#pragma once

#include <array>

#include "weights/files/gguf_architectures.h"

namespace banyan {

inline constexpr std::array kGatedDeltaNames = {
    GgufName{"attn_qkv", "linear_attn.in_proj_qkv"},
    GgufName{"attn_gate", "linear_attn.in_proj_z"},
    GgufName{"ssm_in", "linear_attn.in_proj_qkvz"},  // of older files
    GgufName{"ssm_ba", "linear_attn.in_proj_ba"},
    GgufName{"ssm_beta", "linear_attn.in_proj_b"},
    GgufName{"ssm_alpha", "linear_attn.in_proj_a"},
    GgufName{"ssm_conv1d", "linear_attn.conv1d"},
    GgufName{"ssm_dt", "linear_attn.dt_bias", true},
    GgufName{"ssm_a", "linear_attn.A_log"},
    GgufName{"ssm_norm", "linear_attn.norm"},
    GgufName{"ssm_out", "linear_attn.out_proj"},
    GgufName{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    GgufName{"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    GgufName{"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    GgufName{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
};
inline constexpr std::array kGatedDeltaKeys = {
    GgufKey{"ssm.conv_kernel", "linear_conv_kernel_dim"},
    GgufKey{"ssm.state_size", "linear_key_head_dim"},
    GgufKey{"ssm.group_count", "linear_num_key_heads"},
    GgufKey{"ssm.time_step_rank", "linear_num_value_heads"},
    GgufKey{"full_attention_interval", "full_attention_interval"},
    GgufKey{"expert_count", "num_experts"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKey{"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
};

inline constexpr std::array kGraniteHybridNames = {
    GgufName{"ssm_in", "mamba.in_proj"},
    GgufName{"ssm_conv1d", "mamba.conv1d"},
    GgufName{"ssm_dt", "mamba.dt_bias", true},
    GgufName{"ssm_a", "mamba.A_log"},
    GgufName{"ssm_d", "mamba.D"},
    GgufName{"ssm_norm", "mamba.norm"},
    GgufName{"ssm_out", "mamba.out_proj"},
    GgufName{"ffn_gate", "shared_mlp.gate_proj"},
    GgufName{"ffn_up", "shared_mlp.up_proj"},
    GgufName{"ffn_down", "shared_mlp.output_linear"},
    GgufName{"ffn_gate_shexp", "shared_mlp.gate_proj"},
    GgufName{"ffn_up_shexp", "shared_mlp.up_proj"},
    GgufName{"ffn_down_shexp", "shared_mlp.output_linear"},
};
inline constexpr std::array kGraniteHybridKeys = {
    GgufKey{"attention.scale", "attention_multiplier"},
    GgufKey{"embedding_scale", "embedding_multiplier"},
    GgufKey{"residual_scale", "residual_multiplier"},
    GgufKey{"logit_scale", "logits_scaling"},
    GgufKey{"ssm.conv_kernel", "mamba_d_conv"},
    GgufKey{"ssm.state_size", "mamba_d_state"},
    GgufKey{"ssm.group_count", "mamba_n_groups"},
    GgufKey{"ssm.time_step_rank", "mamba_n_heads"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
};
inline constexpr GgufExpertNames kGraniteExperts = {.router = "block_sparse_moe.router.layer",
                                                    .scope = "block_sparse_moe"};

inline constexpr std::array kNemotronNames = {
    GgufName{"token_embd", "backbone.embeddings"},
    GgufName{"output_norm", "backbone.norm_f"},
    GgufName{"attn_norm", "norm"},
    GgufName{"attn_q", "mixer.q_proj"},
    GgufName{"attn_k", "mixer.k_proj"},
    GgufName{"attn_v", "mixer.v_proj"},
    GgufName{"attn_output", "mixer.o_proj"},
    GgufName{"ssm_in", "mixer.in_proj"},
    GgufName{"ssm_conv1d", "mixer.conv1d"},
    GgufName{"ssm_dt", "mixer.dt_bias", true},
    GgufName{"ssm_a", "mixer.A_log"},
    GgufName{"ssm_d", "mixer.D"},
    GgufName{"ssm_norm", "mixer.norm"},
    GgufName{"ssm_out", "mixer.out_proj"},
    GgufName{"ffn_up", "mixer.up_proj"},
    GgufName{"ffn_down", "mixer.down_proj"},
    GgufName{"ffn_up_shexp", "mixer.shared_experts.up_proj"},
    GgufName{"ffn_down_shexp", "mixer.shared_experts.down_proj"},
    GgufName{"exp_probs_b", "mixer.gate.e_score_correction_bias", true},
};
inline constexpr std::array kNemotronKeys =
    joined(kGroupedExpertKeys,
           std::to_array<GgufKey>({
               {"ssm.conv_kernel", "conv_kernel"},
               {"ssm.state_size", "ssm_state_size"},
               {"ssm.group_count", "n_groups"},
               {"ssm.time_step_rank", "mamba_num_heads"},
               {"expert_count", "n_routed_experts"},
               {"expert_shared_count", "n_shared_experts"},
               {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
           }));
inline constexpr GgufExpertNames kNemotronExperts = {.router = "mixer.gate",
                                                     .scope = "mixer.experts"};

inline constexpr std::array kKimiLinearNames = {
    GgufName{"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    GgufName{"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    GgufName{"attn_kv_b", "self_attn.kv_b_proj"},
    GgufName{"attn_k_b", "self_attn.k_b_proj"},
    GgufName{"attn_v_b", "self_attn.v_b_proj"},
    GgufName{"ssm_conv1d_q", "self_attn.q_conv1d"},
    GgufName{"ssm_conv1d_k", "self_attn.k_conv1d"},
    GgufName{"ssm_conv1d_v", "self_attn.v_conv1d"},
    GgufName{"ssm_f_a", "self_attn.f_a_proj"},
    GgufName{"ssm_f_b", "self_attn.f_b_proj"},
    GgufName{"ssm_g_a", "self_attn.g_a_proj"},
    GgufName{"ssm_g_b", "self_attn.g_b_proj"},
    GgufName{"ssm_beta", "self_attn.b_proj"},
    GgufName{"ssm_a", "self_attn.A_log"},
    GgufName{"ssm_dt", "self_attn.dt_bias", true},
    GgufName{"ssm_norm", "self_attn.o_norm"},
    GgufName{"ffn_gate_shexp", "block_sparse_moe.shared_experts.gate_proj"},
    GgufName{"ffn_up_shexp", "block_sparse_moe.shared_experts.up_proj"},
    GgufName{"ffn_down_shexp", "block_sparse_moe.shared_experts.down_proj"},
    GgufName{"exp_probs_b", "block_sparse_moe.gate.e_score_correction_bias", true},
};
inline constexpr std::array kKimiLinearKeys = {
    GgufKey{"attention.kv_lora_rank", "kv_lora_rank"},
    GgufKey{"kda.head_dim", "linear_head_dim"},
    GgufKey{"ssm.conv_kernel", "linear_conv_kernel_dim"},
    GgufKey{"expert_count", "num_experts"},
    GgufKey{"expert_used_count", "num_experts_per_token"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKey{"expert_shared_count", "num_shared_experts"},
    GgufKey{"expert_group_count", "num_expert_group"},
    GgufKey{"expert_group_used_count", "topk_group"},
    GgufKey{"expert_weights_scale", "routed_scaling_factor"},
    GgufKey{"leading_dense_block_count", "first_k_dense_replace"},
};

inline constexpr GgufExpertNames kKimiLinearExperts = {
    "block_sparse_moe.gate", "block_sparse_moe.experts", "w1", "w3", "w2"};

inline constexpr std::array kLing3Names = {
    GgufName{"token_embd", "model.word_embeddings"},
    GgufName{"attn_q", "attention.q_proj"},
    GgufName{"attn_k", "attention.k_proj"},
    GgufName{"attn_v", "attention.v_proj"},
    GgufName{"attn_output", "attention.dense"},
    GgufName{"attn_gate", "attention.g_proj"},
    GgufName{"attn_q_a", "attention.q_a_proj"},
    GgufName{"attn_q_a_norm", "attention.q_a_layernorm"},
    GgufName{"attn_q_b", "attention.q_b_proj"},
    GgufName{"attn_kv_a_mqa", "attention.kv_a_proj_with_mqa"},
    GgufName{"attn_kv_a_norm", "attention.kv_a_layernorm"},
    GgufName{"attn_k_b", "attention.k_b_proj"},
    GgufName{"attn_v_b", "attention.v_b_proj"},
    GgufName{"ssm_conv1d_q", "attention.q_conv1d"},
    GgufName{"ssm_conv1d_k", "attention.k_conv1d"},
    GgufName{"ssm_conv1d_v", "attention.v_conv1d"},
    GgufName{"ssm_f_a", "attention.f_proj"},
    GgufName{"ssm_g_a", "attention.g_proj"},
    GgufName{"ssm_beta", "attention.b_proj"},
    GgufName{"ssm_a", "attention.A_log"},
    GgufName{"ssm_dt", "attention.dt_bias", true},
    GgufName{"ssm_norm", "attention.o_norm"},
    GgufName{"exp_probs_b", "mlp.gate.expert_bias", true},
    GgufName{"layer_output_norm", "final_layernorm"},
};
inline constexpr std::array kLing3Keys =
    joined(kGroupedExpertKeys,
           std::to_array<GgufKey>({
               {"attention.q_lora_rank", "q_lora_rank"},
               {"attention.kv_lora_rank", "kv_lora_rank"},
               {"kda.head_dim", "head_dim"},
               {"kda.safe_gate", "kda_safe_gate"},
               {"kda.gate_lower_bound", "kda_lower_bound"},
               {"ssm.conv_kernel", "short_conv_kernel_size"},
               {"expert_count", "num_experts"},
               {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
               {"expert_shared_count", "num_shared_experts"},
               {"leading_dense_block_count", "first_k_dense_replace"},
               {"nextn_predict_layers", "num_nextn_predict_layers"},
           }));

void read_qwen3_next(GgufConfig& c);
void read_qwen3_5(GgufConfig& c);
void read_granite_hybrid(GgufConfig& c);
void read_nemotron_h(GgufConfig& c);
void read_kimi_linear(GgufConfig& c);
void read_ling3(GgufConfig& c);

}  // namespace banyan
