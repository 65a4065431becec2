#include "ops/rowwise.h"

#include "base/check.h"

namespace banyan {
namespace {

Tensor rms_norm_of_groups(Step& s, Tensor x, Tensor weight, int64_t dim, float eps) {
  CHECK(x.rank() == 2 && x.dim(1) % dim == 0, "{} columns in groups of {}", x.dim(1), dim);
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.rms_norm({.launch = s.launch,
                      .x = x.f32(),
                      .x_row_stride = x.stride(0),
                      .weight = weight.f32(),
                      .weight_group_stride = weight.dim(0) == dim ? 0 : dim,
                      .y = y.f32(),
                      .y_row_stride = y.stride(0),
                      .rows = x.dim(0),
                      .groups = x.dim(1) / dim,
                      .dim = dim,
                      .eps = eps});
  return y;
}

}  // namespace

Tensor rms_norm(Step& s, Tensor x, Tensor weight, float eps) {
  return rms_norm_of_groups(s, x, weight, weight.dim(0), eps);
}

Tensor group_rms_norm(Step& s, Tensor x, Tensor weight, int64_t groups, float eps) {
  x.check_matrix(weight.dim(0));
  CHECK(weight.dim(0) % groups == 0, "{} columns in {} groups", weight.dim(0), groups);
  return rms_norm_of_groups(s, x, weight, weight.dim(0) / groups, eps);
}

Tensor layer_norm(Step& s, Tensor x, Tensor weight, Tensor bias, float eps) {
  x.check_matrix(weight.dim(0));
  CHECK(bias.count() == weight.count(), "{} weights, {} biases", weight.count(), bias.count());
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.layer_norm({.launch = s.launch,
                        .x = x.f32(),
                        .x_row_stride = x.stride(0),
                        .weight = weight.f32(),
                        .bias = bias.f32(),
                        .y = y.f32(),
                        .rows = x.dim(0),
                        .dim = x.dim(1),
                        .eps = eps});
  return y;
}

Tensor add(Step& s, Tensor a, Tensor b) {
  b.check_matrix(a.dim(1));
  CHECK(a.dim(0) == b.dim(0) && a.stride(0) == a.dim(1) && b.stride(0) == b.dim(1));
  Tensor y = s.allocate({a.dim(0), a.dim(1)});
  s.kernels.add({.launch = s.launch, .a = a.f32(), .b = b.f32(), .y = y.f32(), .count = y.count()});
  return y;
}

SiluMulArgs silu_mul_args(const Step& s, Tensor x, const Glu& glu, Tensor y) {
  int64_t dim = y.dim(1);
  return {.launch = s.launch,
          .gate = x.f32(),
          .up = x.f32() + dim,
          .x_row_stride = x.stride(0),
          .y = y.f32(),
          .rows = x.dim(0),
          .dim = dim,
          .limit = glu.limit,
          .form = glu.form};
}

Tensor silu_mul(Step& s, Tensor x, const Glu& glu) {
  Tensor y = s.allocate({x.dim(0), x.dim(1) / 2});
  s.kernels.silu_mul(silu_mul_args(s, x, glu, y));
  return y;
}

Tensor scale(Step& s, Tensor x, float factor, const PositionScale& positions) {
  bool by_position = positions.beta != 0;
  CHECK(!by_position || x.dim(0) == s.batch.rows(), "{} rows", x.dim(0));
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.scale({.launch = s.launch,
                   .x = x.f32(),
                   .x_row_stride = x.stride(0),
                   .y = y.f32(),
                   .rows = x.dim(0),
                   .dim = x.dim(1),
                   .scale = factor,
                   .positions = by_position ? s.inputs.positions : nullptr,
                   .position_beta = static_cast<float>(positions.beta),
                   .position_period = static_cast<float>(positions.period),
                   .position_offset = static_cast<float>(positions.offset)});
  return y;
}

Tensor soft_cap(Step& s, Tensor x, float cap, float scale) {
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.scale({.launch = s.launch,
                   .x = x.f32(),
                   .x_row_stride = x.stride(0),
                   .y = y.f32(),
                   .rows = x.dim(0),
                   .dim = x.dim(1),
                   .scale = scale,
                   .soft_cap = cap});
  return y;
}

Tensor gate_mul(Step& s, GateFunction f, Tensor gate, Tensor x) {
  bool of_all_rows = gate.dim(0) == 1;
  CHECK(gate.rank() == 2 && (of_all_rows || gate.dim(0) == x.dim(0)) && x.dim(1) % gate.dim(1) == 0,
        "[{}, {}] gates [{}, {}]", gate.dim(0), gate.dim(1), x.dim(0), x.dim(1));
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.gate_mul({.launch = s.launch,
                      .gate = gate.f32(),
                      .x = x.f32(),
                      .gate_row_stride = of_all_rows ? 0 : gate.stride(0),
                      .x_row_stride = x.stride(0),
                      .y = y.f32(),
                      .rows = x.dim(0),
                      .dim = x.dim(1),
                      .gate_columns = x.dim(1) / gate.dim(1),
                      .function = f});
  return y;
}

Rotation rope_angles(Step& s, Tensor inverse_frequency, float scale) {
  int64_t rows = s.batch.rows(), pairs = inverse_frequency.dim(0);
  Rotation rotation = {s.allocate({rows, pairs}), s.allocate({rows, pairs})};
  s.kernels.rope_angles({.launch = s.launch,
                         .positions = s.inputs.positions,
                         .inverse_frequency = inverse_frequency.f32(),
                         .scale = scale,
                         .cos = rotation.cos.f32(),
                         .sin = rotation.sin.f32(),
                         .rows = rows,
                         .pairs = pairs});
  return rotation;
}

Tensor rope(Step& s, Tensor x, int64_t head_dim, const Rotation& rotation, RopeLayout layout) {
  CHECK(x.rank() == 2 && x.dim(1) % head_dim == 0 && 2 * rotation.cos.dim(1) <= head_dim,
        "{} columns in heads of {}", x.dim(1), head_dim);
  Tensor y = s.allocate({x.dim(0), x.dim(1)});
  s.kernels.rope({.launch = s.launch,
                  .x = x.f32(),
                  .x_row_stride = x.stride(0),
                  .x_head_stride = head_dim,
                  .cos = rotation.cos.f32(),
                  .sin = rotation.sin.f32(),
                  .y = y.f32(),
                  .y_row_stride = y.stride(0),
                  .y_head_stride = head_dim,
                  .rows = x.dim(0),
                  .heads = x.dim(1) / head_dim,
                  .head_dim = head_dim,
                  .pairs = rotation.cos.dim(1),
                  .layout = layout});
  return y;
}

LogitStats logit_stats(Step& s, Tensor logits) {
  int64_t rows = logits.dim(0);
  auto* max = s.arena.allocate_array<float>(rows);
  auto* argmax = s.arena.allocate_array<int32_t>(rows);
  auto* log_sum_exp = s.arena.allocate_array<float>(rows);
  s.kernels.logit_stats({.launch = s.launch,
                         .x = logits.f32(),
                         .x_row_stride = logits.stride(0),
                         .rows = rows,
                         .dim = logits.dim(1),
                         .max = max,
                         .argmax = argmax,
                         .log_sum_exp = log_sum_exp});
  return {argmax, log_sum_exp};
}

}  // namespace banyan
