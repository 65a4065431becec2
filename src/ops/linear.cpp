#include "ops/linear.h"

#include <cstring>

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
  if (s.arena.measuring()) return y;
  for (size_t i = 0; i < rows.size(); ++i) {
    Tensor source = x.rows(rows[i], 1);
    std::memcpy(y.rows(static_cast<int64_t>(i), 1).data(), source.data(), source.bytes());
  }
  return y;
}

namespace {

// The product of x with `parts`, whose weights are shaped and stored like `weight`.
Tensor multiply(Step& s, Tensor x, const PackedMatrix& weight, std::span<const GemmPart> parts,
                const GemmArgs& layout, int64_t rows, int64_t columns) {
  const GemmKernel& kernel = s.kernels.*weight.format->kernel;
  Tensor y = s.allocate({rows, columns});
  size_t mark = s.arena.mark();
  GemmArgs args = layout;
  args.launch = s.launch;
  args.x = x.f32();
  args.x_stride = x.stride(0);
  args.x_rows = x.dim(0);
  args.parts = parts.data();
  args.part_count = std::ssize(parts);
  args.y = y.f32();
  args.y_stride = y.stride(0);
  args.n = weight.rows;
  args.k = weight.columns;
  args.group = weight.group;
  args.workspace = s.arena.allocate(
      kernel.workspace_bytes(x.dim(0), args.segments, weight.columns, weight.group));
  kernel.run(args);
  s.arena.rewind(mark);
  return y;
}

}  // namespace

Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias) {
  x.check_matrix(weight.columns);
  CHECK(bias.empty() || bias.count() == weight.rows, "bias of {}", bias.count());
  GemmPart part = {.weight = weight.data, .row_count = static_cast<int32_t>(x.dim(0))};
  return multiply(s, x, weight, {&part, 1}, {.bias = bias.empty() ? nullptr : bias.f32()}, x.dim(0),
                  weight.rows);
}

}  // namespace banyan
