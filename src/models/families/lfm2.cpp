// LFM2: gated short convolutions in most layers, attention with QK norm in the rest. MLPs are
// dense; MoE models have a few dense layers, then sigmoid-routed experts with a selection bias.
#include <algorithm>

#include "base/divide.h"
#include "base/signed.h"
#include "models/config/router.h"
#include "models/hybrid.h"
#include "models/registry.h"

namespace banyan {
namespace {

// From `layer_types`, else from the list of attention layers, else all.
std::vector<bool> read_attention_layers(const ConfigFile& config, int64_t layers) {
  if (config.has("layer_types")) {
    config.ignore({"full_attn_idxs"});
    return layers_of_type(config, "layer_types", "full_attention", "conv", layers);
  }
  std::vector<bool> attention = filled(layers, !config.has("full_attn_idxs"));
  for (int64_t i : config.integers("full_attn_idxs", 0, layers - 1)) {
    at(attention, i) = true;
  }
  return attention;
}

// The given width may be that of an ungated MLP. Then the gated one has two thirds of it, rounded
// up.
int64_t read_intermediate(const ConfigFile& config) {
  int64_t width =
      config.integer_or(config.name_of({"block_ff_dim", "intermediate_size"}), 12288, 1, kWidthMax);
  double factor = config.number_or("block_ffn_dim_multiplier", 1, 1e-3, 1e3);
  int64_t multiple = config.integer_or("block_multiple_of", 256, 1, kWidthMax);
  if (!config.flag_or("block_auto_adjust_ff_dim", true)) return width;
  width = static_cast<int64_t>(factor * (2 * width / 3));
  return std::max<int64_t>(divide_up(width, multiple), 1) * multiple;
}

HybridConfig read_common(const ConfigFile& config, const Builder& b) {
  HybridConfig c{.style = {.norms = {.mixer = {.in = "operator_norm"}, .ffn = {.in = "ffn_norm"}}},
                 .recurrence_scope = "conv"};
  SparseConfig& sparse = c.sparse;
  sparse.moe_scope = sparse.dense_scope = "feed_forward";
  sparse.decoder = read_decoder(config, b, {.eps_key = "norm_eps", .eps = 1e-5});
  sparse.decoder.norm = "embedding_norm";
  sparse.names = {.gate = "w1", .up = "w3", .down = "w2"};
  sparse.moe_layers = filled(sparse.decoder.layers, false);
  GqaConfig attention = read_gqa(config, sparse.decoder, {.kv_heads = 8});
  attention.head_norms = true;
  attention.names = {.output = "out_proj", .q_norm = "q_layernorm", .k_norm = "k_layernorm"};
  sparse.context_tokens = read_rotation(config, attention.head_dim, {128000, 1e6}, sparse.decoder);
  c.attention = attention;
  GatedConvConfig conv{.hidden = sparse.decoder.hidden};
  conv.taps = config.integer_or("conv_L_cache", 3, 2, 64);
  conv.bias = config.flag_or("conv_bias", false);
  c.recurrence = conv;
  c.attention_layers = read_attention_layers(config, sparse.decoder.layers);
  // The tensors show these, and published configs repeat the widths under other keys.
  config.only("block_use_swiglu", {true});
  config.only("use_pos_enc", {true});
  config.ignore({"tie_embedding", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "block_dim",
                 "block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                 "block_use_xavier_init", "num_heads", "theta"});
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_lfm2(const ConfigFile& config, Builder b) {
  HybridConfig c = read_common(config, b);
  c.sparse.intermediate = read_intermediate(config);
  return make_hybrid(config, b, c);
}

Result<std::unique_ptr<Model>> load_lfm2_moe(const ConfigFile& config, Builder b) {
  HybridConfig c = read_common(config, b);
  SparseConfig& sparse = c.sparse;
  sparse.intermediate = config.integer_or("intermediate_size", 7168, 1, kWidthMax);
  sparse.moe = read_moe(config, sparse.decoder.hidden,
                        {.router = {.experts = 32,
                                    .top_k = 4,
                                    .score = RouterScore::kSigmoid,
                                    .normalise = RouterFlag::unless_said(true),
                                    .bias = RouterFlag::unless_said(true),
                                    .scale = 1},
                         .intermediate = ExpertWidth::unless_said(1792)});
  sparse.moe.bias_name = "expert_bias";
  sparse.moe.expert_names = sparse.names;
  int64_t dense = config.integer_or("num_dense_layers", 2, 0, kLayersMax);
  for (int64_t i = 0; i < sparse.decoder.layers; ++i) {
    at(sparse.moe_layers, i) = i >= dense;
  }
  return make_hybrid(config, b, c);
}

}  // namespace banyan
