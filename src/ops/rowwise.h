// What each row is done to by itself: norms, sums, activations, rotations.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "ops/step.h"

namespace banyan {

// Root-mean-square norm over groups of weight.dim(0) columns of x [T, D], in f32 -> [T, D].
Tensor rms_norm(Step& s, Tensor x, Tensor weight, float eps);

// The same over `groups` groups of columns, each with its own part of weight [D] -> [T, D].
Tensor group_rms_norm(Step& s, Tensor x, Tensor weight, int64_t groups, float eps);

// Element-wise a + b -> [T, D].
Tensor add(Step& s, Tensor a, Tensor b);

// silu(first half of the columns) * second half; x [T, 2 D] -> [T, D]. With a limit,
// min(silu(a), limit) * clamp(b, -limit, limit): what some mixtures of experts are trained with.
Tensor silu_mul(Step& s, Tensor x, float limit = 0, GluForm form = GluForm::kSilu);

// Of queries: 1 + beta * ln(1 + floor((position + offset) / period)); beta 0: none.
struct PositionScale {
  double beta = 0, period = 1, offset = 0;
};
// scale * x [T, D], times what the row's position asks for -> [T, D].
Tensor scale(Step& s, Tensor x, float factor, const PositionScale& positions = {});
// cap * tanh(scale * x / cap) of x [any, D] -> the same shape; without a cap scale * x.
Tensor soft_cap(Step& s, Tensor x, float cap, float scale = 1);

// f(gate) * x; x [T, D], gate [T, D], or [T, G] each for D / G columns, or [1, G] for all rows
// -> [T, D].
Tensor gate_mul(Step& s, GateFunction f, Tensor gate, Tensor x);

// The cosines and sines by which the rows of this step are rotated, each [T, pairs].
struct Rotation {
  Tensor cos, sin;
};
Rotation rope_angles(Step& s, Tensor inverse_frequency, float scale);

// Rotates every head of x [T, heads * head_dim] -> [T, heads * head_dim].
Tensor rope(Step& s, Tensor x, int64_t head_dim, const Rotation& rotation, RopeLayout layout);

// Of each row of logits [T, vocabulary]: the index of its largest value, the lowest among equals,
// and log(sum(exp(row))). The arrays lie in the arena.
struct LogitStats {
  const int32_t* argmax = nullptr;     // [T]
  const float* log_sum_exp = nullptr;  // [T]
};
LogitStats logit_stats(Step& s, Tensor logits);

}  // namespace banyan
