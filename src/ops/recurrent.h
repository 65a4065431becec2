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
  float scale = 1;
};

// Linear attention with the decay exp(log_decay) [heads] of q and k [T, heads * key_dim] and
// v [T, heads * value_dim] -> [T, heads * value_dim]. `state` has kPoint reach, `heads` heads of
// width key_dim * value_dim, and an alignment that is the chunk of the prefill form. The batch
// gives every span a slot, and captures in a prompt only at the ends of chunks.
Tensor linear_attention(Step& s, Tensor q, Tensor k, Tensor v, Tensor log_decay, StateId state,
                        const LinearAttentionShape& shape);

// The decays [T, heads * key_dim] and strengths [T, heads] of the delta rule.
struct DeltaGates {
  Tensor decay, beta;
};

// The gates from the logits of decays [T, heads * key_dim] and strengths [T, heads], with
// log_rate [heads] and bias [heads * key_dim]. A lower_bound below 0 takes the law with a least
// log decay, 0 the softplus law: see DeltaGatesArgs.
DeltaGates delta_gates(Step& s, Tensor decay_logits, Tensor beta_logits, Tensor log_rate,
                       Tensor bias, float lower_bound);

// The delta rule on q and k [T, heads * key_dim] and v [T, heads * value_dim]
// -> [T, heads * value_dim]. `state` as in linear_attention.
Tensor delta_attention(Step& s, Tensor q, Tensor k, Tensor v, const DeltaGates& gates,
                       StateId state, const LinearAttentionShape& shape);

// silu of a causal convolution along each channel of x [T, channels], with weight [taps, channels]
// whose last tap meets the row itself -> [T, channels]. `state` has kPoint reach and taps - 1 heads
// of width `channels`.
Tensor short_conv(Step& s, Tensor x, Tensor weight, StateId state);

}  // namespace banyan
