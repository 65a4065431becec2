// SmolLM3: Llama without rotary in every fourth layer.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_smollm3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.attention = {.kv_heads = 4}, .theta = 2e6});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.sparse.bias = config.flag_or("mlp_bias", false);
  std::vector<int64_t> turns = config.integers("no_rope_layers", 0, 1);  // 1: the layer uses rotary
  int64_t every = config.integer_or("no_rope_layer_interval", 4, 1, kLayersMax);
  config.expect(turns.empty() || turns.size() == c.layers.size(),
                "no_rope_layers has {} entries for {} layers", turns.size(), c.layers.size());
  for (size_t i = 0; i < c.layers.size(); ++i) {
    c.layers[i].rotary = i < turns.size() ? turns[i] == 1 : (i + 1) % every != 0;
  }
  config.ignore({"max_window_layers"});  // a leftover of Qwen's config
  bool slides = config.flag_or("use_sliding_window", false);
  int64_t window = config.maybe_integer("sliding_window", 1, kContextMax).value_or(0);
  std::vector<bool> sliding = read_sliding_layers(config, c.decoder().layers, 0);
  if (!config.has("layer_types")) {
    for (size_t i = 0; i < sliding.size(); ++i) sliding[i] = slides && !c.layers[i].rotary;
  }
  set_windows(c, sliding, window);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
