// Kimi-Linear: Kimi Delta Attention with gates of low rank, MLA without rotation, experts
// (Kimi Team 2025, arXiv:2510.26692).
#include <algorithm>

#include "models/hybrid.h"
#include "models/registry.h"

namespace banyan {
namespace {

// Layers are counted from 1, and each is in one of the two lists.
std::vector<bool> latent_layers_of_lists(const ConfigFile& lists, int64_t layers) {
  std::vector<int> kinds(static_cast<size_t>(layers));
  auto mark = [&](std::string_view key, int kind) {
    for (int64_t layer : lists.integers(key, 1, layers)) {
      int& entry = kinds[static_cast<size_t>(std::clamp<int64_t>(layer, 1, layers) - 1)];
      lists.expect(entry == 0, "{} has layer {}, which was listed before", key, layer);
      entry = kind;
    }
  };
  mark("kda_layers", 1);
  mark("full_attn_layers", 2);
  std::vector<bool> latent;
  for (int64_t i = 0; i < layers; ++i) {
    int kind = kinds[static_cast<size_t>(i)];
    lists.expect(kind != 0, "layer {} is in neither kda_layers nor full_attn_layers", i + 1);
    latent.push_back(kind == 2);
  }
  return latent;
}

KdaConfig read_kda(const ConfigFile& linear, const DecoderConfig& decoder) {
  KdaConfig kda{.hidden = decoder.hidden, .low_rank_gates = true, .eps = decoder.eps};
  kda.heads = linear.integer("num_heads", 1, kHeadsMax);
  kda.head_dim = linear.integer("head_dim", 1, kHeadDimMax);
  kda.taps = linear.integer_or("short_conv_kernel_size", 4, 2, 64);
  std::optional<double> bound = linear.maybe_number("gate_lower_bound", -1e3, -1e-6);
  if (bound) kda.lower_bound = static_cast<float>(*bound);
  linear.only("use_full_rank_gate", {false});
  linear.only("kda_layer_index_base", {1});
  return kda;
}

void read_experts(const ConfigFile& config, SparseConfig& c) {
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe.hidden = c.decoder.hidden;
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  c.moe.shared_intermediate =
      c.moe.intermediate * config.integer_or("num_shared_experts", 0, 0, 64);
  c.moe.selection_bias = true;
  c.moe.expert_names = {.gate = "w1", .up = "w3", .down = "w2"};
  RouterShape& r = c.moe.router;
  r.experts = config.integer("num_experts", 1, kExpertsMax);
  std::string_view top_k =
      config.has("num_experts_per_tok") ? "num_experts_per_tok" : "num_experts_per_token";
  r.top_k = config.integer(top_k, 1, kExpertsMax);
  r.groups = config.integer_or("num_expert_group", 1, 1, kExpertsMax);
  r.top_groups = config.integer_or("topk_group", 1, 1, kExpertsMax);
  if (!config.flag_or("use_grouped_topk", true)) r.groups = r.top_groups = 1;
  r.score = RouterScore::kSigmoid;
  r.normalise = config.flag_or("moe_renormalize", true);
  r.scale = static_cast<float>(config.number_or("routed_scaling_factor", 1, 1e-6, 1e6));
  config.only("moe_router_activation_func", {"sigmoid"});
  int64_t first = config.integer_or("first_k_dense_replace", 0, 0, kLayersMax);
  int64_t every = config.integer_or("moe_layer_freq", 1, 1, kLayersMax);
  for (int64_t i = 0; i < c.decoder.layers; ++i)
    c.moe_layers.push_back(i >= first && i % every == 0);
}

}  // namespace

Result<std::unique_ptr<Model>> load_kimi_linear(const ConfigFile& config, Builder b) {
  HybridConfig c{.moe_scope = "block_sparse_moe"};
  SparseConfig& sparse = c.sparse;
  sparse.decoder = read_decoder(config, b);
  ConfigFile linear = config.object("linear_attn_config");
  c.latent_layers = latent_layers_of_lists(linear, sparse.decoder.layers);
  c.kda = read_kda(linear, sparse.decoder);
  std::string_view context =
      config.has("model_max_length") ? "model_max_length" : "max_position_embeddings";
  sparse.context_tokens = config.integer_or(context, 1 << 20, 1, kContextMax);
  c.mla = read_mla(config, b, sparse.decoder);
  // No layer turns its queries and keys, in the authors' code and in transformers alike, so what
  // the file says of a rotation is of no consequence.
  config.only("mla_use_nope", {true});
  c.mla.rotary = false;
  sparse.decoder.rope.rotary_dim = c.mla.rope_dim;
  config.ignore({"rope_theta", "rope_interleave"});
  config.ignore_object("rope_scaling");
  config.ignore_object("rope_parameters");
  read_experts(config, sparse);
  config.only("num_nextn_predict_layers", {0});
  return make_hybrid(config, b, c);
}

}  // namespace banyan
