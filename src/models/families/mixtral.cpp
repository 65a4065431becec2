// Mixtral: Mistral with experts, two of eight active per token (Jiang et al., arXiv:2401.04088).
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_mixtral(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b,
      {.attention = {.kv_heads = 8}, .context_tokens = 131072, .theta = 1e6, .eps = 1e-5});
  set_window(c, config.maybe_integer("sliding_window", 1, kContextMax).value_or(0));
  config.only("attention_bias", {false});
  c.sparse.moe_scope = "block_sparse_moe";
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(config, c.decoder().hidden,
                 {.router = {.experts = 8, .top_k = 2},
                  .intermediate = ExpertWidth::fixed(c.sparse.intermediate)});
  moe.expert_names = {"w1", "w3", "w2"};
  c.sparse.moe_layers.assign(c.layers.size(), true);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
