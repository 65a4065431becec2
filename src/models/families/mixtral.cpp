// Mixtral: Mistral with experts, two of eight (Jiang et al., arXiv:2401.04088).
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_mixtral(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b,
      {.attention = {.kv_heads = 8}, .context_tokens = 131072, .theta = 1e6, .eps = 1e-5});
  int64_t window = config.maybe_integer("sliding_window", 1, kContextMax).value_or(0);
  for (GqaLayerShape& layer : c.layers) layer.window_tokens = window;
  config.only("attention_bias", {false});
  c.sparse.moe_scope = "block_sparse_moe";
  MoeConfig& moe = c.sparse.moe;
  moe = {.hidden = c.decoder().hidden,
         .intermediate = c.sparse.intermediate,
         .expert_names = {"w1", "w3", "w2"}};
  moe.router.experts =
      config.integer_or(config.name_of({"num_local_experts", "num_experts"}), 8, 1, kExpertsMax);
  moe.router.top_k = config.integer_or("num_experts_per_tok", 2, 1, kExpertsMax);
  moe.router.normalise = true;
  c.sparse.moe_layers.assign(c.layers.size(), true);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
