#include "ops/linear.h"

#include "base/check.h"

namespace banyan {

Tensor gather_rows(Step& s, const PackedMatrix& table, const int32_t* ids, int64_t count) {
  Tensor y = s.allocate({count, table.columns});
  (s.kernels.*table.format->kernel)
      .gather({.launch = s.launch,
               .weight = table.data,
               .ids = ids,
               .y = y.f32(),
               .rows = count,
               .n = table.rows,
               .k = table.columns,
               .group = table.group});
  return y;
}

Tensor select_rows(Step& s, Tensor x, const int32_t* rows, int64_t count) {
  Tensor y = s.allocate({count, x.dim(1)});
  s.kernels.copy_rows({.launch = s.launch,
                       .x = x.f32(),
                       .x_row_stride = x.stride(0),
                       .index = rows,
                       .y = y.f32(),
                       .y_row_stride = y.stride(0),
                       .rows = y.dim(0),
                       .dim = y.dim(1)});
  return y;
}

namespace {

GemmArgs group_args(Step& s, Tensor x, const PackedMatrix& weights, const GroupLayout& layout,
                    Tensor y) {
  CHECK(layout.segments == 1 || layout.segments == weights.count, "{} segments, {} matrices",
        layout.segments, weights.count);
  return {.launch = s.launch,
          .x = x.f32(),
          .x_stride = x.stride(0),
          .x_rows = x.dim(0),
          .segments = layout.segments,
          .segment_stride = layout.segment_stride,
          .x_index = layout.x_index,
          .weights = {.weight = weights.data,
                      .weight_stride = static_cast<int64_t>(weights.bytes),
                      .count = weights.count,
                      .begins = layout.begins,
                      .segment_step = layout.segments > 1 ? 1 : 0,
                      .y_column_stride = layout.y_column_stride},
          .bias = layout.bias,
          .bias_stride = layout.bias_stride,
          .y = y.f32(),
          .y_stride = y.stride(0),
          .n = weights.rows,
          .k = weights.columns,
          .group = weights.group};
}

// Where the product rounds x.
void* workspace_for(Step& s, const GemmKernel& kernel, const GemmArgs& a, Workspace workspace) {
  size_t bytes = kernel.workspace_bytes(a.x_rows, a.segments, a.k, a.group);
  return workspace == Workspace::kOwn ? s.arena.allocate(bytes) : s.arena.last(bytes);
}

}  // namespace

void multiply_group(Step& s, Tensor x, const PackedMatrix& weights, const GroupLayout& layout,
                    Tensor y) {
  const GemmKernel& kernel = s.kernels.*weights.format->kernel;
  GemmArgs args = group_args(s, x, weights, layout, y);
  args.workspace = workspace_for(s, kernel, args, layout.workspace);
  kernel.run(args);
}

Gates multiply_gated_group(Step& s, Tensor x, const PackedMatrix& weights,
                           const GroupLayout& layout, Tensor y, const Glu& glu) {
  const GemmKernel& kernel = s.kernels.*weights.format->kernel;
  GemmArgs args = group_args(s, x, weights, layout, y);
  if (kernel.gates == nullptr || !kernel.gates(args)) {
    args.workspace = workspace_for(s, kernel, args, layout.workspace);
    kernel.run(args);
    // As for fewer rows, which may be activated, so that they never need more memory.
    return {y, false, kernel.gates == nullptr ? Workspace::kShared : Workspace::kOwn};
  }
  Tensor activated = s.allocate({y.dim(0), y.dim(1) / 2});
  args.workspace = workspace_for(s, kernel, args, layout.workspace);
  kernel.run_gated({args, silu_mul_args(s, y, glu, activated)});
  return {activated, true, Workspace::kOwn};
}

Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias) {
  return linear(s, x, std::span(&weight, 1), bias);
}

Tensor linear(Step& s, Tensor x, std::span<const PackedMatrix> weights, Tensor bias,
              Workspace workspace) {
  int64_t rows = 0, first = 0;
  for (const PackedMatrix& weight : weights) rows += weight.rows;
  CHECK(bias.empty() || bias.count() == rows, "bias of {}", bias.count());
  Tensor y = s.allocate({x.dim(0), rows});
  for (const PackedMatrix& weight : weights) {
    x.check_matrix(weight.columns);
    CHECK(weight.count == 1, "{} matrices", weight.count);
    const float* own_bias = bias.empty() ? nullptr : bias.f32() + first;
    multiply_group(s, x, weight, {.bias = own_bias, .workspace = workspace},
                   y.columns(first, weight.rows));
    first += weight.rows;
  }
  return y;
}

Gates gated_linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias, const Glu& glu) {
  x.check_matrix(weight.columns);
  CHECK(weight.count == 1, "{} matrices", weight.count);
  CHECK(bias.empty() || bias.count() == weight.rows, "bias of {}", bias.count());
  Tensor y = s.allocate({x.dim(0), weight.rows});
  return multiply_gated_group(s, x, weight, {.bias = bias.empty() ? nullptr : bias.f32()}, y, glu);
}

Tensor activate(Step& s, const Gates& gates, const Glu& glu) {
  return gates.activated ? gates.rows : silu_mul(s, gates.rows, glu);
}

}  // namespace banyan
