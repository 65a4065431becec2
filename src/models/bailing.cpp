#include "models/bailing.h"

namespace banyan {

void read_bailing_moe(const ConfigFile& config, SparseConfig& c) {
  c.attention = "attention";
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = {.hidden = c.decoder.hidden, .bias_name = "gate.expert_bias"};
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  int64_t shared = config.integer_or("num_shared_experts", 0, 0, 64);
  c.moe.shared_intermediate = shared * config.integer_or("moe_shared_expert_intermediate_size",
                                                         c.moe.intermediate, 1, kWidthMax);
  c.moe.selection_bias = config.flag_or("moe_router_enable_expert_bias", true);
  RouterShape& r = c.moe.router;
  r.experts = config.integer("num_experts", 1, kExpertsMax);
  r.top_k = config.integer("num_experts_per_tok", 1, kExpertsMax);
  r.groups = config.integer_or("n_group", 1, 1, kExpertsMax);
  r.top_groups = config.integer_or("topk_group", 1, 1, kExpertsMax);
  r.score = RouterScore::kSigmoid;
  r.normalise = r.top_k > 1;  // whatever norm_topk_prob says
  r.scale = static_cast<float>(config.number_or("routed_scaling_factor", 1, 1e-6, 1e6));
  int64_t dense = config.integer_or("first_k_dense_replace", 0, 0, kLayersMax);
  for (int64_t i = 0; i < c.decoder.layers; ++i) c.moe_layers.push_back(i >= dense);
  config.only("score_function", {"sigmoid"});
  config.only("scoring_func", {"sigmoid"});
  config.only("topk_method", {"noaux_tc"});
  config.only("norm_topk_prob", {true});
  config.only("router_dtype", {"fp32", "float32"});
  for (const char* key : {"use_bias", "use_qkv_bias", "use_sliding_window", "use_nGPT",
                          "value_norm", "up_proj_norm", "scale_router_input"}) {
    config.only(key, {false});
  }
  config.ignore({"max_window_layers", "embedding_dropout", "output_dropout", "rope_interleave"});
}

}  // namespace banyan
