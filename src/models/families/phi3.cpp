// Phi-3 and Phi-4: Llama with fused qkv and gate_up matrices (Abdin et al., arXiv:2404.14219). The
// longrope variants are not supported.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_phi3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c =
      read_gqa_decoder(config, b, {.context_tokens = 4096, .eps = 1e-5, .partial_rotary = true});
  c.attention.names.qkv = "qkv_proj";
  c.sparse.names.gate_up = "gate_up_proj";
  config.only("attention_bias", {false});
  set_window(c, config.maybe_integer("sliding_window", 1, kContextMax).value_or(0));
  config.ignore({"original_max_position_embeddings"});  // only for longrope
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
