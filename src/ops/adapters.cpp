#include "ops/adapters.h"

#include <algorithm>

#include "base/check.h"
#include "base/signed.h"
#include "ops/linear.h"

namespace banyan {
namespace {

bool is_used(const Step& s, const AdapterProduct::Part& part) {
  return std::ranges::any_of(
      s.batch.adapters, [&part](int32_t slot) { return slot >= 0 && at(part.used, slot) != 0; });
}

// y[i] = the matrix of the i-th adapted row's slot, times that row of x.
void multiply(Step& s, Tensor x, PackedMatrix matrices, const int32_t* x_index, Tensor y) {
  matrices.count = s.inputs.adapted.slots;
  multiply_group(s, x, matrices, {.begins = s.inputs.adapted.begins, .x_index = x_index}, y);
}

}  // namespace

bool is_adapted(const Step& s, int site) {
  if (s.adapters == nullptr || site < 0 || s.inputs.adapted.empty()) return false;
  return std::ranges::any_of(at(s.adapters->products, site).parts,
                             [&s](const AdapterProduct::Part& part) { return is_used(s, part); });
}

// Of parts that no adapter of this step has, nothing is computed; they would add zeros.
void add_adapters(Step& s, int site, Tensor x, Tensor y) {
  const AdaptedRows& rows = s.inputs.adapted;
  const AdapterProduct& product = at(s.adapters->products, site);
  CHECK(x.dim(0) == s.batch.rows() && rows.slots <= s.adapters->slots, "{} rows of {}, {} slots",
        x.dim(0), s.batch.rows(), rows.slots);
  x.check_matrix(product.a.columns);
  size_t mark = s.arena.mark();
  Tensor low = s.allocate({rows.count, product.a.rows});
  multiply(s, x, product.a, rows.rows, low);
  size_t after_low = s.arena.mark();
  for (size_t i = 0; i < product.parts.size(); ++i) {
    const AdapterProduct::Part& part = product.parts[i];
    if (!is_used(s, part)) continue;
    Tensor delta = s.allocate({rows.count, part.b.rows});
    auto first = static_cast<int64_t>(i) * s.adapters->rank;
    multiply(s, low.columns(first, s.adapters->rank), part.b, nullptr, delta);
    Tensor sum = y.columns(part.first, part.b.rows);
    s.kernels.add_rows({.launch = s.launch,
                        .x = delta.f32(),
                        .x_row_stride = delta.stride(0),
                        .index = rows.rows,
                        .y = sum.f32(),
                        .y_row_stride = sum.stride(0),
                        .rows = rows.count,
                        .dim = part.b.rows});
    s.arena.rewind(after_low);
  }
  s.arena.rewind(mark);
}

}  // namespace banyan
