// One row of the decode form of a recurrence, in the two halves between which the delta rule reads
// the state.
#pragma once

#include "kernels/slots.h"

namespace banyan::portable {

// state = D from, with `decays` decays: one of each row of the state, or one of all.
template <class Head>
void decay_state(const Head& head, const float* decay, int64_t decays) {
  for (int64_t c = 0; c < head.args.key_dim; ++c) {
    float factor = decay[decays == 1 ? 0 : c];
    int64_t begin = c * head.args.value_dim, end = begin + head.args.value_dim;
    for (int64_t i = begin; i < end; ++i) head.state[i] = factor * head.from[i];
  }
}

// state = state + key^T value.
template <class Head>
void add_update(const Head& head, const Update& update) {
  for (int64_t c = 0; c < head.args.key_dim; ++c) {
    float* row = head.state + c * head.args.value_dim;
    for (int64_t d = 0; d < head.args.value_dim; ++d) row[d] += update.key[c] * update.value[d];
  }
}

}  // namespace banyan::portable
