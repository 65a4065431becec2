// What the recurrent mixers share: a causal convolution along each channel, keys and queries of
// length 1, and how a recurrent state is declared.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "ops/recurrent.h"
#include "ops/rowwise.h"
#include "weights/builder.h"

namespace banyan {

struct ShortConvConfig {
  int64_t taps = 4;
  bool bias = false;
  bool silu = true;  // of what comes out
};

// A depthwise convolution over a row and those before it, whose state is its last inputs.
class ShortConv {
 public:
  // `parts` [channels, 1, taps] lie side by side, cut as the rows of matrices are.
  ShortConv(Builder b, std::initializer_list<MatrixPart> parts, const ShortConvConfig& c);

  // x [T, channels] -> the same
  Tensor operator()(Step& s, Tensor x) const { return short_conv(s, x, convolution_, state_); }

 private:
  Convolution convolution_;
  StateId state_;
};

// x / sqrt(sum(x^2) + 1e-6) of groups of `dim` columns: the root-mean-square norm with another eps
// and constant weights.
class UnitNorm {
 public:
  UnitNorm(Builder b, int64_t dim);

  Tensor operator()(Step& s, Tensor x) const { return rms_norm(s, x, weight_, eps_); }

 private:
  Tensor weight_;  // [dim]
  float eps_;
};

// The state of a mixer with a matrix for each head, whose prefill form goes by chunks.
StateSpec recurrent_state(const LinearAttentionShape& shape, int chunk_tokens);

}  // namespace banyan
