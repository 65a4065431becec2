// MiniMax-M2 to M2.7: QK norm over all heads at once, rotary on half of each head, sigmoid routing
// with a selection bias.
#include "models/config/router.h"
#include "models/gqa_decoder.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_minimax_m2(const ConfigFile& config, Builder b) {
  int64_t head_dim = config.integer_or("head_dim", 128, 2, kHeadDimMax);
  int64_t rotary = config.integer_or("rotary_dim", head_dim, 2, head_dim);
  GqaDecoderConfig c = read_gqa_decoder(config, b,
                                        {.attention = {.kv_heads = 8, .head_dim = 128},
                                         .context_tokens = 196608,
                                         .theta = 5e6,
                                         .partial = static_cast<double>(rotary) / head_dim});
  c.attention.row_norms = true;
  config.only("use_qk_norm", {true});
  config.only("qk_norm_type", {"per_layer"});
  config.only("attention_bias", {false});
  for (int64_t type : config.integers("attn_type_list", 0, 1)) {
    config.expect(type == 1, "attn_type_list: {} is not supported; supported: 1", type);
  }
  c.sparse.moe_scope = "block_sparse_moe";
  MoeConfig& moe = c.sparse.moe;
  moe = read_moe(
      config, c.decoder().hidden,
      {.router = {.top_k = 8, .score = RouterScore::kSigmoid, .bias = RouterFlag::fixed(true)},
       .intermediate = ExpertWidth::fixed(c.sparse.intermediate)});
  moe.bias_name = "e_score_correction_bias";
  moe.expert_names = {"w1", "w3", "w2"};
  c.sparse.moe_layers.assign(c.layers.size(), true);
  // The checkpoints have no MTP tensors, so these keys have no effect.
  config.ignore({"use_mtp", "num_mtp_modules", "mtp_transformer_layers"});
  return make_gqa_decoder(config, b, c);
}

}  // namespace banyan
