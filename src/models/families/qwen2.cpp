// Qwen2 and Qwen2.5: Llama with biases on q, k and v (Yang et al., arXiv:2407.10671).
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_qwen2(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.attention = {.kv_heads = 32}});
  c.attention.qkv_bias = true;
  config.only("attention_bias", {true});
  config.only("qkv_bias", {true});
  config.only("mlp_bias", {false});
  config.only("use_mrope", {false});
  set_windows(c, read_qwen_windows(config, c.decoder().layers));
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
