// Mistral 7B and NeMo: Llama with a sliding window in every layer, disabled by `sliding_window:
// null` (Jiang et al., arXiv:2310.06825). Ministral 3: no window, and queries scaled by position.
#include <string>

#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_ministral3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 8, .head_dim = 128},
                                         .context_tokens = 262144,
                                         .eps = 1e-5,
                                         .query_scale = true});
  config.expect(config.has("rope_scaling") || config.has("rope_parameters"),
                "rope_parameters is missing; add it to config.json");
  config.only("attention_bias", {false});
  config.only("mlp_bias", {false});
  set_window(c, config.maybe_integer("sliding_window", 1, kContextMax).value_or(0));
  return make_gqa_decoder(config, b, c);
}

Result<std::unique_ptr<Model>> load_mistral(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c =
      read_gqa_decoder(config, b, {.attention = {.kv_heads = 8}, .context_tokens = 131072});
  config.only("attention_bias", {false});
  config.only("mlp_bias", {false});
  set_window(c, read_window(config));  // a missing key means 4096; only null disables the window
  config.ignore({"layer_types", "use_sliding_window"});  // the window is in every layer
  return make_gqa_decoder(config, b, c);
}

// The text model of the multimodal ones: Small 3.1, 3.2 and 4, Ministral 3, Devstral 2.
Result<std::unique_ptr<Model>> load_mistral3(const ConfigFile& config, Builder b) {
  std::string type = config.text_or("model_type", "mistral");
  if (type == "ministral3") return load_ministral3(config, b);
  if (type == "mistral4") return load_mistral4(config, b);
  config.expect(type == "mistral", "a text model of type \"{}\" is not supported; supported: {}",
                type, "mistral, ministral3, mistral4");
  return load_mistral(config, b);
}

}  // namespace banyan
