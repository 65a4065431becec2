#include "models/families/ling_moe.h"

namespace banyan {

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

}  // namespace banyan
