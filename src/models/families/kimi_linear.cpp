// Kimi-Linear: Kimi Delta Attention with low-rank gates, MLA without rotary, MoE (Kimi Team 2025,
// arXiv:2510.26692). Accepts the authors' config and the one transformers writes, which has a list
// of layer types and flat keys instead of linear_attn_config.
#include <algorithm>

#include "base/signed.h"
#include "models/config/router.h"
#include "models/hybrid.h"
#include "models/registry.h"

namespace banyan {
namespace {

// From the authors' two lists, in which layers count from 1 and each layer appears exactly once.
std::vector<bool> latent_layers_of_lists(const ConfigFile& lists, int64_t layers) {
  std::vector<int> kinds = filled(layers, 0);
  auto mark = [&](std::string_view key, int kind) {
    for (int64_t layer : lists.integers(key, 1, layers)) {
      int& entry = at(kinds, std::clamp<int64_t>(layer, 1, layers) - 1);
      lists.expect(entry == 0, "{} lists layer {}, which is already listed", key, layer);
      entry = kind;
    }
  };
  mark("kda_layers", 1);
  mark("full_attn_layers", 2);
  std::vector<bool> latent;
  for (int64_t i = 0; i < layers; ++i) {
    int kind = at(kinds, i);
    lists.expect(kind != 0, "layer {} is in neither kda_layers nor full_attn_layers", i + 1);
    latent.push_back(kind == 2);
  }
  return latent;
}

std::vector<bool> read_latent_layers(const ConfigFile& config, const ConfigFile& linear,
                                     int64_t layers) {
  if (config.texts("layer_types").empty()) return latent_layers_of_lists(linear, layers);
  return latent_layers_of_types(config, layers);
}

// The key names of either config.
struct KdaKeys {
  ConfigFile file;
  std::string_view heads, head_dim, taps;
};

KdaConfig read_kda(const ConfigFile& config, const ConfigFile& linear,
                   const DecoderConfig& decoder) {
  KdaConfig kda{.hidden = decoder.hidden, .low_rank_gates = true, .eps = decoder.eps};
  KdaKeys keys =
      linear.has("num_heads")
          ? KdaKeys{linear, "num_heads", "head_dim", "short_conv_kernel_size"}
          : KdaKeys{config, "linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"};
  kda.heads = keys.file.integer(keys.heads, 1, kHeadsMax);
  kda.head_dim = keys.file.integer(keys.head_dim, 1, kHeadDimMax);
  kda.taps = keys.file.integer_or(keys.taps, 4, 2, 64);
  std::optional<double> bound = linear.maybe_number("gate_lower_bound", -1e3, -1e-6);
  if (bound) kda.lower_bound = *bound;
  linear.only("use_full_rank_gate", {false});
  linear.only("kda_layer_index_base", {1});
  return kda;
}

void read_experts(const ConfigFile& config, const Builder& layers, SparseConfig& c) {
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = read_moe(config, c.decoder.hidden, deepseek_moe({1, 1}, 2.446));
  c.moe.expert_names = {.gate = "w1", .up = "w3", .down = "w2"};
  // If the key is missing, the authors' code and transformers disagree; the tensors decide.
  bool experts_first = (layers / 0 / "block_sparse_moe" / "gate").has("weight");
  int64_t every = config.integer_or("moe_layer_freq", 1, 1, kLayersMax);
  c.moe_layers = read_moe_layers(config, c.decoder.layers, experts_first ? 0 : 1, every);
}

}  // namespace

Result<std::unique_ptr<Model>> load_kimi_linear(const ConfigFile& config, Builder b) {
  HybridConfig c;
  SparseConfig& sparse = c.sparse;
  sparse.moe_scope = "block_sparse_moe";
  sparse.decoder = read_decoder(config, b, {.eps = 1e-5});
  ConfigFile linear = config.object("linear_attn_config");
  c.attention_layers = read_latent_layers(config, linear, sparse.decoder.layers);
  c.recurrence = read_kda(config, linear, sparse.decoder);
  sparse.context_tokens = config.integer_or(
      config.name_of({"model_max_length", "max_position_embeddings"}), 1 << 20, 1, kContextMax);
  MlaConfig mla = read_mla(config, b, sparse.decoder);
  // Neither the authors' code nor transformers applies rotary embeddings in any layer, so rope
  // settings have no effect.
  config.only("mla_use_nope", {true});
  mla.rotary = false;
  c.attention = mla;
  sparse.decoder.rope.rotary_dim = mla.rope_dim;
  config.ignore({"rope_theta", "rope_interleave"});
  config.ignore_object("rope_scaling");
  config.ignore_object("rope_parameters");
  read_experts(config, b / "model" / "layers", sparse);
  config.only("num_nextn_predict_layers", {0});
  return make_hybrid(config, b, c);
}

}  // namespace banyan
