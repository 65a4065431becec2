// gpt-oss: attention sinks, a sliding window in every other layer, experts with biases, interleaved
// gate and up rows, and a clamped SwiGLU (OpenAI 2025, arXiv:2508.10925). Expert weights are MXFP4
// as published, or unquantised.
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_gpt_oss(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 8, .head_dim = 64},
                                         .context_tokens = 131072,
                                         .theta = 150000,
                                         .eps = 1e-5});
  config.expect(config.has("rope_scaling") || config.has("rope_parameters"),
                "rope_scaling is missing; add it to config.json");
  c.attention.sinks = true;
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", true);
  int64_t window = read_window(config, 128);
  set_windows(c, read_sliding_layers(config, c.decoder().layers, 2), window);

  MoeConfig& moe = c.sparse.moe;
  // Softmax over the top-k logits equals softmax over all, renormalised.
  moe =
      read_moe(config, c.decoder().hidden,
               {.router = {.top_k = 4}, .intermediate = ExpertWidth::fixed(c.sparse.intermediate)});
  moe.router_bias = moe.expert_bias = moe.interleaved = moe.transposed = true;
  moe.router_name = "router";
  moe.glu = {GluForm::kSwigluOai,
             static_cast<float>(config.number_or("swiglu_limit", 7, 1e-3, 1e6))};
  config.only("swiglu_alpha", {1.702});
  c.sparse.moe_layers.assign(c.layers.size(), true);
  config.ignore({"initial_context_length"});  // repeats rope_scaling
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
