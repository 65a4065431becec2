#include "nn/token_index.h"

#include <cmath>

#include "base/check.h"
#include "ops/attention.h"

namespace banyan {
namespace {

constexpr float kNormEps = 1e-6f;  // of the layer norm, independent of the model's eps

// Includes the factors of scores: of the number of heads, and of the length of dot products.
PackedMatrix weights_of(Builder b, const TokenIndexConfig& c, int64_t hidden) {
  std::vector<float> weights = b.floats("weights_proj", c.heads, hidden);
  auto factor = static_cast<float>(1 / std::sqrt(static_cast<double>(c.heads * c.dim)));
  for (float& weight : weights) weight *= factor;
  return b.derived("f32", 1, c.heads, hidden, weights);
}

}  // namespace

TokenIndex::TokenIndex(Builder b, const TokenIndexConfig& c, int64_t hidden, int64_t query_rank,
                       bool two_forms)
    : shape_{.heads = c.heads, .dim = c.dim, .top_k = c.top_k, .context_tokens = c.context_tokens},
      layout_(c.layout),
      rounds_(is_quantised_state(b.index_dtype())),
      query_(b, {{"wq_b", c.heads * c.dim}}, query_rank, false),
      key_(b, {{"wk", c.dim}}, hidden, false),
      norm_(b.vector({{"k_norm", c.dim}}, "weight", 1)),
      norm_bias_(b.vector({{"k_norm", c.dim}}, "bias", 0)),
      weights_(weights_of(b, c, hidden)),
      keys_(b.state({.name = "index_keys",
                     .dtype = b.index_dtype(),
                     .width = c.dim,
                     .index = true,
                     .two_forms = two_forms})) {
  CHECK(c.heads > 0 && c.dim > 0 && c.top_k > 0, "{} heads of {}, top {}", c.heads, c.dim, c.top_k);
}

// Rotates the first columns of each head, as many as the rotation has.
Tensor TokenIndex::rotated(Step& s, Tensor x, const Rotation& rotation) const {
  Tensor y = rope(s, x, shape_.dim, rotation, layout_);
  return rounds_ ? hadamard(s, y, shape_.dim) : y;
}

void TokenIndex::operator()(Step& s, Tensor x, Tensor latent, const Rotation& rotation) const {
  size_t mark = s.arena.mark();
  Tensor key = layer_norm(s, key_(s, x), norm_, norm_bias_, kNormEps);
  write_pages(s, rotated(s, key, rotation), keys_);
  s.arena.rewind(mark);
  if (!chooses_keys(s, shape_.top_k)) return;
  Tensor q = rotated(s, query_(s, latent), rotation);
  choose_keys(s, q, linear(s, x, weights_, Tensor()), keys_, shape_);
  s.arena.rewind(mark);
}

}  // namespace banyan
