#include "nn/moe.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/check.h"

namespace banyan {
namespace {

// The expected share of a token's choices that fall on experts with weights: all of them, unless
// there are identity experts. Assumes balanced routing.
TokenShare share_of(const RouterShape& r) {
  double experts = r.experts;
  double chosen = r.top_k;
  double all = r.experts + r.identity_experts;
  double max = std::min(chosen, experts) / experts;
  double min = std::max(chosen - r.identity_experts, 0.0) / experts;
  return {.mean = chosen / all, .min = min, .max = max};
}

// Lets stacked tensors, which hold a matrix or bias of every expert, be read expert by expert.
// Handles plain tensors and gpt-oss's MXFP4 blocks and scales.
void split_stacks(const Builder& experts, const MoeConfig& c) {
  struct Leaf {
    const char* stack;
    const char* leaf;
    int64_t divisor;  // of the columns; 0 for vectors
  };
  constexpr Leaf kLeaves[] = {{"", ".weight", 1},
                              {"_blocks", ".weight", 2},
                              {"_scales", ".weight_scale", 32},
                              {"_bias", ".bias", 0}};
  int64_t inner = c.intermediate;
  for (const Leaf& leaf : kLeaves) {
    auto name = [&leaf](std::string_view matrix) { return std::string(matrix) + leaf.leaf; };
    auto shape = [&](int64_t rows, int64_t columns) {
      bool transposed = c.transposed && leaf.divisor == 1;
      return StackShape{c.router.experts, rows, leaf.divisor == 0 ? 0 : columns / leaf.divisor,
                        transposed};
    };
    std::string gate = name(c.expert_names.gate), up = name(c.expert_names.up);
    std::string down = name(c.expert_names.down), stack = leaf.stack;
    int64_t step = c.interleaved ? 2 : 1;
    experts.split(std::string(c.gate_up_stack) + stack, shape(2 * inner, c.hidden),
                  {{gate, inner, 0, step}, {up, inner, c.interleaved ? 1 : inner, step}});
    experts.split(std::string(c.down_stack) + stack, shape(c.hidden, inner), {{down, c.hidden}});
  }
}

// [choices, hidden], with the scale of the router's input folded in.
std::vector<float> router_of(const Builder& b, const MoeConfig& c, int64_t choices) {
  std::vector<float> weights = b.floats(c.router_name, choices, c.hidden);
  if (c.router_scale_name.empty()) return weights;
  std::vector<float> scale = b.host_values(c.router_scale_name, {c.hidden}, 1);
  for (size_t i = 0; i < weights.size() && !scale.empty(); ++i) {
    weights[i] *= scale[i % scale.size()];
  }
  return weights;
}

}  // namespace

Moe::Moe(Builder b, const MoeConfig& c) : shape_(c.router), gated_(c.gated), glu_(c.glu) {
  int64_t choices = c.router.experts + c.router.identity_experts;
  CHECK(c.router.experts > 0 && c.router.top_k > 0 && c.router.top_k <= choices, "{} of {} experts",
        c.router.top_k, choices);
  CHECK(!c.weighs_inputs || c.router.top_k == 1, "weighs_inputs with top_k {}", c.router.top_k);
  CHECK(c.gated || !c.expert_bias, "expert biases need gated experts");
  CHECK(c.shared_gate_name.empty() || c.shared_intermediate > 0,
        "a shared gate without a shared expert");
  router_ = b.derived("f32", 1, choices, c.hidden, router_of(b, c, choices));
  shape_.counts_begin = b.expert_layer(c.router.experts, c.router.identity_experts, c.router.top_k);
  if (c.router_bias) router_bias_ = b.vector({{c.router_name, choices}}, "bias", 0);
  if (c.selection_bias) bias_ = b.values(c.bias_name, {choices}, 0);
  if (c.weighs_inputs) one_ = b.constant({1}, std::array{1.0f});
  if (!c.expert_scale_name.empty()) {
    expert_scale_ = b.values(c.expert_scale_name, {c.router.experts}, 1);
  }
  Builder experts = (b / c.experts_name).with_share(share_of(c.router));
  split_stacks(experts, c);
  const GatedMlpNames& names = c.expert_names;
  own_ = b.part(c.router.experts);
  MatrixPart gate = {names.gate, c.intermediate}, up = {names.up, c.intermediate};
  gate_up_ = c.gated ? experts.matrices(c.router.experts, {gate, up}, c.hidden)
                     : experts.matrices(c.router.experts, {up}, c.hidden);
  down_ = experts.matrices(c.router.experts, {{names.down, c.hidden}}, c.intermediate);
  if (c.expert_bias) {
    gate_up_bias_ = experts.vectors(
        c.router.experts, {{names.gate, c.intermediate}, {names.up, c.intermediate}}, "bias", 0);
    down_bias_ = experts.vectors(c.router.experts, {{names.down, c.hidden}}, "bias", 0);
  }
  // transformers saves placeholder weights for identity experts.
  for (int64_t e = c.router.experts; e < choices; ++e) {
    for (std::string_view name : {names.gate, names.up}) (experts / e / name).ignore("weight");
  }
  if (c.shared_intermediate > 0 && !c.gated) {
    ungated_shared_.emplace(b / c.shared_name, c.hidden, c.shared_intermediate, false);
  } else if (c.shared_intermediate > 0) {
    shared_.emplace(b / c.shared_name, c.hidden, c.shared_intermediate, false, c.shared_glu,
                    c.shared_names);
  }
  if (!c.shared_gate_name.empty()) {
    shared_gate_ = b.derived("f32", 1, 1, c.hidden, b.floats(c.shared_gate_name, 1, c.hidden));
  }
}

Tensor Moe::operator()(Step& s, Tensor x, Tensor router_x) const {
  Tensor logits = linear(s, router_x, router_, router_bias_);
  Routing routing = route(s, logits, bias_, shape_);
  routing.own = own_;
  if (!expert_scale_.empty()) routing = scale_by_expert(s, routing, expert_scale_);
  Tensor in = one_.empty() ? x : weigh_inputs(s, x, routing, one_);
  Gates gates = gated_ ? gates_of_rows(s, in, gate_up_, routing, gate_up_bias_, glu_)
                       : Gates{linear_of_rows(s, in, gate_up_, routing, gate_up_bias_)};
  // Next to the experts' product of x and its activation, so that a GPU rounds x once for both and,
  // where products do not activate, computes both activations in one launch.
  Gates shared_gates = shared_ ? shared_->up(s, x) : Gates();
  Tensor shared = ungated_shared_ ? ungated_shared_->up(s, x) : Tensor();
  Tensor inner = gated_ ? activate(s, gates, glu_) : square_relu(s, gates.rows);
  if (shared_) shared = shared_->activate(s, shared_gates);
  Tensor expert_rows = linear_of_sorted(s, inner, down_, routing, down_bias_);
  share_expert_rows(s, expert_rows, routing);
  if (shared_) shared = shared_->down(s, shared, shared_gates.next);
  if (ungated_shared_) shared = ungated_shared_->down(s, ungated_shared_->activate(s, shared));
  if (!shared_gate_.empty()) {
    shared = gate_mul(s, GateFunction::kSigmoid, linear(s, x, shared_gate_, Tensor()), shared);
  }
  return combine_experts(s, x, expert_rows, routing, shared);
}

}  // namespace banyan
