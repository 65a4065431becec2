// GLM-4 (0414, dense) and GLM-4.5 to 4.7 (MoE), with rotary on half of each head. Dense models use
// interleaved pairs and post-norms as well (Team GLM 2024, arXiv:2406.12793). MoE models route like
// DeepSeek-V3 (Zeng et al. 2025, arXiv:2508.06471), and so does Solar Open.
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_glm4(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 2, .head_dim = 128},
                                         .context_tokens = 131072,
                                         .eps = 1.5625e-7,
                                         .partial = 0.5});
  c.attention.qkv_bias = config.flag_or("attention_bias", true);
  c.attention.layout = RopeLayout::kInterleaved;
  c.sparse.names.gate_up = "gate_up_proj";
  c.style.norms.mixer.out = "post_self_attn_layernorm";
  c.style.norms.ffn.out = "post_mlp_layernorm";
  return make_gqa_decoder(config, b, c);
}

Result<std::unique_ptr<Model>> load_glm4_moe(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b,
      {.attention = {.kv_heads = 8}, .context_tokens = 131072, .eps = 1e-5, .partial = 0.5});
  c.attention.qkv_bias = config.flag_or("attention_bias", false);
  c.attention.head_norms = config.flag_or("use_qk_norm", false);
  c.sparse.moe = read_moe(config, c.decoder().hidden, deepseek_moe({1, 1}, 1, 128, 8));
  c.sparse.moe_layers = read_moe_layers(config, c.decoder().layers, 1);
  c.sparse.predicts =
      take_prediction_layer(config, b / c.decoder().scope / "layers", c.decoder().layers);
  return make_gqa_decoder(config, b, c);
}

// Solar Open: the same without dense layers, and whole heads turn.
Result<std::unique_ptr<Model>> load_solar_open(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.intermediate = 10240,  // no layer has it
                                         .attention = {.kv_heads = 8, .head_dim = 128},
                                         .context_tokens = 131072,
                                         .theta = 1e6,
                                         .eps = 1e-5});
  c.attention.qkv_bias = config.flag_or("attention_bias", false);
  config.only("use_qk_norm", {false});
  config.only("first_k_dense_replace", {0});
  c.sparse.moe = read_moe(config, c.decoder().hidden, deepseek_moe({1, 1}, 1, 128, 8));
  c.sparse.moe_layers.assign(c.layers.size(), true);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
