// gpt-oss: heads have a sink, every other layer a window, and experts a bias, gates and ups in
// turns and an activation of their own (OpenAI 2025, arXiv:2508.10925). The experts' matrices are
// MXFP4 as published, or plain.
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
                "rope_scaling is missing, without which positions are not known");
  c.attention.sinks = true;
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", true);
  int64_t window = config.is_null("sliding_window")
                       ? 0
                       : config.integer_or("sliding_window", 128, 1, kContextMax);
  set_windows(c, read_sliding_layers(config, c.decoder().layers, 2), window);

  MoeConfig& moe = c.sparse.moe;
  moe = {.hidden = c.decoder().hidden,
         .intermediate = c.sparse.intermediate,
         .router_bias = true,
         .expert_bias = true,
         .interleaved = true,
         .transposed = true,
         .router_name = "router"};
  moe.glu = {GluForm::kSwigluOai,
             static_cast<float>(config.number_or("swiglu_limit", 7, 1e-3, 1e6))};
  config.only("swiglu_alpha", {1.702});
  RouterShape& r = moe.router;
  r.experts = config.integer(config.name_of({"num_local_experts", "num_experts"}), 1, kExpertsMax);
  std::string_view top_k = config.name_of({"num_experts_per_tok", "experts_per_token"});
  r.top_k = config.integer_or(top_k, 4, 1, kExpertsMax);
  r.normalise = true;  // a softmax of the chosen logits is that of all, over its sum
  c.sparse.moe_layers.assign(c.layers.size(), true);
  config.ignore({"initial_context_length"});  // what rope_scaling says too
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
