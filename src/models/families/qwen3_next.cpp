// Qwen3-Next, Qwen3.5 and Qwen3.6: Gated DeltaNet in most layers, gated attention with rotary on a
// quarter of each head in the rest. Norm weights are stored minus one. MLPs are dense, or MoE with
// a gated shared expert. Qwen3.5 renames the Gated DeltaNet projections; Qwen3.6 has Qwen3.5's
// layers.
#include <algorithm>

#include "base/signed.h"
#include "models/config/rope.h"
#include "models/config/router.h"
#include "models/hybrid.h"
#include "models/registry.h"

namespace banyan {
namespace {

std::vector<bool> read_full_attention_layers(const ConfigFile& config, int64_t layers) {
  if (config.has("layer_types")) {
    config.ignore({"full_attention_interval"});
    return latent_layers_of_types(config, layers);
  }
  int64_t interval = config.integer_or("full_attention_interval", 4, 1, kLayersMax);
  std::vector<bool> attention;
  for (int64_t i = 0; i < layers; ++i) attention.push_back((i + 1) % interval == 0);
  return attention;
}

GqaConfig read_attention(const ConfigFile& config, SparseConfig& c, int64_t kv_heads) {
  GqaConfig attention = read_gqa(config, c.decoder, {.kv_heads = kv_heads, .head_dim = 256});
  attention.qkv_bias = attention.output_bias = config.flag_or("attention_bias", false);
  attention.head_norms = attention.gated = true;
  attention.norm_weight = c.decoder.norm_weight;
  double part = read_partial_rotary_factor(config, 0.25);
  auto rotary_dim = static_cast<int64_t>(part * attention.head_dim);
  config.expect(rotary_dim >= 2 && rotary_dim % 2 == 0,
                "the rotary dimension {} of a head's {} must be even, 2 or more", rotary_dim,
                attention.head_dim);
  c.context_tokens = read_rotation(config, std::max<int64_t>(rotary_dim / 2 * 2, 2),
                                   {.context_tokens = 32768, .partial = true}, c.decoder);
  config.only("attn_output_gate", {true});
  return attention;
}

GatedDeltaConfig read_recurrence(const ConfigFile& config, const DecoderConfig& decoder) {
  GatedDeltaConfig c{.hidden = decoder.hidden, .eps = decoder.eps};
  c.key_heads = config.integer_or("linear_num_key_heads", 16, 1, kHeadsMax);
  c.value_heads = config.integer_or("linear_num_value_heads", 32, 1, kHeadsMax);
  c.key_dim = config.integer_or("linear_key_head_dim", 128, 1, kHeadDimMax);
  c.value_dim = config.integer_or("linear_value_head_dim", 128, 1, kHeadDimMax);
  c.taps = config.integer_or("linear_conv_kernel_dim", 4, 2, 64);
  config.expect(c.value_heads % c.key_heads == 0,
                "linear_num_value_heads {} is not a multiple of linear_num_key_heads {}",
                c.value_heads, c.key_heads);
  c.value_heads = std::max(c.value_heads / c.key_heads, int64_t{1}) * c.key_heads;
  config.only("mamba_ssm_dtype", {"float32"});
  c.tiled_values = config.flag_or("tiled_value_heads", false);  // of a GGUF file
  return c;
}

void read_experts(const ConfigFile& config, SparseConfig& c, int64_t experts, int64_t top_k) {
  // The width of all shared experts together; their sum is gated.
  int64_t shared = config.integer_or("shared_expert_intermediate_size", 512, 1, kWidthMax);
  c.moe = read_moe(
      config, c.decoder.hidden,
      {.router = {.experts = experts, .top_k = top_k, .normalise = RouterFlag::unless_said(true)},
       .intermediate = ExpertWidth::unless_said(512),
       .shared_intermediate = ExpertWidth::fixed(shared)});
  c.moe.shared_name = "shared_expert";
  c.moe.shared_gate_name = "shared_expert_gate";
  c.moe_layers = read_stepped_moe_layers(config, c.decoder.layers);
}

// The MTP layers are in a scope of their own. Only the first is loaded.
void read_prediction(const ConfigFile& config, const Builder& mtp, SparseConfig& c) {
  std::string_view key = config.name_of({"mtp_num_hidden_layers", "num_nextn_predict_layers"});
  int64_t stored = mtp.has("fc.weight") ? 1 : 0;  // Qwen3-Next's configs do not say
  int64_t count = config.integer_or(key, stored, 0, kLayersMax);
  c.predicts = mtp.prediction() && count > 0;
  if (c.predicts) {
    config.only("mtp_use_dedicated_embeddings", {false});
    for (int64_t i = 1; i < count; ++i) (mtp / "layers" / i).ignore_scope();
  } else {
    config.ignore({"mtp_use_dedicated_embeddings"});
    mtp.ignore_scope();
  }
  c.prediction = {.scope = "mtp",
                  .layer = "layers.0",
                  .token_norm = "pre_fc_norm_embedding",
                  .hidden_norm = "pre_fc_norm_hidden",
                  .join = "fc",
                  .norm = "norm"};
}

HybridConfig read_common(const ConfigFile& config, const Builder& b, int64_t kv_heads) {
  HybridConfig c{.recurrence_scope = "linear_attn"};
  c.sparse.decoder = read_decoder(config, b);
  c.sparse.decoder.norm_weight = NormWeight::kLessOne;
  c.attention = read_attention(config, c.sparse, kv_heads);
  c.recurrence = read_recurrence(config, c.sparse.decoder);
  c.attention_layers = read_full_attention_layers(config, c.sparse.decoder.layers);
  read_prediction(config, b / "mtp", c.sparse);
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_qwen3_next(const ConfigFile& config, Builder b) {
  HybridConfig c = read_common(config, b, 2);
  std::get<GatedDeltaConfig>(c.recurrence).fused_by_head = true;
  c.sparse.intermediate = config.integer_or("intermediate_size", 5632, 1, kWidthMax);
  read_experts(config, c.sparse, 512, 10);
  return make_hybrid(config, b, c);
}

Result<std::unique_ptr<Model>> load_qwen3_5(const ConfigFile& config, Builder b) {
  HybridConfig c = read_common(config, b, 4);
  c.sparse.intermediate = config.integer_or("intermediate_size", 12288, 1, kWidthMax);
  c.sparse.moe_layers = filled(c.sparse.decoder.layers, false);
  return make_hybrid(config, b, c);
}

Result<std::unique_ptr<Model>> load_qwen3_5_moe(const ConfigFile& config, Builder b) {
  HybridConfig c = read_common(config, b, 2);
  read_experts(config, c.sparse, 256, 8);
  return make_hybrid(config, b, c);
}

}  // namespace banyan
