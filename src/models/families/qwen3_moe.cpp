// Qwen3 with mixtures of experts: the attention of Qwen3, softmax routing without bias or groups
// (Yang et al., arXiv:2505.09388).
#include <algorithm>

#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {
namespace {

// As in transformers, the window is in every layer, whatever max_window_layers says.
int64_t read_window(const ConfigFile& config) {
  bool sliding = config.flag_or("use_sliding_window", false);
  int64_t window = config.is_null("sliding_window")
                       ? 0
                       : config.integer_or("sliding_window", 4096, 1, kContextMax);
  config.ignore({"max_window_layers"});
  return sliding ? window : 0;
}

}  // namespace

Result<std::unique_ptr<Model>> load_qwen3_moe(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b)};
  GqaConfig attention = read_gqa(config, c.decoder, {.kv_heads = 4});
  attention.qkv_bias = attention.output_bias = config.flag_or("attention_bias", false);
  attention.head_norms = true;
  c.context_tokens = read_rotation(config, attention.head_dim, {32768}, c.decoder);
  attention.window_tokens = read_window(config);
  config.only("use_qk_norm", {true});
  config.only("scoring_func", {"softmax"});

  c.moe.hidden = c.decoder.hidden;
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  RouterShape& r = c.moe.router;
  r.experts = config.integer(config.name_of({"num_experts", "num_local_experts"}), 1, kExpertsMax);
  r.top_k = config.integer_or("num_experts_per_tok", 8, 1, kExpertsMax);
  r.normalise = config.flag_or("norm_topk_prob", false);

  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  int64_t every = config.integer_or("decoder_sparse_step", 1, 1, kLayersMax);
  std::vector<int64_t> dense = config.integers("mlp_only_layers", 0, kLayersMax);
  for (int64_t i = 0; i < c.decoder.layers; ++i) {
    c.moe_layers.push_back((i + 1) % every == 0 && std::ranges::find(dense, i) == dense.end());
  }
  return make_sparse(config, b, c, attention);
}

}  // namespace banyan
