// Qwen3 dense: QK norm before rotary, and a head_dim independent of the hidden size (Yang et al.,
// arXiv:2505.09388).
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_qwen3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c =
      read_gqa_decoder(config, b, {.attention = {.kv_heads = 32, .head_dim = 128}});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.attention.head_norms = true;
  config.only("mlp_bias", {false});
  config.only("use_qk_norm", {true});
  set_windows(c, read_qwen_windows(config, c.decoder().layers));
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
