// Llama 2, 3, 3.1 and 3.2: Touvron et al., arXiv:2307.09288; Dubey et al., arXiv:2407.21783.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_llama(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.sparse.bias = config.flag_or("mlp_bias", false);
  config.ignore({"sliding_window", "layer_types"});  // not used by this architecture
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
