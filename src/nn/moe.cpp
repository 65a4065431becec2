#include "nn/moe.h"

#include <algorithm>

namespace banyan {
namespace {

// Of the experts that compute, those that a token's choices fall on: all of them, if there are no
// others, and in proportion if the choice is even.
TokenShare share_of(const RouterShape& r) {
  auto experts = static_cast<double>(r.experts);
  auto chosen = static_cast<double>(r.top_k);
  auto all = static_cast<double>(r.experts + r.identity_experts);
  double max = std::min(chosen, experts) / experts;
  double min = std::max(chosen - static_cast<double>(r.identity_experts), 0.0) / experts;
  return {.mean = chosen / all, .min = min, .max = max};
}

}  // namespace

Moe::Moe(Builder b, const MoeConfig& c) : shape_(c.router), limit_(c.limit) {
  int64_t choices = c.router.experts + c.router.identity_experts;
  router_ = b.derived("f32", 1, choices, c.hidden, b.floats(c.router_name, choices, c.hidden));
  shape_.counts_begin = b.expert_layer(c.router.experts, c.router.identity_experts, c.router.top_k);
  if (c.selection_bias) bias_ = b.vector({{"", choices}}, c.bias_name, 0);
  Builder experts = (b / "experts").with_share(share_of(c.router));
  const GatedMlpNames& names = c.expert_names;
  own_ = b.part(c.router.experts);
  gate_up_ = experts.matrices(c.router.experts,
                              {{names.gate, c.intermediate}, {names.up, c.intermediate}}, c.hidden);
  down_ = experts.matrices(c.router.experts, {{names.down, c.hidden}}, c.intermediate);
  // transformers saves the room that it keeps for experts that return their input.
  for (int64_t e = c.router.experts; e < choices; ++e) {
    for (std::string_view name : {names.gate, names.up}) (experts / e / name).ignore("weight");
  }
  if (c.shared_intermediate > 0) {
    shared_.emplace(b / c.shared_name, c.hidden, c.shared_intermediate, false, c.shared_limit);
  }
}

Tensor Moe::operator()(Step& s, Tensor x) const {
  Tensor logits = linear(s, x, router_, Tensor());
  Routing routing = route(s, logits, bias_, shape_);
  routing.own = own_;
  Tensor inner = silu_mul(s, linear_of_rows(s, x, gate_up_, routing), limit_);
  Tensor expert_rows = linear_of_sorted(s, inner, down_, routing);
  share_expert_rows(s, expert_rows, routing);
  Tensor shared = shared_ ? (*shared_)(s, x) : Tensor();
  return combine_experts(s, x, expert_rows, routing, shared);
}

}  // namespace banyan
