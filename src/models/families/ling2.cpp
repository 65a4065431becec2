// Ling 2.0 and Ring 2.0: GQA with rotary on half of each head, and grouped experts with a selection
// bias (Ling Team 2025, arXiv:2510.22115). In Ring-mini-sparse 2.0 some layers attend to only a few
// blocks of keys.
#include "base/signed.h"
#include "models/config/moba.h"
#include "models/config/rope.h"
#include "models/families/ling.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_ling2(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b, {.embedding = "word_embeddings"})};
  GqaConfig attention = read_gqa(config, c.decoder, {});
  attention.head_norms = true;
  attention.names = {.qkv = "query_key_value",
                     .output = "dense",
                     .q_norm = "query_layernorm",
                     .k_norm = "key_layernorm"};
  config.only("use_qk_norm", {true});
  double part = read_partial_rotary_factor(config);
  auto rotary_dim = static_cast<int64_t>(attention.head_dim * part);
  config.expect(
      rotary_dim >= 2 && rotary_dim % 2 == 0,
      "partial_rotary_factor {} gives a rotary dimension of {}; it must be even, 2 or more", part,
      rotary_dim);
  int64_t said = config.integer_or("rotary_dim", rotary_dim, 1, kHeadDimMax);
  config.expect(said == rotary_dim, "rotary_dim is {}, but partial_rotary_factor gives {}", said,
                rotary_dim);
  c.context_tokens = read_rotation(config, rotary_dim, {32768, 600000, true}, c.decoder);
  read_ling_moe(config, c);
  int64_t further = config.integer_or("num_nextn_predict_layers", 0, 0, kLayersMax);
  skip_prediction_layers(b / "model" / "layers", c.decoder.layers, further);
  std::vector<MobaShape> moba = read_moba(config, c.decoder.layers);
  std::vector<MixerConfig> attentions;
  for (int64_t i = 0; i < c.decoder.layers; ++i) {
    if (!moba.empty()) attention.moba = at(moba, i);
    attentions.push_back(attention);
  }
  return make_sparse(config, b, c, attentions);
}

}  // namespace banyan
