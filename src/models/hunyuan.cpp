// Hunyuan dense: heads of q and k are normalised after they turn.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_hunyuan_dense(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048, .eps = 1e-5});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.attention.head_norms = c.attention.norm_after_turn = true;
  c.attention.names.q_norm = "query_layernorm";
  c.attention.names.k_norm = "key_layernorm";
  config.only("use_qk_norm", {true});
  config.only("mlp_bias", {false});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
