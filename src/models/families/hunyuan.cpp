// Hunyuan, dense and with experts: heads of q and k are normalised after they turn.
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

namespace {

// A number for all layers, or the same one for each.
int64_t read_same(const ConfigFile& config, std::string_view key, int64_t fallback) {
  std::vector<int64_t> values = config.integers(key, 1, kWidthMax);
  for (int64_t value : values) {
    config.expect(value == values[0], "{} differs between layers, which is not supported", key);
  }
  return values.empty() ? fallback : values[0];
}

GqaDecoderConfig read_hunyuan(const ConfigFile& config, const Builder& b) {
  GqaDecoderConfig c = read_gqa_decoder(config, b, {.context_tokens = 2048, .eps = 1e-5});
  c.attention.qkv_bias = c.attention.output_bias = config.flag_or("attention_bias", false);
  c.attention.head_norms = c.attention.norm_after_turn = true;
  c.attention.names.q_norm = "query_layernorm";
  c.attention.names.k_norm = "key_layernorm";
  config.only("use_qk_norm", {true});
  config.only("mlp_bias", {false});
  config.only("use_cla", {false});
  config.ignore({"cla_share_factor"});  // of use_cla
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_hunyuan_dense(const ConfigFile& config, Builder b) {
  return make_gqa_decoder(config, b, read_hunyuan(config, b));
}

Result<std::unique_ptr<Model>> load_hunyuan_moe(const ConfigFile& config, Builder b) {
  GqaDecoderConfig c = read_hunyuan(config, b);
  MoeConfig& moe = c.sparse.moe;
  moe = {.hidden = c.decoder().hidden, .router_name = "gate.wg", .shared_name = "shared_mlp"};
  moe.intermediate = read_same(config, "moe_intermediate_size", c.sparse.intermediate);
  moe.shared_intermediate = c.sparse.intermediate * read_same(config, "num_shared_expert", 1);
  moe.router.experts = read_same(config, "num_experts", 1);
  moe.router.top_k = read_same(config, "moe_topk", 1);
  moe.router.normalise = true;
  config.only("use_mixed_mlp_moe", {true});
  config.only("norm_topk_prob", {true});
  c.sparse.moe_layers.assign(c.layers.size(), true);
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
