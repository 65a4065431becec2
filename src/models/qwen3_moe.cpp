// Qwen3 with mixtures of experts: the attention of Qwen3, softmax routing without bias or groups
// (Yang et al., arXiv:2505.09388).
#include <algorithm>

#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_qwen3_moe(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b)};
  GqaConfig attention = read_gqa(config, c.decoder, {.kv_heads = 4});
  attention.qkv_bias = attention.output_bias = config.flag_or("attention_bias", false);
  attention.head_norms = true;
  c.context_tokens = read_rotation(config, attention.head_dim, 32768, c.decoder);
  config.only("use_sliding_window", {false});
  config.ignore({"sliding_window", "max_window_layers"});

  c.moe.hidden = c.decoder.hidden;
  c.moe.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  RouterShape& r = c.moe.router;
  r.experts = config.has("num_local_experts") ? config.integer("num_local_experts", 1, kExpertsMax)
                                              : config.integer("num_experts", 1, kExpertsMax);
  config.ignore({"num_experts"});  // the same number, where both are given
  r.top_k = config.integer_or("num_experts_per_tok", 8, 1, kExpertsMax);
  r.normalise = config.flag_or("norm_topk_prob", false);

  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  int64_t every = config.integer_or("decoder_sparse_step", 1, 1, kLayersMax);
  std::vector<int64_t> dense = config.integers("mlp_only_layers", 0, kLayersMax);
  for (int64_t i = 0; i < c.decoder.layers; ++i) {
    c.moe_layers.push_back((i + 1) % every == 0 && std::ranges::find(dense, i) == dense.end());
  }
  return make_sparse<GqaAttention>(config, b, c, attention, "gqa",
                                   4 * attention.q_heads * attention.head_dim);
}

}  // namespace banyan
