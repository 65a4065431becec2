// What gguf_architectures.cpp lists of DeepSeek-V3 and families with its latent attention.
#pragma once

#include <array>

#include "weights/files/gguf_architectures.h"

namespace banyan {

inline constexpr std::array kDeepseekNames = {
    GgufName{"attn_q_a", "self_attn.q_a_proj"},
    GgufName{"attn_q_a_norm", "self_attn.q_a_layernorm"},
    GgufName{"attn_q_b", "self_attn.q_b_proj"},
    GgufName{"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    GgufName{"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    GgufName{"attn_kv_b", "self_attn.kv_b_proj"},
    GgufName{"attn_k_b", "self_attn.k_b_proj"},
    GgufName{"attn_v_b", "self_attn.v_b_proj"},
    GgufName{"indexer.k_norm", "self_attn.indexer.k_norm"},
    GgufName{"indexer.attn_k", "self_attn.indexer.wk"},
    GgufName{"indexer.attn_q_b", "self_attn.indexer.wq_b"},
    GgufName{"indexer.proj", "self_attn.indexer.weights_proj"},
};
inline constexpr std::array kDeepseekKeys =
    joined(kGroupedExpertKeys, std::to_array<GgufKey>({
                                   {"expert_count", "n_routed_experts"},
                                   {"expert_shared_count", "n_shared_experts"},
                                   {"leading_dense_block_count", "first_k_dense_replace"},
                               }));

void read_deepseek2(GgufConfig& c);
void read_token_index(GgufConfig& c);  // DeepSeek-V3.2 and GLM-5
void read_mistral4(GgufConfig& c);

}  // namespace banyan
