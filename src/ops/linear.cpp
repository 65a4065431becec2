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
               .k = table.columns});
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

Tensor linear(Step& s, Tensor x, const PackedMatrix& weight, Tensor bias) {
  x.check_matrix(weight.columns);
  CHECK(bias.empty() || bias.count() == weight.rows, "bias of {}", bias.count());
  Tensor y = s.allocate({x.dim(0), weight.rows});
  (s.kernels.*weight.format->kernel)
      .run({.launch = s.launch,
            .x = x.f32(),
            .x_stride = x.stride(0),
            .weight = weight.data,
            .bias = bias.empty() ? nullptr : bias.f32(),
            .y = y.f32(),
            .y_stride = y.stride(0),
            .rows = x.dim(0),
            .n = weight.rows,
            .k = weight.columns});
  return y;
}

}  // namespace banyan
