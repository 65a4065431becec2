// What the recurrent mixers share: a depthwise causal convolution, L2 normalisation of q and k, and
// the declaration of a recurrent state with its log of drafts.
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
  bool silu = true;  // SiLU on the output
};

// A causal depthwise convolution. Its state holds the last inputs.
class ShortConv {
 public:
  // The channels of `parts` [channels, 1, taps] are concatenated, and sharded like matrix rows.
  ShortConv(Builder b, std::initializer_list<MatrixPart> parts, const ShortConvConfig& c);

  // x [T, channels] -> the same
  Tensor operator()(Step& s, Tensor x) const { return short_conv(s, x, convolution_, state_); }

 private:
  Convolution convolution_;
  SlotState state_;
};

// L2 normalisation, x / sqrt(sum(x^2) + 1e-6), of groups of `dim` columns: an RMSNorm with constant
// weights and an adjusted eps.
class UnitNorm {
 public:
  UnitNorm(Builder b, int64_t dim);

  Tensor operator()(Step& s, Tensor x) const { return rms_norm(s, x, weight_, eps_); }

 private:
  Tensor weight_;  // [dim]
  float eps_;
};

// Declares the state of a mixer that keeps one matrix per head and prefills in chunks. `decays`: of
// a row and head.
SlotState recurrent_state(Builder b, const LinearAttentionShape& shape, int chunk_tokens,
                          int64_t decays);

}  // namespace banyan
