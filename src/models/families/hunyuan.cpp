// Hunyuan, dense and MoE: QK norm after the rotary embedding. Hy3: QK norm before it, and sigmoid
// routing with a selection bias.
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

namespace {

GqaDecoderConfig read_hunyuan(const ConfigFile& config, const Builder& b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048, .eps = 1e-5});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.attention.head_norms = c.attention.norm_after_rope = true;
  c.attention.names.q_norm = "query_layernorm";
  c.attention.names.k_norm = "key_layernorm";
  config.only("use_qk_norm", {true});
  config.only("mlp_bias", {false});
  config.only("use_cla", {false});
  config.ignore({"cla_share_factor"});  // belongs to use_cla
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_hunyuan_dense(const ConfigFile& config, Builder b) {
  return make_gqa_decoder(config, b, read_hunyuan(config, b));
}

Result<std::unique_ptr<Model>> load_hunyuan_moe(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_hunyuan(config, b);
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(config, c.decoder().hidden,
                 {.router = {.experts = 1, .top_k = 1},
                  .intermediate = ExpertWidth::unless_said(c.sparse.intermediate),
                  .shared = 1,
                  .shared_intermediate = ExpertWidth::fixed(c.sparse.intermediate),
                  .lists = true});
  moe.router_name = "gate.wg";
  moe.shared_name = "shared_mlp";
  config.only("use_mixed_mlp_moe", {true});
  c.sparse.moe_layers.assign(c.layers.size(), true);
  return make_gqa_decoder(config, b, c);
}

Result<std::unique_ptr<Model>> load_hunyuan_v3(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_gqa_decoder(
      config, b,
      {.attention = {.kv_heads = 8, .head_dim = 128}, .context_tokens = 131072, .eps = 1e-5});
  c.attention.head_norms = true;
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(config, c.decoder().hidden,
                 {.router = {.experts = 192,
                             .top_k = 8,
                             .score = RouterScore::kSigmoid,
                             .bias = RouterFlag::fixed(true),
                             .scale = 2.826},
                  .intermediate = ExpertWidth::unless_said(1536),
                  .shared = 1});
  moe.router_name = "router.gate";
  moe.bias_name = "expert_bias";
  moe.shared_name = "shared_mlp";
  c.sparse.moe_layers = read_moe_layers(config, c.decoder().layers, 1);
  for (const char* key : {"qk_norm", "use_qk_norm", "moe_router_use_sigmoid"}) {
    config.only(key, {true});
  }
  for (const char* key : {"attention_bias", "mlp_bias"}) config.only(key, {false});
  read_prediction_layers(config, b, c.decoder().layers);
  // Everything here is computed in f32.
  config.ignore(
      {"enable_attention_fp32_softmax", "enable_lm_head_fp32", "enable_moe_fp32_combine"});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
