// Ling 2.5 and 2.6: lightning attention and MLA, with grouped experts.
#include "models/config/rope.h"
#include "models/families/ling.h"
#include "models/registry.h"

namespace banyan {

Result<std::unique_ptr<Model>> load_ling2_5(const ConfigFile& config, Builder b) {
  HybridConfig c = read_ling_hybrid(config, b);
  const MlaConfig& mla = std::get<MlaConfig>(c.attention);
  LightningConfig l{.hidden = c.sparse.decoder.hidden,
                    .heads = mla.heads,
                    .layers = c.sparse.decoder.layers,
                    .eps = c.sparse.decoder.eps};
  l.head_dim = config.integer_or("head_dim", 128, 1, kHeadDimMax);
  l.norm_groups = config.integer_or("group_norm_size", 1, 1, kHeadsMax);
  config.expect(l.heads * l.head_dim % l.norm_groups == 0, "group_norm_size {} does not divide {}",
                l.norm_groups, l.heads * l.head_dim);
  // Lightning attention and MLA share one rotation.
  double part = read_partial_rotary_factor(config);
  auto rotary_dim = static_cast<int64_t>(part * l.head_dim);
  config.expect(rotary_dim == mla.rope_dim,
                "the rotary dimension is {} of a head's {}, but qk_rope_head_dim is {}", rotary_dim,
                l.head_dim, mla.rope_dim);
  config.only("linear_silu", {false});
  config.only("linear_rope", {true});
  config.only("use_qk_norm", {true});
  config.only("full_attention_type", {"mla"});
  c.recurrence = l;
  return make_hybrid(config, b, c);
}

}  // namespace banyan
