// DeepSeek-V3, R1 and V3.1, and the text model of Kimi K2: latent attention, sigmoid routing in
// groups with a bias that only helps to choose (DeepSeek-AI 2024, arXiv:2412.19437).
#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {
namespace {

MoeConfig read_moe(const ConfigFile& config, int64_t hidden) {
  MoeConfig c{.hidden = hidden, .selection_bias = true};
  c.intermediate = config.integer("moe_intermediate_size", 1, kWidthMax);
  int64_t shared = config.integer_or("n_shared_experts", 1, 0, 64);
  c.shared_intermediate = shared * c.intermediate;
  RouterShape& r = c.router;
  r.experts =
      config.integer(config.name_of({"n_routed_experts", "num_local_experts"}), 1, kExpertsMax);
  r.top_k = config.integer("num_experts_per_tok", 1, kExpertsMax);
  r.groups = config.integer_or("n_group", 8, 1, kExpertsMax);
  r.top_groups = config.integer_or("topk_group", 4, 1, kExpertsMax);
  r.score = RouterScore::kSigmoid;
  r.normalise = config.flag_or("norm_topk_prob", true);
  r.scale = static_cast<float>(config.number_or("routed_scaling_factor", 2.5, 1e-6, 1e6));
  config.only("scoring_func", {"sigmoid"});
  config.only("topk_method", {"noaux_tc"});
  return c;
}

}  // namespace

Result<std::unique_ptr<Model>> load_deepseek_v3(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b)};
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  c.context_tokens = read_rotation(config, rope_dim, {4096}, c.decoder);
  MlaConfig attention = read_mla(config, b, c.decoder);
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = read_moe(config, c.decoder.hidden);
  int64_t every = config.integer_or("moe_layer_freq", 1, 1, kLayersMax);
  c.moe_layers = read_moe_layers(config, c.decoder.layers, 3, every);
  std::string_view key = config.name_of({"num_nextn_predict_layers", "num_mtp_layers"});
  int64_t further = config.integer_or(key, 0, 0, kLayersMax);
  skip_prediction_layers(b / "model" / "layers", c.decoder.layers, further);
  return make_sparse<MlaAttention>(config, b, c, attention, describe(attention),
                                   mla_flops_per_key(attention),
                                   mla_prompt_flops_per_key(attention));
}

}  // namespace banyan
