#include "weights/files/gguf_architectures.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "weights/files/gguf_config.h"
#include "weights/files/gguf_gemma.h"
#include "weights/files/gguf_latent.h"
#include "weights/files/gguf_recurrent.h"

namespace banyan {
namespace {

constexpr std::array kTopNames = {
    GgufName{"token_embd", "model.embed_tokens"},
    GgufName{"output_norm", "model.norm"},
    GgufName{"output", "lm_head"},
};

// If a family uses one of these names with another meaning, its own list overrides it.
constexpr std::array kLayerNames = {
    GgufName{"attn_norm", "input_layernorm"},
    GgufName{"ffn_norm", "post_attention_layernorm"},
    GgufName{"post_attention_norm", "post_attention_layernorm"},
    GgufName{"post_ffw_norm", "post_feedforward_layernorm"},
    GgufName{"attn_q", "self_attn.q_proj"},
    GgufName{"attn_k", "self_attn.k_proj"},
    GgufName{"attn_v", "self_attn.v_proj"},
    GgufName{"attn_qkv", "self_attn.qkv_proj"},
    GgufName{"attn_output", "self_attn.o_proj"},
    GgufName{"attn_q_norm", "self_attn.q_norm"},
    GgufName{"attn_k_norm", "self_attn.k_norm"},
    GgufName{"attn_sinks", "self_attn.sinks", true},
    GgufName{"ffn_gate", "mlp.gate_proj"},
    GgufName{"ffn_up", "mlp.up_proj"},
    GgufName{"ffn_down", "mlp.down_proj"},
    GgufName{"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    GgufName{"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    GgufName{"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    GgufName{"exp_probs_b", "mlp.gate.e_score_correction_bias", true},
    GgufName{"nextn.eh_proj", "eh_proj"},
    GgufName{"nextn.enorm", "enorm"},
    GgufName{"nextn.hnorm", "hnorm"},
    GgufName{"nextn.embed_tokens", "embed_tokens"},
    GgufName{"nextn.shared_head_head", "shared_head.head"},
    GgufName{"nextn.shared_head_norm", "shared_head.norm"},
};

constexpr std::array kGlm4Names = {
    GgufName{"ffn_up", "mlp.gate_up_proj"},
    GgufName{"post_attention_norm", "post_self_attn_layernorm"},
    GgufName{"post_ffw_norm", "post_mlp_layernorm"},
};
constexpr std::array kPhi3Names = {GgufName{"ffn_up", "mlp.gate_up_proj"}};
constexpr std::array kGptOssNames = {GgufName{"ffn_gate_inp", "mlp.router"}};
constexpr std::array kGraniteMoeNames = {
    GgufName{"ffn_gate_shexp", "shared_mlp.gate_proj"},
    GgufName{"ffn_up_shexp", "shared_mlp.up_proj"},
    GgufName{"ffn_down_shexp", "shared_mlp.output_linear"},
};
constexpr std::array kMinimaxNames = {
    GgufName{"exp_probs_b", "block_sparse_moe.e_score_correction_bias", true},
};
constexpr std::array kMinimax3Names = {
    GgufName{"exp_probs_b", "block_sparse_moe.e_score_correction_bias", true},
    GgufName{"ffn_gate_shexp", "block_sparse_moe.shared_experts.gate_proj"},
    GgufName{"ffn_up_shexp", "block_sparse_moe.shared_experts.up_proj"},
    GgufName{"ffn_down_shexp", "block_sparse_moe.shared_experts.down_proj"},
    GgufName{"indexer.q_proj", "self_attn.index_q_proj"},
    GgufName{"indexer.k_proj", "self_attn.index_k_proj"},
    GgufName{"indexer.q_norm", "self_attn.index_q_norm"},
    GgufName{"indexer.k_norm", "self_attn.index_k_norm"},
};
constexpr std::array kLlama4Names = {
    GgufName{"ffn_gate", "feed_forward.gate_proj"},
    GgufName{"ffn_up", "feed_forward.up_proj"},
    GgufName{"ffn_down", "feed_forward.down_proj"},
    GgufName{"ffn_gate_shexp", "feed_forward.shared_expert.gate_proj"},
    GgufName{"ffn_up_shexp", "feed_forward.shared_expert.up_proj"},
    GgufName{"ffn_down_shexp", "feed_forward.shared_expert.down_proj"},
};
constexpr std::array kLingNames = {
    GgufName{"token_embd", "model.word_embeddings"},
    GgufName{"attn_qkv", "attention.query_key_value"},
    GgufName{"attn_output", "attention.dense"},
    GgufName{"attn_q_norm", "attention.query_layernorm"},
    GgufName{"attn_k_norm", "attention.key_layernorm"},
    GgufName{"exp_probs_b", "mlp.gate.expert_bias", true},
    GgufName{"layer_output_norm", "final_layernorm"},
};
constexpr std::array kHunyuanNames = {
    GgufName{"attn_q_norm", "self_attn.query_layernorm"},
    GgufName{"attn_k_norm", "self_attn.key_layernorm"},
    GgufName{"ffn_gate_shexp", "mlp.shared_mlp.gate_proj"},
    GgufName{"ffn_up_shexp", "mlp.shared_mlp.up_proj"},
    GgufName{"ffn_down_shexp", "mlp.shared_mlp.down_proj"},
};
constexpr std::array kErnieMoeNames = {
    GgufName{"exp_probs_b", "mlp.moe_statics.e_score_correction_bias", true},
};

constexpr std::array kLfm2Names = {
    GgufName{"token_embd_norm", "model.embedding_norm"},
    GgufName{"attn_norm", "operator_norm"},
    GgufName{"ffn_norm", "ffn_norm"},
    GgufName{"attn_output", "self_attn.out_proj"},
    GgufName{"attn_q_norm", "self_attn.q_layernorm"},
    GgufName{"attn_k_norm", "self_attn.k_layernorm"},
    GgufName{"shortconv.conv", "conv.conv"},
    GgufName{"shortconv.in_proj", "conv.in_proj"},
    GgufName{"shortconv.out_proj", "conv.out_proj"},
    GgufName{"ffn_gate", "feed_forward.w1"},
    GgufName{"ffn_up", "feed_forward.w3"},
    GgufName{"ffn_down", "feed_forward.w2"},
    GgufName{"exp_probs_b", "feed_forward.expert_bias", true},
};

constexpr std::array kExpertKeys = {
    GgufKey{"expert_count", "num_local_experts"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
};
constexpr std::array kMinimax3Keys =
    joined(kExpertKeys, std::to_array<GgufKey>({
                            {"expert_feed_forward_length", "intermediate_size"},
                            {"expert_shared_count", "n_shared_experts"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"leading_dense_block_count", "first_k_dense_replace"},
                        }));
constexpr std::array kQwenMoeKeys = {
    GgufKey{"expert_count", "num_experts"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
};
constexpr std::array kGraniteKeys = {
    GgufKey{"attention.scale", "attention_multiplier"},
    GgufKey{"embedding_scale", "embedding_multiplier"},
    GgufKey{"residual_scale", "residual_multiplier"},
    GgufKey{"logit_scale", "logits_scaling"},
};
constexpr std::array kGraniteMoeKeys =
    joined(kGraniteKeys, std::to_array<GgufKey>({
                             {"expert_count", "num_local_experts"},
                             {"expert_used_count", "num_experts_per_tok"},
                             {"expert_shared_feed_forward_length", "shared_intermediate_size"},
                         }));
constexpr std::array kGptOssKeys = {
    GgufKey{"expert_count", "num_local_experts"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
    GgufKey{"expert_feed_forward_length", "intermediate_size"},
};
constexpr std::array kErnieMoeKeys = {
    GgufKey{"expert_count", "moe_num_experts"},
    GgufKey{"expert_used_count", "moe_k"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKey{"expert_shared_count", "moe_num_shared_experts"},
    GgufKey{"leading_dense_block_count", "moe_layer_start_index"},
    GgufKey{"interleave_moe_layer_step", "moe_layer_interval"},
};
constexpr std::array kLfm2Keys = {GgufKey{"shortconv.l_cache", "conv_L_cache"}};
constexpr std::array kLfm2MoeKeys =
    joined(kLfm2Keys, std::to_array<GgufKey>({
                          {"expert_count", "num_experts"},
                          {"expert_used_count", "num_experts_per_tok"},
                          {"expert_feed_forward_length", "moe_intermediate_size"},
                          {"expert_weights_scale", "routed_scaling_factor"},
                          {"leading_dense_block_count", "num_dense_layers"},
                      }));
constexpr std::array kLlama4Keys = {
    GgufKey{"expert_count", "num_local_experts"},
    GgufKey{"expert_used_count", "num_experts_per_tok"},
    GgufKey{"expert_feed_forward_length", "intermediate_size"},
    GgufKey{"interleave_moe_layer_step", "interleave_moe_layer_step"},
};
constexpr std::array kLingKeys =
    joined(kGroupedExpertKeys, std::to_array<GgufKey>({
                                   {"expert_count", "num_experts"},
                                   {"expert_shared_count", "num_shared_experts"},
                                   {"leading_dense_block_count", "first_k_dense_replace"},
                                   {"nextn_predict_layers", "num_nextn_predict_layers"},
                               }));
constexpr std::array kHunyuanKeys = {
    GgufKey{"expert_count", "num_experts"},
    GgufKey{"expert_used_count", "moe_topk"},
    GgufKey{"expert_feed_forward_length", "moe_intermediate_size"},
    GgufKey{"expert_shared_count", "num_shared_expert"},
};
constexpr GgufExpertNames kLlama4Experts = {.router = "feed_forward.router",
                                            .scope = "feed_forward.experts"};
constexpr GgufExpertNames kHunyuanExperts = {.router = "mlp.gate.wg"};
constexpr GgufExpertNames kLfm2Experts = {"feed_forward.gate", "feed_forward.experts", "w1", "w3",
                                          "w2"};
constexpr GgufExpertNames kMixtralExperts = {"block_sparse_moe.gate", "block_sparse_moe.experts",
                                             "w1", "w3", "w2"};

// Sliding-window layers use the same rotary base.
void read_olmo2(GgufConfig& c) {
  if (!c.has("attention.sliding_window")) return;
  c.set("architectures", Json::array({"Olmo3ForCausalLM"}));
  c.ignore("rope.freq_base_swa");
  c.set_window();
}

void read_phi3(GgufConfig& c) {
  c.ignore("rope.scaling.original_context_length");
  c.set_window();
}

void read_qwen3_moe(GgufConfig& c) {
  c.set("norm_topk_prob", true);
}

void expect_sigmoid(GgufConfig& c) {
  c.expect_gating(2, "sigmoid");
}

void read_minimax(GgufConfig& c) {
  expect_sigmoid(c);
  c.set("rotary_dim", c.integer("rope.dimension_count", c.head_dim()));
  c.set("intermediate_size",
        c.integer("expert_feed_forward_length", c.of_all_layers("feed_forward_length")));
}

// The clamp of the experts' activations is not in the file; llama.cpp fixes it.
void read_minimax3(GgufConfig& c) {
  expect_sigmoid(c);
  c.expect(c.flag("expert_weights_norm", true),
           "minimax-m3.expert_weights_norm is false, which is not supported");
  constexpr auto kIndexKeys = std::to_array<GgufKey>({{"head_count", "index_n_heads"},
                                                      {"key_length", "index_head_dim"},
                                                      {"block_size", "index_block_size"},
                                                      {"top_k", "index_topk_blocks"},
                                                      {"local_blocks", "index_local_blocks"}});
  for (const GgufKey& key : kIndexKeys) {
    c.set(key.ours, c.required(fmt::format("attention.indexer.{}", key.theirs)));
  }
  c.set("rotary_dim", c.integer("rope.dimension_count", c.head_dim()));
  c.set("dense_intermediate_size", c.of_all_layers("feed_forward_length"));
  Json types = Json::array();
  for (int64_t i = 0; i < c.layers(); ++i) {
    auto stored = [&](std::string_view module) {
      return c.file().find(fmt::format("model.layers.{}.{}.weight", i, module));
    };
    types.push_back(stored("self_attn.index_q_proj") ? "minimax_m3_sparse" : "full_attention");
    const TensorInfo* shared = stored("block_sparse_moe.shared_experts.gate_proj");
    int64_t count = std::max<int64_t>(c.integer("expert_shared_count", 1), 1);
    if (shared != nullptr) c.set("shared_intermediate_size", shared->shape[0] / count);
  }
  c.set("layer_types", types);
}

void read_glm4_moe(GgufConfig& c) {
  expect_sigmoid(c);
  c.set("use_qk_norm", c.stores("model.layers.0.self_attn.q_norm.weight"));
  c.set("num_nextn_predict_layers", c.integer("nextn_predict_layers", 0));
}

// Granite 4's models without Mamba are of this architecture and state its sizes. Their dense blocks
// are what is a shared expert elsewhere.
void read_granite(GgufConfig& c) {
  for (std::string_view of_mamba : {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count",
                                    "ssm.time_step_rank", "ssm.inner_size"}) {
    c.ignore(of_mamba);
  }
  c.ignore("expert_used_count");  // of dense files
  int64_t width = c.integer("expert_shared_feed_forward_length", 0);
  if (width > 0 && c.integer("expert_count", 0) == 0) c.set("intermediate_size", width);
}

void read_ernie_moe(GgufConfig& c) {
  c.ignore("expert_shared_feed_forward_length");
}

// The file has neither the chunks nor the layers without rotary, which llama.cpp fixes.
void read_llama4(GgufConfig& c) {
  c.set("intermediate_size_mlp", c.of_all_layers("feed_forward_length"));
  c.set("use_qk_norm", c.integer("expert_count", 0) != 128);
  c.set("attn_temperature_tuning", true);
  bool whole = c.has("attention.sliding_window") && c.integer("attention.sliding_window", 0) == 0;
  if (!whole) return c.set("attention_chunk_size", 8192);
  c.set("attention_chunk_size", Json());
  c.set("no_rope_layers", Json(std::vector<int>(as_size(c.layers()), 1)));
}

void read_ling2(GgufConfig& c) {
  expect_sigmoid(c);
  int64_t count = c.integer("expert_shared_count", 0);
  int64_t width = c.integer("expert_shared_feed_forward_length", 0);
  if (count > 0 && width > 0) c.set("moe_shared_expert_intermediate_size", width / count);
}

void read_hunyuan(GgufConfig& c) {
  c.ignore("rope.scaling.original_context_length");
  c.ignore("expert_shared_feed_forward_length");
}

constexpr GgufArchitecture kLfm2 = {
    .name = "lfm2",
    .family = "Lfm2ForCausalLM",
    .names = kLfm2Names,
    .keys = kLfm2Keys,
    .eps_key = "norm_eps",
    .bias_key = "",
    .recurrence = "conv",
    .rest = [](GgufConfig& c) { c.set("block_auto_adjust_ff_dim", false); }};
constexpr GgufArchitecture kLfm2Moe = [] {
  GgufArchitecture a = kLfm2;
  a.name = "lfm2moe";
  a.family = a.sparse_family = "Lfm2MoeForCausalLM";
  a.keys = kLfm2MoeKeys;
  a.experts = kLfm2Experts;
  a.rest = expect_sigmoid;
  return a;
}();

constexpr GgufArchitecture kNemotron = {.name = "nemotron_h",
                                        .family = "NemotronHForCausalLM",
                                        .interleaved = true,
                                        .names_prediction = true,
                                        .single_blocks = true,
                                        .scope = "backbone",
                                        .names = kNemotronNames,
                                        .keys = kNemotronKeys,
                                        .experts = kNemotronExperts,
                                        .eps_key = "layer_norm_epsilon",
                                        .bias_key = "",
                                        .recurrence = "mamba",
                                        .rest = read_nemotron_h};
constexpr GgufArchitecture kNemotronMoe = [] {
  GgufArchitecture a = kNemotron;
  a.name = "nemotron_h_moe";
  a.sparse_family = a.family;
  return a;
}();

constexpr std::array kArchitectures = {
    GgufArchitecture{.name = "bailingmoe2",
                     .family = "BailingMoeV2ForCausalLM",
                     .sparse_family = "BailingMoeV2ForCausalLM",
                     .names = kLingNames,
                     .keys = kLingKeys,
                     .bias_key = "",
                     .rest = read_ling2},
    GgufArchitecture{.name = "bailingmoe3",
                     .family = "BailingMoeV3ForCausalLM",
                     .sparse_family = "BailingMoeV3ForCausalLM",
                     .names = kLing3Names,
                     .keys = kLing3Keys,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_ling3},
    GgufArchitecture{.name = "deepseek2",
                     .family = "DeepseekV3ForCausalLM",
                     .sparse_family = "DeepseekV3ForCausalLM",
                     .names = kDeepseekNames,
                     .keys = kDeepseekKeys,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_deepseek2},
    GgufArchitecture{.name = "deepseek32",
                     .family = "DeepseekV32ForCausalLM",
                     .sparse_family = "DeepseekV32ForCausalLM",
                     .names = kDeepseekNames,
                     .keys = kDeepseekKeys,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_token_index},
    GgufArchitecture{.name = "ernie4_5", .family = "Ernie4_5ForCausalLM", .bias_key = "use_bias"},
    GgufArchitecture{.name = "ernie4_5-moe",
                     .family = "Ernie4_5_MoeForCausalLM",
                     .sparse_family = "Ernie4_5_MoeForCausalLM",
                     .names = kErnieMoeNames,
                     .keys = kErnieMoeKeys,
                     .bias_key = "use_bias",
                     .rest = read_ernie_moe},
    GgufArchitecture{.name = "exaone4",
                     .family = "Exaone4ForCausalLM",
                     .bias_key = "",
                     .rest = [](GgufConfig& c) { c.set_window(); }},
    GgufArchitecture{.name = "gemma2",
                     .family = "Gemma2ForCausalLM",
                     .norms_plus_one = true,
                     .names = kGemmaNames,
                     .keys = kGemmaKeys,
                     .rest = read_gemma2},
    GgufArchitecture{.name = "gemma3",
                     .family = "Gemma3ForCausalLM",
                     .norms_plus_one = true,
                     .names = kGemmaNames,
                     .keys = kGemmaKeys,
                     .rest = read_gemma3},
    GgufArchitecture{.name = "gemma4",
                     .family = "Gemma4ForCausalLM",
                     .sparse_family = "Gemma4ForCausalLM",
                     .mixed_layers = true,
                     .names = kGemma4Names,
                     .keys = kGemma4Keys,
                     .experts = kGemma4Experts,
                     .rest = read_gemma4},
    GgufArchitecture{.name = "glm-dsa",
                     .family = "GlmMoeDsaForCausalLM",
                     .sparse_family = "GlmMoeDsaForCausalLM",
                     .names = kDeepseekNames,
                     .keys = kDeepseekKeys,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_token_index},
    GgufArchitecture{.name = "glm4", .family = "Glm4ForCausalLM", .names = kGlm4Names},
    GgufArchitecture{.name = "glm4moe",
                     .family = "Glm4MoeForCausalLM",
                     .sparse_family = "Glm4MoeForCausalLM",
                     .keys = kDeepseekKeys,
                     .rest = read_glm4_moe},
    GgufArchitecture{.name = "gpt-oss",
                     .family = "GptOssForCausalLM",
                     .sparse_family = "GptOssForCausalLM",
                     .names = kGptOssNames,
                     .keys = kGptOssKeys,
                     .rest = [](GgufConfig& c) { c.set_window(); }},
    GgufArchitecture{.name = "granite",
                     .family = "GraniteForCausalLM",
                     .interleaved = true,
                     .keys = kGraniteKeys,
                     .rest = read_granite},
    GgufArchitecture{.name = "granitehybrid",
                     .family = "GraniteMoeHybridForCausalLM",
                     .sparse_family = "GraniteMoeHybridForCausalLM",
                     .interleaved = true,
                     .names = kGraniteHybridNames,
                     .keys = kGraniteHybridKeys,
                     .experts = kGraniteExperts,
                     .bias_key = "",
                     .recurrence = "mamba",
                     .rest = read_granite_hybrid},
    GgufArchitecture{.name = "granitemoe",
                     .family = "GraniteMoeSharedForCausalLM",
                     .sparse_family = "GraniteMoeSharedForCausalLM",
                     .interleaved = true,
                     .names = kGraniteMoeNames,
                     .keys = kGraniteMoeKeys,
                     .experts = kGraniteExperts,
                     .rest = read_granite},
    GgufArchitecture{.name = "hunyuan-dense",
                     .family = "HunYuanDenseV1ForCausalLM",
                     .names = kHunyuanNames,
                     .rest = read_hunyuan},
    GgufArchitecture{.name = "hunyuan-moe",
                     .family = "HunYuanMoEV1ForCausalLM",
                     .sparse_family = "HunYuanMoEV1ForCausalLM",
                     .names = kHunyuanNames,
                     .keys = kHunyuanKeys,
                     .experts = kHunyuanExperts,
                     .rest = read_hunyuan},
    GgufArchitecture{.name = "kimi-linear",
                     .family = "KimiLinearForCausalLM",
                     .sparse_family = "KimiLinearForCausalLM",
                     .names = kKimiLinearNames,
                     .keys = kKimiLinearKeys,
                     .experts = kKimiLinearExperts,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_kimi_linear},
    kLfm2,
    kLfm2Moe,
    GgufArchitecture{.name = "llama",
                     .family = "LlamaForCausalLM",
                     .sparse_family = "MixtralForCausalLM",
                     .interleaved = true,
                     .keys = kExpertKeys,
                     .experts = kMixtralExperts},
    GgufArchitecture{.name = "llama4",
                     .family = "Llama4ForCausalLM",
                     .sparse_family = "Llama4ForCausalLM",
                     .names = kLlama4Names,
                     .keys = kLlama4Keys,
                     .experts = kLlama4Experts,
                     .rest = read_llama4},
    GgufArchitecture{.name = "minimax-m2",
                     .family = "MiniMaxM2ForCausalLM",
                     .sparse_family = "MiniMaxM2ForCausalLM",
                     .names = kMinimaxNames,
                     .keys = kExpertKeys,
                     .experts = kMixtralExperts,
                     .rest = read_minimax},
    GgufArchitecture{.name = "minimax-m3",
                     .family = "MiniMaxM3SparseForCausalLM",
                     .sparse_family = "MiniMaxM3SparseForCausalLM",
                     .norms_plus_one = true,
                     .names = kMinimax3Names,
                     .keys = kMinimax3Keys,
                     .experts = kMixtralExperts,
                     .bias_key = "",
                     .rest = read_minimax3},
    GgufArchitecture{.name = "mistral3", .family = "Ministral3ForCausalLM", .interleaved = true},
    GgufArchitecture{.name = "mistral4",
                     .family = "Mistral4ForCausalLM",
                     .sparse_family = "Mistral4ForCausalLM",
                     .names = kDeepseekNames,
                     .keys = kDeepseekKeys,
                     .bias_key = "",
                     .latent = true,
                     .rest = read_mistral4},
    kNemotron,
    kNemotronMoe,
    GgufArchitecture{.name = "olmo2", .family = "Olmo2ForCausalLM", .rest = read_olmo2},
    GgufArchitecture{
        .name = "phi3", .family = "Phi3ForCausalLM", .names = kPhi3Names, .rest = read_phi3},
    GgufArchitecture{.name = "qwen2", .family = "Qwen2ForCausalLM"},
    GgufArchitecture{.name = "qwen3", .family = "Qwen3ForCausalLM"},
    GgufArchitecture{.name = "qwen35",
                     .family = "Qwen3_5ForCausalLM",
                     .norms_plus_one = true,
                     .tiled_values = true,
                     .names_prediction = true,
                     .names = kGatedDeltaNames,
                     .keys = kGatedDeltaKeys,
                     .bias_key = "",
                     .rest = read_qwen3_5},
    GgufArchitecture{.name = "qwen35moe",
                     .family = "Qwen3_5MoeForCausalLM",
                     .sparse_family = "Qwen3_5MoeForCausalLM",
                     .norms_plus_one = true,
                     .tiled_values = true,
                     .names_prediction = true,
                     .names = kGatedDeltaNames,
                     .keys = kGatedDeltaKeys,
                     .bias_key = "",
                     .rest = read_qwen3_5},
    GgufArchitecture{.name = "qwen3moe",
                     .family = "Qwen3MoeForCausalLM",
                     .sparse_family = "Qwen3MoeForCausalLM",
                     .keys = kQwenMoeKeys,
                     .rest = read_qwen3_moe},
    GgufArchitecture{.name = "qwen3next",
                     .family = "Qwen3NextForCausalLM",
                     .sparse_family = "Qwen3NextForCausalLM",
                     .norms_plus_one = true,
                     .names_prediction = true,
                     .names = kGatedDeltaNames,
                     .keys = kGatedDeltaKeys,
                     .bias_key = "",
                     .rest = read_qwen3_next},
    GgufArchitecture{.name = "seed_oss",
                     .family = "SeedOssForCausalLM",
                     .rest =
                         [](GgufConfig& c) {
                           c.set("attention_out_bias",
                                 c.stores("model.layers.0.self_attn.o_proj.bias"));
                         }},
    GgufArchitecture{.name = "smollm3", .family = "SmolLM3ForCausalLM", .interleaved = true},
};

// The name of a layer's module below "model.layers.<i>."; "" if it is unknown.
std::string layer_module(const GgufArchitecture& a, std::string_view module, bool& whole) {
  auto look_up = [&](std::span<const GgufName> names) -> std::string_view {
    auto found = std::ranges::find(names, module, &GgufName::theirs);
    if (found == names.end()) return "";
    whole = found->whole;
    return found->ours;
  };
  if (std::string_view own = look_up(a.names); !own.empty()) return std::string(own);
  const GgufExpertNames& e = a.experts;
  auto of_all = [&](std::string_view projection) {
    return fmt::format("{}.{}.{}", e.scope, kGgufExpert, projection);
  };
  if (module == "ffn_gate_inp") return std::string(e.router);
  if (module == "ffn_gate_exps") return of_all(e.gate);
  if (module == "ffn_up_exps") return of_all(e.up);
  if (module == "ffn_down_exps") return of_all(e.down);
  if (module == "ffn_gate_up_exps") return of_all(std::string_view(&kGgufGateUp, 1));
  return std::string(look_up(kLayerNames));
}

}  // namespace

Result<const GgufArchitecture*> find_gguf_architecture(std::string_view name,
                                                       std::string_view path) {
  auto found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  if (found != kArchitectures.end()) return &*found;
  std::vector<std::string_view> names;
  for (const GgufArchitecture& architecture : kArchitectures) names.push_back(architecture.name);
  return unsupported("{}: general.architecture {} is not supported; supported: {}", path,
                     quote(name), fmt::join(names, ", "));
}

std::string gguf_tensor_name(const GgufArchitecture& architecture, std::string_view name) {
  // Vectors of recurrent layers and factors of experts have no ".weight".
  bool bare = name.ends_with(".ssm_a") || name.ends_with(".ssm_d") || name.ends_with(".scale");
  size_t dot = bare ? name.size() : name.rfind('.');
  if (dot == name.npos) return std::string(name);
  std::string_view module = name.substr(0, dot), leaf = name.substr(dot);
  constexpr std::string_view kLayer = "blk.";
  if (!module.starts_with(kLayer)) {
    for (std::span<const GgufName> names :
         {architecture.names, std::span<const GgufName>(kTopNames)}) {
      auto found = std::ranges::find(names, module, &GgufName::theirs);
      if (found != names.end()) return fmt::format("{}{}", found->ours, leaf);
    }
    return std::string(name);
  }
  std::string_view rest = module.substr(kLayer.size());
  size_t end = std::min(rest.find('.'), rest.size());
  bool whole = false;
  std::string ours = layer_module(architecture, rest.substr(std::min(end + 1, rest.size())), whole);
  if (ours.empty()) return std::string(name);
  return fmt::format("{}.layers.{}.{}{}", architecture.scope, rest.substr(0, end), ours,
                     whole ? "" : leaf);
}

}  // namespace banyan
