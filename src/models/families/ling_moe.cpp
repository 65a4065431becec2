#include "models/families/ling_moe.h"

namespace banyan {

void read_ling_moe(const ConfigFile& config, SparseConfig& c, const LingMoeDefaults& defaults) {
  // The authors' names come first, transformers' second.
  c.attention = "attention";
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = {.hidden = c.decoder.hidden, .bias_name = "gate.expert_bias"};
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  int64_t shared =
      config.integer_or(config.name_of({"num_shared_experts", "n_shared_experts"}), 0, 0, 64);
  c.moe.shared_intermediate = shared * config.integer_or("moe_shared_expert_intermediate_size",
                                                         c.moe.intermediate, 1, kWidthMax);
  c.moe.selection_bias = config.flag_or("moe_router_enable_expert_bias", true);
  RouterShape& r = c.moe.router;
  r.experts = config.integer(config.name_of({"num_experts", "num_local_experts"}), 1, kExpertsMax);
  r.top_k = config.integer(config.name_of({"num_experts_per_tok", "num_experts_per_token"}), 1,
                           kExpertsMax);
  r.groups = config.integer_or(config.name_of({"n_group", "num_expert_group"}), defaults.groups, 1,
                               kExpertsMax);
  r.top_groups = config.integer_or("topk_group", defaults.top_groups, 1, kExpertsMax);
  r.score = RouterScore::kSigmoid;
  r.normalise = r.top_k > 1 || defaults.normalises_one;  // norm_topk_prob is true, see below
  r.scale =
      static_cast<float>(config.number_or("routed_scaling_factor", defaults.scale, 1e-6, 1e6));
  c.moe_layers = read_moe_layers(config, c.decoder.layers, defaults.dense_layers);
  config.only("score_function", {"sigmoid"});
  config.only("scoring_func", {"sigmoid"});
  config.only("topk_method", {"noaux_tc"});
  config.only(config.name_of({"norm_topk_prob", "moe_renormalize"}), {true});
  config.only("router_dtype", {"fp32", "float32"});
  for (const char* key : {"use_bias", "use_qkv_bias", "use_sliding_window", "use_nGPT",
                          "value_norm", "up_proj_norm", "scale_router_input"}) {
    config.only(key, {false});
  }
  config.ignore({"max_window_layers", "sliding_window", "rope_interleave"});
}

}  // namespace banyan
