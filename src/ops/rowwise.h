// Row-wise ops: norms, sums, activations, rotations.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step, D a feature width.
#pragma once

#include <cstdint>

#include "ops/step.h"

namespace banyan {

// RMS norm over groups of weight.dim(0) columns of x [T, D], in f32 -> [T, D].
Tensor rms_norm(Step& s, Tensor x, Tensor weight, float eps);

// RMS norm over `groups` groups of columns, each with its own part of weight [D] -> [T, D].
Tensor group_rms_norm(Step& s, Tensor x, Tensor weight, int64_t groups, float eps);

// Layer norm over the columns of x [T, D], in f32, with weight and bias [D] -> [T, D].
Tensor layer_norm(Step& s, Tensor x, Tensor weight, Tensor bias, float eps);

// Element-wise a + b -> [T, D].
Tensor add(Step& s, Tensor a, Tensor b);

// The activation of a gated block; see SiluMulArgs.
struct Glu {
  GluForm form = GluForm::kSilu;
  float limit = 0;  // clamp; 0: none
};
// silu(first half of the columns) * second half, or another form of it; x [T, 2 D] -> [T, D].
Tensor silu_mul(Step& s, Tensor x, const Glu& glu = {});
// The arguments of that kernel, for a result y.
SiluMulArgs silu_mul_args(const Step& s, Tensor x, const Glu& glu, Tensor y);

// Query scaling: 1 + beta * ln(1 + floor((position + offset) / period)); beta 0: none.
struct PositionScale {
  double beta = 0, period = 1, offset = 0;
};
// scale * x [T, D], times the position scale of each row -> [T, D].
Tensor scale(Step& s, Tensor x, float factor, const PositionScale& positions = {});
// cap * tanh(scale * x / cap) of x [any, D] -> the same shape; without a cap, scale * x.
Tensor soft_cap(Step& s, Tensor x, float cap, float scale = 1);

// f(gate) * x; x [T, D]; gate [T, D], or [T, G] with one gate per D / G columns, or [1, G] for all
// rows -> [T, D].
Tensor gate_mul(Step& s, GateFunction f, Tensor gate, Tensor x);

// The cosines and sines by which the rows of this step are rotated, each [T, pairs].
struct Rotation {
  Tensor cos, sin;
};
Rotation rope_angles(Step& s, Tensor inverse_frequency, float scale);

// Rotates every head of x [T, heads * head_dim] -> [T, heads * head_dim].
Tensor rope(Step& s, Tensor x, int64_t head_dim, const Rotation& rotation, RopeLayout layout);

// Per row of logits [T, vocabulary]: the index of the largest value, the lowest among equals, and
// log(sum(exp(row))). The arrays are in the arena.
struct LogitStats {
  const int32_t* argmax = nullptr;     // [T]
  const float* log_sum_exp = nullptr;  // [T]
};
LogitStats logit_stats(Step& s, Tensor logits);

}  // namespace banyan
