// What gguf_architectures.cpp lists of Gemma 2, 3 and 4.
#pragma once

#include <array>

#include "weights/files/gguf_architectures.h"

namespace banyan {

inline constexpr std::array kGemmaNames = {
    GgufName{"ffn_norm", "pre_feedforward_layernorm"},
};
inline constexpr std::array kGemmaKeys = {
    GgufKey{"attn_logit_softcapping", "attn_logit_softcapping"},
    GgufKey{"final_logit_softcapping", "final_logit_softcapping"},
};

inline constexpr std::array kGemma4Names = {
    GgufName{"per_layer_token_embd", "model.embed_tokens_per_layer"},
    GgufName{"per_layer_model_proj", "model.per_layer_model_projection"},
    GgufName{"per_layer_proj_norm", "model.per_layer_projection_norm"},
    GgufName{"inp_gate", "per_layer_input_gate"},
    GgufName{"proj", "per_layer_projection"},
    GgufName{"post_norm", "post_per_layer_input_norm"},
    GgufName{"layer_output_scale", "layer_scalar", true},
    GgufName{"ffn_norm", "pre_feedforward_layernorm"},
    GgufName{"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    GgufName{"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    GgufName{"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    GgufName{"ffn_gate_inp.scale", "router.scale"},
    GgufName{"ffn_down_exps.scale", "router.per_expert_scale"},
};
inline constexpr std::array kGemma4Keys = {
    GgufKey{"final_logit_softcapping", "final_logit_softcapping"},
    GgufKey{"attention.shared_kv_layers", "num_kv_shared_layers"},
    GgufKey{"expert_count", "num_experts"},
    GgufKey{"expert_used_count", "top_k_experts"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
};
inline constexpr GgufExpertNames kGemma4Experts = {.router = "router.proj", .scope = "experts"};

void read_gemma2(GgufConfig& c);
void read_gemma3(GgufConfig& c);
void read_gemma4(GgufConfig& c);

}  // namespace banyan
