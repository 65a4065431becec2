// Layers whose memory is a state of fixed size: one slot per sequence, changed in place.
//
// Tensors in, a new tensor out: each op checks shapes, takes its result from the step's arena and
// calls the kernel table. None of them changes its inputs.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/step.h"

namespace banyan {

struct LinearAttentionShape {
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  int64_t group = 1;  // heads that share a query and a key
  float scale = 1;
  int64_t key_width() const { return heads / group * key_dim; }
  int64_t value_width() const { return heads * value_dim; }
};

// Linear attention with the decay exp(log_decay) [heads] of q and k [T, key_width] and
// v [T, value_width] -> [T, value_width]. `state` has kPoint reach, `heads` heads of
// width key_dim * value_dim, and an alignment that is the chunk of the prefill form. The batch
// gives every span a slot, and captures in a prompt only at the ends of chunks.
Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay, StateId state,
                        const LinearAttentionShape& shape);

// The decays [T, heads * key_dim], or [T, heads] where the channels of a head decay alike, and
// strengths [T, heads] of the delta rule.
struct DeltaGates {
  Tensor decay, beta;
};

// The gates from the logits of decays and strengths of those shapes, with log_rate [heads] and a
// bias as wide as the decays. A lower_bound below 0 takes the law with a least
// log decay, 0 the softplus law: see DeltaGatesArgs.
DeltaGates delta_gates(Step& s, Tensor decay_logits, Tensor beta_logits, Tensor log_rate,
                       Tensor bias, float lower_bound);

// The delta rule on q and k [T, key_width] and v [T, value_width] -> [T, value_width]. `state` as
// in linear_attention.
Tensor delta_attention(Step& s, Tensor q, Tensor k, Tensor v, const DeltaGates& gates,
                       StateId state, const LinearAttentionShape& shape);

// What a selective state space is gated by, both [T, heads]: how much a row adds, and what it
// leaves of the state.
struct StateSpaceGates {
  Tensor step, decay;
};
struct StepLimits {
  float min = 0, max = 0;
};

// The gates from step logits [T, heads], with bias and log_rate [heads]: see StateSpaceGatesArgs.
StateSpaceGates state_space_gates(Step& s, Tensor step_logits, Tensor bias, Tensor log_rate,
                                  const StepLimits& limits);

// The state space on q and k [T, key_width] and v [T, value_width], with skip [heads]
// -> [T, value_width]. `state` as in linear_attention; the scale is not used.
Tensor state_space(Step& s, Tensor q, Tensor k, Tensor v, const StateSpaceGates& gates, Tensor skip,
                   StateId state, const LinearAttentionShape& shape);

struct Convolution {
  Tensor weight;  // [taps, channels]; the last tap meets the row itself
  Tensor bias;    // [channels], or none
  bool silu = true;
};

// A causal convolution along each channel of x [T, channels], then silu if the convolution has it
// -> [T, channels]. `state` has kPoint reach and taps - 1 heads of width `channels`.
Tensor short_conv(Step& s, Tensor x, const Convolution& convolution, StateId state);

}  // namespace banyan
