#include "ops/moe.h"

#include <vector>

#include "base/check.h"

namespace banyan {
namespace {

// The rows of x, or those that `x_index` names, in the order of experts.
GroupLayout layout_of(const PackedMatrix& experts, const Routing& r, const int32_t* x_index,
                      Tensor bias) {
  CHECK(experts.count == r.own.count && r.own.end() <= r.experts, "{} experts of {}", experts.count,
        r.experts);
  // What sorted rows are multiplied from is rounded while the shared expert's rows are.
  GroupLayout layout{.begins = r.begins + r.own.begin,
                     .x_index = x_index,
                     .workspace = x_index == nullptr ? Workspace::kOwn : Workspace::kShared};
  if (!bias.empty()) {
    CHECK(bias.count() == experts.count * experts.rows, "biases of {}", bias.count());
    layout.bias = bias.f32();
    layout.bias_stride = experts.rows;
  }
  return layout;
}

Tensor multiply_experts(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                        const int32_t* x_index, Tensor bias) {
  x.check_matrix(experts.columns);
  Tensor y = s.allocate({r.assignments_max, experts.rows});
  multiply_group(s, x, experts, layout_of(experts, r, x_index, bias), y);
  return y;
}

}  // namespace

Routing route(Step& s, Tensor logits, Tensor bias, const RouterShape& shape) {
  int64_t all = shape.experts + shape.identity_experts;
  logits.check_matrix(all);
  CHECK(all <= kExpertsMax && shape.top_k <= all / shape.groups * shape.top_groups,
        "{} of {} experts in {} of {} groups", shape.top_k, all, shape.top_groups, shape.groups);
  CHECK(bias.empty() || bias.count() == all, "bias of {}", bias.count());
  int64_t choices = logits.dim(0) * shape.top_k;
  auto* ids = s.arena.allocate_array<int32_t>(choices);
  auto* weights = s.arena.allocate_array<float>(choices);
  auto* places = s.arena.allocate_array<int32_t>(choices);
  auto* sources = s.arena.allocate_array<int32_t>(choices);
  auto* begins = s.arena.allocate_array<int32_t>(shape.experts + 1);
  s.kernels.route({.launch = s.launch,
                   .logits = logits.f32(),
                   .logits_row_stride = logits.stride(0),
                   .bias = bias.empty() ? nullptr : bias.f32(),
                   .ids = ids,
                   .weights = weights,
                   .rows = logits.dim(0),
                   .experts = all,
                   .top_k = shape.top_k,
                   .groups = shape.groups,
                   .top_groups = shape.top_groups,
                   .score = shape.score,
                   .group_score = shape.group_score,
                   .normalise = shape.normalise,
                   .scale = shape.scale});
  s.kernels.sort_experts(
      {.launch = s.launch,
       .ids = ids,
       .rows = logits.dim(0),
       .top_k = shape.top_k,
       .experts = shape.experts,
       .begins = begins,
       .places = places,
       .sources = sources,
       .counts = s.expert_counts == nullptr ? nullptr : s.expert_counts + shape.counts_begin});
  return {.rows = logits.dim(0),
          .top_k = shape.top_k,
          .experts = shape.experts,
          .assignments_max = choices,
          .ids = ids,
          .weights = weights,
          .places = places,
          .sources = sources,
          .begins = begins,
          .own = {0, shape.experts}};
}

Tensor weigh_inputs(Step& s, Tensor x, Routing& r, Tensor one) {
  CHECK(r.top_k == 1 && x.dim(0) == r.rows && one.count() == 1, "top {}", r.top_k);
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.gate_mul({.launch = s.launch,
                      .gate = r.weights,
                      .x = x.f32(),
                      .gate_row_stride = 1,
                      .x_row_stride = x.stride(0),
                      .y = y.f32(),
                      .rows = r.rows,
                      .dim = x.dim(1),
                      .gate_columns = x.dim(1),
                      .function = GateFunction::kIdentity});
  auto* ones = s.arena.allocate_array<float>(r.rows);
  s.kernels.copy_rows({.launch = s.launch,
                       .x = one.f32(),
                       .x_row_stride = 0,
                       .y = ones,
                       .y_row_stride = 1,
                       .rows = r.rows,
                       .dim = 1});
  r.weights = ones;
  return y;
}

Routing scale_by_expert(Step& s, Routing r, Tensor factors) {
  CHECK(factors.count() == r.experts, "{} factors of {} experts", factors.count(), r.experts);
  int64_t choices = r.rows * r.top_k;
  auto* chosen = s.arena.allocate_array<float>(choices);
  s.kernels.copy_rows({.launch = s.launch,
                       .x = factors.f32(),
                       .x_row_stride = 1,
                       .index = r.ids,
                       .y = chosen,
                       .y_row_stride = 1,
                       .rows = choices,
                       .dim = 1});
  auto* weights = s.arena.allocate_array<float>(choices);
  s.kernels.gate_mul({.launch = s.launch,
                      .gate = chosen,
                      .x = r.weights,
                      .gate_row_stride = 1,
                      .x_row_stride = 1,
                      .y = weights,
                      .rows = choices,
                      .dim = 1,
                      .function = GateFunction::kIdentity});
  r.weights = weights;
  return r;
}

Tensor linear_of_rows(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                      Tensor bias) {
  CHECK(x.dim(0) == r.rows, "{} rows of {}", x.dim(0), r.rows);
  return multiply_experts(s, x, experts, r, r.sources, bias);
}

Gates gates_of_rows(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r, Tensor bias,
                    const Glu& glu) {
  x.check_matrix(experts.columns);
  CHECK(x.dim(0) == r.rows, "{} rows of {}", x.dim(0), r.rows);
  Tensor y = s.allocate({r.assignments_max, experts.rows});
  return multiply_gated_group(s, x, experts, layout_of(experts, r, r.sources, bias), y, glu);
}

Tensor linear_of_sorted(Step& s, Tensor x, const PackedMatrix& experts, const Routing& r,
                        Tensor bias) {
  CHECK(x.dim(0) == r.assignments_max, "{} rows of {}", x.dim(0), r.assignments_max);
  return multiply_experts(s, x, experts, r, nullptr, bias);
}

void share_expert_rows(Step& s, Tensor x, const Routing& r) {
  Rank rank = s.comm.rank();
  if (!s.comm.exchanges()) return;
  std::vector<int64_t> sizes;
  for (int other = 0; other < rank.count; ++other) {
    UnitRange experts = units_of(r.experts, {other, rank.count});
    sizes.push_back((r.begins[experts.end()] - r.begins[experts.begin]) * x.dim(1));
  }
  s.comm.all_gather(sizes, x.f32());
}

Tensor combine_experts(Step& s, Tensor x, Tensor expert_rows, const Routing& r, Tensor shared) {
  expert_rows.check_matrix(x.dim(1));
  CHECK(x.dim(0) == r.rows && expert_rows.dim(0) == r.assignments_max);
  if (!shared.empty()) shared.check_matrix(x.dim(1));
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.combine_experts({.launch = s.launch,
                             .x = x.f32(),
                             .x_row_stride = x.stride(0),
                             .expert_rows = expert_rows.f32(),
                             .places = r.places,
                             .weights = r.weights,
                             .shared = shared.empty() ? nullptr : shared.f32(),
                             .y = y.f32(),
                             .rows = x.dim(0),
                             .dim = x.dim(1),
                             .top_k = r.top_k});
  return y;
}

}  // namespace banyan
