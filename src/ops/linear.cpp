#include "ops/linear.h"

#include "base/check.h"

namespace banyan {

Tensor gather_rows(Step& s, const PackedMatrix& table, std::span<const int32_t> ids) {
  auto rows = static_cast<int64_t>(ids.size());
  Tensor y = s.allocate({rows, table.columns});
  (s.kernels.*table.format->kernel)
      .gather({.launch = s.launch,
               .weight = table.data,
               .ids = ids.data(),
               .y = y.f32(),
               .rows = rows,
               .n = table.rows,
               .k = table.columns,
               .group = table.group});
  return y;
}

Tensor select_rows(Step& s, Tensor x, std::span<const int32_t> rows) {
  Tensor y = s.allocate({static_cast<int64_t>(rows.size()), x.dim(1)});
  s.kernels.copy_rows({.launch = s.launch,
                       .x = x.f32(),
                       .x_row_stride = x.stride(0),
                       .index = rows.data(),
                       .y = y.f32(),
                       .y_row_stride = y.stride(0),
                       .rows = y.dim(0),
                       .dim = y.dim(1)});
  return y;
}

void multiply_parts(Step& s, Tensor x, const PackedMatrix& like, std::span<const GemmPart> parts,
                    const PartsLayout& layout, Tensor y) {
  const GemmKernel& kernel = s.kernels.*like.format->kernel;
  size_t mark = s.arena.mark();
  void* workspace =
      s.arena.allocate(kernel.workspace_bytes(x.dim(0), layout.segments, like.columns, like.group));
  kernel.run({.launch = s.launch,
              .x = x.f32(),
              .x_stride = x.stride(0),
              .x_rows = x.dim(0),
              .segments = layout.segments,
              .segment_stride = layout.segment_stride,
              .x_index = layout.x_index,
              .parts = parts.data(),
              .part_count = std::ssize(parts),
              .bias = layout.bias,
              .y = y.f32(),
              .y_stride = y.stride(0),
              .n = like.rows,
              .k = like.columns,
              .group = like.group,
              .workspace = workspace});
  s.arena.rewind(mark);
}

Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias) {
  x.check_matrix(weight.columns);
  CHECK(bias.empty() || bias.count() == weight.rows, "bias of {}", bias.count());
  GemmPart part = {.weight = weight.data, .row_count = static_cast<int32_t>(x.dim(0))};
  Tensor y = s.allocate({x.dim(0), weight.rows});
  multiply_parts(s, x, weight, {&part, 1}, {.bias = bias.empty() ? nullptr : bias.f32()}, y);
  return y;
}

}  // namespace banyan
