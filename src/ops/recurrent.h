// Layers with a fixed-size state: one slot per sequence, updated in place.
//
// Ops take tensors and return a new tensor: each checks shapes, allocates its result from the
// step's arena and calls the kernel table. Inputs are never changed.
//
// Shapes: T is the number of rows in the step.
#pragma once

#include <cstdint>

#include "cache/state_spec.h"
#include "ops/step.h"

namespace banyan {

// A state of reach kPoint, and the log of what draft rows would add to it: one row holds the
// updates of all heads (update_width), or the input of a convolution.
struct SlotState {
  StateId state = 0, log = 0;
};

struct LinearAttentionShape {
  int64_t heads = 0, key_dim = 0, value_dim = 0;
  int64_t group = 1;  // heads per q and k head
  float scale = 1;
  int64_t key_width() const { return heads / group * key_dim; }
  int64_t value_width() const { return heads * value_dim; }
};

// Linear attention with decay exp(log_decay) [heads], q and k [T, key_width] and v [T, value_width]
// -> [T, value_width]. `state` has kPoint reach, `heads` heads of width key_dim * value_dim, and an
// alignment equal to the chunk of the prefill form. The batch gives every span a slot, and captures
// within a prompt only at ends of chunks. The log has no decays, since they are constant.
Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay,
                        const SlotState& state, const LinearAttentionShape& shape);

// The delta rule's decays [T, heads * key_dim] (or [T, heads] if a head's channels share a decay)
// and strengths [T, heads].
struct DeltaGates {
  Tensor decay, beta;
};

// Computes the gates from logits of decays and strengths of those shapes, log_rate [heads] and a
// bias as wide as the decays. A lower_bound below 0 selects the bounded decay, 0 the softplus
// decay: see DeltaGatesArgs.
DeltaGates delta_gates(Step& s, Tensor decay_logits, Tensor beta_logits, Tensor log_rate,
                       Tensor bias, float lower_bound);

// The delta rule with q and k [T, key_width] and v [T, value_width] -> [T, value_width]. `state` as
// in linear_attention; the log has a head's decays.
Tensor delta_attention(Step& s, Tensor q, Tensor k, Tensor v, const DeltaGates& gates,
                       const SlotState& state, const LinearAttentionShape& shape);

// The gates of a selective state space, both [T, heads]: the step that a row adds, and the decay.
struct StateSpaceGates {
  Tensor step, decay;
};
struct StepLimits {
  float min = 0, max = 0;
};

// Computes the gates from step logits [T, heads], bias and log_rate [heads]: see
// StateSpaceGatesArgs.
StateSpaceGates state_space_gates(Step& s, Tensor step_logits, Tensor bias, Tensor log_rate,
                                  const StepLimits& limits);

// The state space with q and k [T, key_width], v [T, value_width] and skip [heads] -> [T,
// value_width]. `state` as in linear_attention, with one decay of a head in the log; the scale is
// not used.
Tensor state_space(Step& s, Tensor q, Tensor k, Tensor v, const StateSpaceGates& gates, Tensor skip,
                   const SlotState& state, const LinearAttentionShape& shape);

struct Convolution {
  Tensor weight;  // [taps, channels]; the last tap applies to the row itself
  Tensor bias;    // [channels], or none
  bool silu = true;
};

// A causal depthwise convolution of x [T, channels], then silu if the convolution has it -> [T,
// channels]. `state` has kPoint reach and taps - 1 heads of width `channels`.
Tensor short_conv(Step& s, Tensor x, const Convolution& convolution, const SlotState& state);

}  // namespace banyan
