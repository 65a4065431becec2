// ERNIE 4.5 dense: Llama that turns neighbours, with one flag for all biases.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_ernie4_5(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 2, .head_dim = 128},
                                         .context_tokens = 131072,
                                         .theta = 500000,
                                         .eps = 1e-5});
  c.attention.layout = RopeLayout::kInterleaved;
  c.mlp_bias = config.flag_or("use_bias", false);
  c.attention.qkv_bias = c.attention.output_bias = c.mlp_bias;
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
