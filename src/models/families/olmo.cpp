// OLMo 2 and 3: post-norm blocks, and QK norm over all heads at once. In OLMo 3 three of four
// layers have sliding windows and an unscaled rotary embedding (OLMo Team, arXiv:2501.00656,
// 2512.13961).
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

namespace {

GqaDecoderConfig read_olmo(const ConfigFile& config, const Builder& b,
                           GqaDecoderDefaults defaults) {
  defaults.context_tokens = 2048;
  defaults.eps = 1e-5;
  GqaDecoderConfig c = read_gqa_decoder(config, b, defaults);
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.attention.row_norms = true;
  c.style.norms = {.mixer = {.out = "post_attention_layernorm"},
                   .ffn = {.out = "post_feedforward_layernorm"}};
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_olmo2(const ConfigFile& config, Builder b) {
  return make_gqa_decoder(config, b, read_olmo(config, b, {}));
}

Result<std::unique_ptr<Model>> load_olmo3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_olmo(config, b, {.theta = 500000, .local_theta_key = "rope_theta"});
  int64_t window = read_window(config);
  set_windows(c, read_sliding_layers(config, c.decoder().layers, 4), window);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
