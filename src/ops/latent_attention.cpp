#include "ops/latent_attention.h"

#include "base/check.h"
#include "ops/linear.h"

namespace banyan {
namespace {

// Writes the heads of x, each `dim` columns at every `x_stride`, to y, rotated.
void rotate_into(Step& s, Tensor x, int64_t x_stride, Tensor y, int64_t y_stride, int64_t heads,
                 int64_t dim, const Rotation& rotation, RopeLayout layout) {
  if (dim == 0) return;
  bool rotates = !rotation.cos.empty();
  CHECK(!rotates || rotation.cos.dim(1) * 2 <= dim, "{} pairs of {}", rotation.cos.dim(1), dim);
  s.kernels.rope({.launch = s.launch,
                  .x = x.f32(),
                  .x_row_stride = x.stride(0),
                  .x_head_stride = x_stride,
                  .cos = rotates ? rotation.cos.f32() : nullptr,
                  .sin = rotates ? rotation.sin.f32() : nullptr,
                  .y = y.f32(),
                  .y_row_stride = y.stride(0),
                  .y_head_stride = y_stride,
                  .rows = x.dim(0),
                  .heads = heads,
                  .head_dim = dim,
                  .pairs = rotates ? rotation.cos.dim(1) : 0,
                  .layout = layout});
}

// Multiplies segment h of x with weights[h], to columns of y that are `y_stride` apart.
void multiply_heads(Step& s, Tensor x, int64_t x_stride, std::span<const PackedMatrix> weights,
                    Tensor y, int64_t y_stride) {
  size_t mark = s.arena.mark();
  auto heads = std::ssize(weights);
  auto* parts = s.arena.allocate_array<GemmPart>(heads);
  for (int64_t h = 0; h < heads && !s.arena.measuring(); ++h) {
    parts[h] = {.weight = weights[static_cast<size_t>(h)].data,
                .row_count = static_cast<int32_t>(x.dim(0)),
                .segment = static_cast<int32_t>(h),
                .y_column = static_cast<int32_t>(h * y_stride)};
  }
  multiply_parts(s, x, weights[0], {parts, weights.size()},
                 {.segments = heads, .segment_stride = x_stride}, y);
  s.arena.rewind(mark);
}

}  // namespace

Tensor latent_rows(Step& s, Tensor x, Tensor norm, float eps, const Rotation& rotation,
                   const LatentShape& shape) {
  x.check_matrix(shape.width());
  CHECK(norm.count() == shape.rank, "a norm of {} columns", norm.count());
  Tensor y = s.allocate({x.dim(0), shape.width()});
  s.kernels.rms_norm({.launch = s.launch,
                      .x = x.f32(),
                      .x_row_stride = x.stride(0),
                      .weight = norm.f32(),
                      .y = y.f32(),
                      .y_row_stride = y.stride(0),
                      .rows = x.dim(0),
                      .dim = shape.rank,
                      .eps = eps});
  rotate_into(s, x.columns(shape.rank, shape.rope_dim), shape.rope_dim,
              y.columns(shape.rank, shape.rope_dim), shape.rope_dim, 1, shape.rope_dim, rotation,
              shape.layout);
  return y;
}

Tensor latent_queries(Step& s, Tensor q, std::span<const PackedMatrix> keys,
                      const Rotation& rotation, const LatentShape& shape) {
  q.check_matrix(shape.heads * shape.query_dim());
  CHECK(std::ssize(keys) == shape.heads && keys[0].rows == shape.rank &&
        keys[0].columns == shape.nope_dim);
  Tensor y = s.allocate({q.dim(0), shape.heads * shape.width()});
  multiply_heads(s, q, shape.query_dim(), keys, y, shape.width());
  rotate_into(s, q.columns(shape.nope_dim, q.dim(1) - shape.nope_dim), shape.query_dim(),
              y.columns(shape.rank, y.dim(1) - shape.rank), shape.width(), shape.heads,
              shape.rope_dim, rotation, shape.layout);
  return y;
}

Tensor latent_attention(Step& s, Tensor q, StateId latents, const LatentShape& shape) {
  q.check_matrix(shape.heads * shape.width());
  const StateSpec& spec = s.pools.spec(latents);
  CHECK(spec.heads == 1 && spec.width == shape.width() && spec.reach == StateReach::kAll,
        "{}: {} heads of {}", spec.name, spec.heads, spec.width);
  Tensor out = s.allocate({q.dim(0), shape.heads * shape.rank});
  s.kernels.latent_attention({.launch = s.launch,
                              .q = q.f32(),
                              .q_row_stride = q.stride(0),
                              .pool = s.pools.pool(latents),
                              .pool_dtype = spec.dtype,
                              .out = out.f32(),
                              .heads = shape.heads,
                              .width = shape.width(),
                              .rank = shape.rank,
                              .page_size = s.pools.page_size_tokens(),
                              .scale = shape.scale,
                              .spans = s.batch.spans.data(),
                              .span_count = std::ssize(s.batch.spans),
                              .page_table = s.batch.page_table.data()});
  return out;
}

Tensor latent_values(Step& s, Tensor x, std::span<const PackedMatrix> values,
                     const LatentShape& shape) {
  x.check_matrix(shape.heads * shape.rank);
  CHECK(std::ssize(values) == shape.heads && values[0].rows == shape.value_dim &&
        values[0].columns == shape.rank);
  Tensor y = s.allocate({x.dim(0), shape.heads * shape.value_dim});
  multiply_heads(s, x, shape.rank, values, y, shape.value_dim);
  return y;
}

}  // namespace banyan
