// Gemma 2 and 3: norms before and after each block with weights stored minus one, GELU gates,
// scaled embeddings, sliding windows in most layers. Gemma 2 soft-caps attention scores and logits
// (Gemma Team 2024, arXiv:2408.00118). Gemma 3 adds QK norm and a smaller rope theta in
// sliding-window layers (Gemma Team 2025, arXiv:2503.19786).
#include <cmath>

#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {
namespace {

GqaDecoderConfig read_gemma(const ConfigFile& config, const Builder& b,
                            GqaDecoderDefaults defaults) {
  defaults.attention.kv_heads = 4;
  defaults.attention.head_dim = 256;
  defaults.gelu = defaults.tied = true;
  GqaDecoderConfig c = read_gqa_decoder(config, b, defaults);
  c.decoder().norm_weight = c.attention.norm_weight = NormWeight::kLessOne;
  c.decoder().embedding_scale = std::sqrt(c.decoder().hidden);
  c.style.norms = {.mixer = {.in = "input_layernorm", .out = "post_attention_layernorm"},
                   .ffn = {.in = "pre_feedforward_layernorm", .out = "post_feedforward_layernorm"}};
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  double per_query = config.number_or("query_pre_attn_scalar", 256, 1e-3, 1e6);
  c.attention.scale = 1 / std::sqrt(per_query);
  config.only("use_bidirectional_attention", {false});
  return c;
}

// A cap of null or 0 disables it.
float read_cap(const ConfigFile& config, std::string_view key, double absent) {
  double fallback = config.is_null(key) ? 0 : absent;
  return config.number_or(key, fallback, 0, 1e6);
}

}  // namespace

Result<std::unique_ptr<Model>> load_gemma2(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gemma(config, b, {.context_tokens = 8192});
  c.attention.soft_cap = read_cap(config, "attn_logit_softcapping", 50);
  c.decoder().logit_cap = read_cap(config, "final_logit_softcapping", 30);
  set_windows(c, read_sliding_layers(config, c.decoder().layers, 2), read_window(config));
  config.ignore({"sliding_window_size"});  // repeats sliding_window
  return make_gqa_decoder(config, b, c);
}

Result<std::unique_ptr<Model>> load_gemma3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gemma(config, b,
                                  // Multimodal checkpoints omit keys that transformers' config
                                  // class defaults.
                                  {.vocabulary = 262208,
                                   .attention = {.heads = 8},
                                   .context_tokens = 131072,
                                   .theta = 1e6,
                                   .local_theta_key = "rope_local_base_freq"});
  c.attention.head_norms = true;
  c.attention.soft_cap = read_cap(config, "attn_logit_softcapping", 0);
  c.decoder().logit_cap = read_cap(config, "final_logit_softcapping", 0);
  int64_t every = config.integer_or(
      config.name_of({"sliding_window_pattern", "_sliding_window_pattern"}), 6, 0, kLayersMax);
  set_windows(c, read_sliding_layers(config, c.decoder().layers, every), read_window(config));
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
