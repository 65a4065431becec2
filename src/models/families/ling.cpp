#include "models/families/ling.h"

namespace banyan {
namespace {

// Which layers use MLA: from `layer_types`, else the last of every group and any left over at the
// end.
std::vector<bool> read_latent_layers(const ConfigFile& config, int64_t layers) {
  if (config.has("layer_types")) {
    config.ignore({"layer_group_size"});
    return latent_layers_of_types(config, layers);
  }
  int64_t group = config.integer("layer_group_size", 1, kLayersMax);
  std::vector<bool> latent;
  for (int64_t i = 0; i < layers; ++i) {
    latent.push_back((i + 1) % group == 0 || i >= layers / group * group);
  }
  return latent;
}

}  // namespace

void read_ling_moe(const ConfigFile& config, SparseConfig& c, const LingMoeDefaults& defaults) {
  c.attention = "attention";
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = read_moe(config, c.decoder.hidden,
                   {.router = {.score = RouterScore::kSigmoid,
                               .bias = RouterFlag::unless_said(true),
                               .scale = defaults.scale,
                               .groups = defaults.groups},
                    .shared = 0,
                    .shared_intermediate = ExpertWidth::unless_said(0)});
  c.moe.bias_name = "gate.expert_bias";
  c.moe.router.normalise = c.moe.router.top_k > 1 || defaults.normalises_one;
  c.moe_layers = read_moe_layers(config, c.decoder.layers, defaults.dense_layers);
  for (const char* key : {"use_bias", "use_qkv_bias", "use_sliding_window", "use_nGPT",
                          "value_norm", "up_proj_norm", "scale_router_input"}) {
    config.only(key, {false});
  }
  config.ignore({"max_window_layers", "sliding_window", "rope_interleave"});
}

HybridConfig read_ling_hybrid(const ConfigFile& config, Builder b, const LingDefaults& defaults) {
  HybridConfig c;
  SparseConfig& sparse = c.sparse;
  sparse.decoder = read_decoder(config, b, {.embedding = "word_embeddings"});
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  int64_t context = config.integer_or("model_max_length", 32768, 1, kContextMax);
  sparse.context_tokens =
      read_rotation(config, rope_dim, {context, defaults.theta, true}, sparse.decoder);
  MlaConfig mla = read_mla(config, b, sparse.decoder);
  mla.output_name = "dense";
  c.attention = mla;
  read_ling_moe(config, sparse, defaults.moe);
  c.limits = config.numbers("expert_swiglu_limit_list", 0, 1e6);
  c.shared_limits = config.numbers("share_expert_swiglu_limit_list", 0, 1e6);
  c.attention_layers = read_latent_layers(config, sparse.decoder.layers);
  // MLA's rotary dimension is already in qk_rope_head_dim.
  config.ignore({"rotary_dim", "mtp_loss_scaling_factor"});
  config.only("use_mla_nope", {false});
  sparse.predicts =
      take_prediction_layer(config, b / sparse.decoder.scope / "layers", sparse.decoder.layers);
  sparse.prediction.norm = "final_layernorm";
  return c;
}

}  // namespace banyan
