#include "models/bailing.h"

#include <algorithm>
#include <string>

namespace banyan {
namespace {

// The name that the config has for something: the authors' comes first, transformers' second.
std::string_view named(const ConfigFile& config, std::string_view first, std::string_view second) {
  return config.has(second) && !config.has(first) ? second : first;
}

// By `mlp_layer_types`, or all behind the first few.
std::vector<bool> read_moe_layers(const ConfigFile& config, int64_t layers) {
  std::vector<std::string> types = config.texts("mlp_layer_types");
  config.expect(types.empty() || std::ssize(types) == layers,
                "mlp_layer_types has {} entries for {} layers", types.size(), layers);
  int64_t dense = config.integer_or("first_k_dense_replace", 0, 0, kLayersMax);
  std::vector<bool> moe_layers;
  for (int64_t i = 0; i < layers; ++i) moe_layers.push_back(i >= dense);
  for (size_t i = 0; i < std::min(types.size(), moe_layers.size()); ++i) {
    moe_layers[i] = types[i] == "sparse";
    config.expect(moe_layers[i] || types[i] == "dense", "mlp_layer_types: \"{}\" is not supported",
                  types[i]);
  }
  return moe_layers;
}

}  // namespace

void read_bailing_moe(const ConfigFile& config, SparseConfig& c) {
  c.attention = "attention";
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = {.hidden = c.decoder.hidden, .bias_name = "gate.expert_bias"};
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  int64_t shared =
      config.integer_or(named(config, "num_shared_experts", "n_shared_experts"), 0, 0, 64);
  c.moe.shared_intermediate = shared * config.integer_or("moe_shared_expert_intermediate_size",
                                                         c.moe.intermediate, 1, kWidthMax);
  c.moe.selection_bias = config.flag_or("moe_router_enable_expert_bias", true);
  RouterShape& r = c.moe.router;
  r.experts = config.integer(named(config, "num_experts", "num_local_experts"), 1, kExpertsMax);
  r.top_k =
      config.integer(named(config, "num_experts_per_tok", "num_experts_per_token"), 1, kExpertsMax);
  r.groups = config.integer_or(named(config, "n_group", "num_expert_group"), 1, 1, kExpertsMax);
  r.top_groups = config.integer_or("topk_group", 1, 1, kExpertsMax);
  r.score = RouterScore::kSigmoid;
  r.normalise = r.top_k > 1;  // whatever norm_topk_prob says
  r.scale = static_cast<float>(config.number_or("routed_scaling_factor", 1, 1e-6, 1e6));
  c.moe_layers = read_moe_layers(config, c.decoder.layers);
  config.only("score_function", {"sigmoid"});
  config.only("scoring_func", {"sigmoid"});
  config.only("topk_method", {"noaux_tc"});
  config.only(named(config, "norm_topk_prob", "moe_renormalize"), {true});
  config.only("router_dtype", {"fp32", "float32"});
  for (const char* key : {"use_bias", "use_qkv_bias", "use_sliding_window", "use_nGPT",
                          "value_norm", "up_proj_norm", "scale_router_input"}) {
    config.only(key, {false});
  }
  config.ignore({"max_window_layers", "embedding_dropout", "output_dropout", "rope_interleave"});
}

}  // namespace banyan
