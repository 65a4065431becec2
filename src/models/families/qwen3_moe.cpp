// Qwen3 MoE: Qwen3's attention, softmax routing without bias or groups (Yang et al.,
// arXiv:2505.09388).
#include "models/config/router.h"
#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_qwen3_moe(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b)};
  GqaConfig attention = read_gqa(config, c.decoder, {.kv_heads = 4});
  attention.qkv_bias = attention.output_bias = config.flag_or("attention_bias", false);
  attention.head_norms = true;
  c.context_tokens = read_rotation(config, attention.head_dim, {32768}, c.decoder);
  // As in transformers, every layer has the window; max_window_layers has no effect.
  int64_t window = read_window(config);
  attention.window_tokens = config.flag_or("use_sliding_window", false) ? window : 0;
  config.ignore({"max_window_layers"});
  config.only("use_qk_norm", {true});
  c.moe = read_moe(config, c.decoder.hidden,
                   {.router = {.top_k = 8, .normalise = RouterFlag::unless_said(false)}});
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe_layers = read_stepped_moe_layers(config, c.decoder.layers);
  return make_sparse(config, b, c, attention);
}

}  // namespace banyan
