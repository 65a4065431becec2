// Granite 3 dense: Llama with scale factors on embeddings, attention scores, residuals and logits.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_granite(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.sparse.bias = config.flag_or("mlp_bias", false);
  auto factor = [&config](std::string_view key) { return config.number_or(key, 1, 1e-6, 1e6); };
  c.attention.scale = factor("attention_multiplier");
  c.style.residual_scale = factor("residual_multiplier");
  c.decoder().embedding_scale = factor("embedding_multiplier");
  c.decoder().logit_scale = 1 / factor("logits_scaling");
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
