// Seed-OSS: Llama with biases on q, k and v, and a head_dim independent of the hidden size.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_seed_oss(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b, {.attention = {.kv_heads = 8, .head_dim = 128}, .context_tokens = 524288});
  c.attention.qkv_bias = config.flag_or("attention_bias", true);
  c.attention.output_bias = config.flag_or("attention_out_bias", false);
  c.sparse.bias = config.flag_or("mlp_bias", false);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
