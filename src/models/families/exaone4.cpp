// EXAONE 4: post-norm blocks and QK norm. In models with sliding windows, full-attention layers
// have no rotary embedding (LG AI Research 2025, arXiv:2507.11407).
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_exaone4(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b, {.attention = {.kv_heads = 32}, .context_tokens = 2048, .eps = 1e-5});
  c.attention.head_norms = true;
  c.style.norms = {.mixer = {.out = "post_attention_layernorm"},
                   .ffn = {.out = "post_feedforward_layernorm"}};
  int64_t window = read_window(config);
  int64_t every = 4;
  if (config.has("layer_types")) {
    config.ignore({"sliding_window_pattern"});  // layer_types has the same information
  } else {
    every = config.integer_or("sliding_window_pattern", 4, 0, kLayersMax);
  }
  set_windows(c, read_sliding_layers(config, c.decoder().layers, window > 0 ? every : 0), window);
  for (GqaLayerShape& layer : c.layers) layer.rotary = window == 0 || layer.window_tokens > 0;
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
