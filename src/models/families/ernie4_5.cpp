// ERNIE 4.5, dense and MoE: Llama with interleaved rotary pairs and one flag for all biases. The
// MoE router uses softmax scores and a selection bias.
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

namespace {

GqaDecoderConfig read_ernie(const ConfigFile& config, const Builder& b,
                            const GqaDefaults& attention) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b, {.attention = attention, .context_tokens = 131072, .theta = 500000, .eps = 1e-5});
  c.attention.layout = RopeLayout::kInterleaved;
  c.sparse.bias = config.flag_or("use_bias", false);
  c.attention.qkv_bias = c.attention.output_bias = c.sparse.bias;
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_ernie4_5(const ConfigFile& config, Builder b) {
  return make_gqa_decoder(config, b, read_ernie(config, b, {.kv_heads = 2, .head_dim = 128}));
}

Result<std::unique_ptr<Model>> load_ernie4_5_moe(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_ernie(config, b, {.kv_heads = 4});
  config.expect(!c.sparse.bias, "use_bias = true is not supported with experts");
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(config, c.decoder().hidden,
                 {.router = {.experts = 64, .top_k = 6, .bias = RouterFlag::fixed(true)},
                  .intermediate = ExpertWidth::unless_said(1536),
                  .shared = 2});
  moe.bias_name = "moe_statics.e_score_correction_bias";
  config.only("moe_norm_min", {1e-12});
  int64_t first = config.integer_or("moe_layer_start_index", 1, 0, kLayersMax);
  int64_t last = config.integer_or("moe_layer_end_index", -1, -1, kLayersMax);
  int64_t every = config.integer_or("moe_layer_interval", 1, 1, kLayersMax);
  for (int64_t i = 0; i < c.decoder().layers; ++i) {
    bool within = i >= first && (last < 0 || i <= last);
    c.sparse.moe_layers.push_back(within && (i + 1) % every == 0);
  }
  // The MTP layer.
  for (const char* part : {"mtp_block", "mtp_emb_norm", "mtp_hidden_norm", "mtp_linear_proj"}) {
    (b / "model" / part).ignore_scope();
  }
  config.ignore({"num_nextn_predict_layers"});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
