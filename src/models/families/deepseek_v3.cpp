// DeepSeek-V3, R1 and V3.1, the text model of Kimi K2, and GLM-4.7-Flash: latent attention, sigmoid
// routing in groups with a bias that only helps to choose (DeepSeek-AI 2024, arXiv:2412.19437).
#include "models/config/router.h"
#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {
namespace {

struct Defaults {
  double eps = 1e-6;
  int64_t context_tokens = 4096;
  int64_t dense_layers = 3;
  MoeDefaults moe = deepseek_moe({8, 4}, 2.5);
};

Result<std::unique_ptr<Model>> load(const ConfigFile& config, Builder b, const Defaults& defaults) {
  SparseConfig c{.decoder = read_decoder(config, b, {.eps = defaults.eps})};
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  c.context_tokens = read_rotation(config, rope_dim, {defaults.context_tokens}, c.decoder);
  MlaConfig attention = read_mla(config, b, c.decoder);
  c.intermediate = config.integer("intermediate_size", 1, kWidthMax);
  c.moe = read_moe(config, c.decoder.hidden, defaults.moe);
  int64_t every = config.integer_or("moe_layer_freq", 1, 1, kLayersMax);
  c.moe_layers = read_moe_layers(config, c.decoder.layers, defaults.dense_layers, every);
  std::string_view key = config.name_of({"num_nextn_predict_layers", "num_mtp_layers"});
  int64_t further = config.integer_or(key, 0, 0, kLayersMax);
  c.predicts = take_prediction_layer(b / c.decoder.scope / "layers", c.decoder.layers, further);
  return make_sparse(config, b, c, attention);
}

}  // namespace

Result<std::unique_ptr<Model>> load_deepseek_v3(const ConfigFile& config, Builder b) {
  return load(config, b, {});
}

Result<std::unique_ptr<Model>> load_glm4_moe_lite(const ConfigFile& config, Builder b) {
  return load(config, b,
              {.eps = 1e-5,
               .context_tokens = 202752,
               .dense_layers = 1,
               .moe = deepseek_moe({1, 1}, 1.8, 64, 4)});
}

}  // namespace banyan
