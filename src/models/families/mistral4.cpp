// Mistral Small 4: DeepSeek-V3's MLA with queries scaled by position, softmax-routed experts and a
// shared expert.
#include "models/config/rope.h"
#include "models/config/router.h"
#include "models/registry.h"
#include "models/sparse.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_mistral4(const ConfigFile& config, Builder b) {
  SparseConfig c{.decoder = read_decoder(config, b)};
  int64_t rope_dim = config.integer("qk_rope_head_dim", 2, kHeadDimMax);
  c.context_tokens =
      read_rotation(config, rope_dim,
                    {.context_tokens = 1 << 20, .partial = true, .query_scale = true}, c.decoder);
  config.expect(config.has("rope_scaling") || config.has("rope_parameters"),
                "rope_parameters is missing; add it to config.json");
  MlaConfig attention = read_mla(config, b, c.decoder);
  attention.query_scale = {c.decoder.rope.query_beta, c.decoder.rope.original_context_tokens};
  // partial_rotary_factor repeats the rotary fraction; check that it agrees.
  double head_dim = attention.nope_dim + attention.rope_dim;
  double part = rope_dim / head_dim;
  config.expect(read_partial_rotary_factor(config, part) == part,
                "partial_rotary_factor should be {}, since qk_rope_head_dim is {}", part, rope_dim);

  c.intermediate = config.integer_or("intermediate_size", 12288, 1, kWidthMax);
  MoeDefaults moe = deepseek_moe({1, 1}, 1, 128, 4);
  moe.router.score = RouterScore::kSoftmax;
  moe.router.bias = RouterFlag::fixed(false);
  c.moe = read_moe(config, c.decoder.hidden, moe);
  c.moe_layers = read_moe_layers(config, c.decoder.layers, 0);
  return make_sparse(config, b, c, attention);
}

}  // namespace banyan
