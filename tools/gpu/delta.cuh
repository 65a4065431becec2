// Inputs of the delta rule by chance: heads of 128 x 128, in the memory of the host or of a GPU.
#pragma once

#include "kernels/cuda/device/float_types.cuh"

#include <cmath>
#include <random>
#include <vector>

#include "gpu.cuh"
#include "kernels/kernel_table.h"
#include "kernels/slot_rows.h"

namespace banyan::gpu {

// A sequence from its first row on, of which some rows are a prompt.
struct DeltaSequence {
  int32_t rows, prompt_rows;
};

struct DeltaInputs {
  static constexpr int64_t kDim = 128;

  DeltaInputs(int64_t heads, int64_t decay_dim, const std::vector<DeltaSequence>& sequences)
      : heads(heads), decay_dim(decay_dim) {
    int32_t rows = 0;
    for (const DeltaSequence& sequence : sequences) {
      slots.push_back(static_cast<int32_t>(spans.size()));
      spans.push_back({.row_begin = rows, .row_count = sequence.rows});
      prompts.push_back(sequence.prompt_rows);
      rows += sequence.rows;
    }
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto fill = [&](std::vector<float>& to, int64_t columns, const auto& value_of) {
      to.resize(static_cast<size_t>(rows * heads * columns));
      for (float& value : to) value = value_of(normal(random));
    };
    fill(q, kDim, [](float x) { return x; });
    fill(k, kDim, [](float x) { return x * 0.08f; });  // of a norm of about 1
    fill(v, kDim, [](float x) { return x; });
    fill(decay, decay_dim, [](float x) { return std::exp(-std::abs(x)); });
    fill(beta, 1, [](float x) { return 1 / (1 + std::exp(-x)); });
    states.resize(spans.size() * static_cast<size_t>(heads * kDim * kDim));
    out.resize(v.size());
  }

  int64_t heads, decay_dim;
  std::vector<float> q, k, v, decay, beta, states, out;
  std::vector<SpanArgs> spans;
  std::vector<int32_t> slots, prompts;
};

struct DeltaOnGpu {
  explicit DeltaOnGpu(const DeltaInputs& in)
      : q(in.q),
        k(in.k),
        v(in.v),
        decay(in.decay),
        beta(in.beta),
        states(in.states),
        out(in.out),
        spans(in.spans),
        slots(in.slots),
        prompts(in.prompts) {}

  DeviceArray<float> q, k, v, decay, beta, states, out;
  DeviceArray<SpanArgs> spans;
  DeviceArray<int32_t> slots, prompts;
};

// The arguments with the inputs or where they are on a GPU.
template <class Arrays>
DeltaAttentionArgs delta_args(const DeltaInputs& in, Arrays& at, void* queue) {
  constexpr int64_t kDim = DeltaInputs::kDim, kChunk = 64;
  int64_t width = in.heads * kDim;
  return {.launch = {.queue = queue},
          .q = at.q.data(),
          .k = at.k.data(),
          .v = at.v.data(),
          .q_row_stride = width,
          .k_row_stride = width,
          .v_row_stride = width,
          .decay = at.decay.data(),
          .beta = at.beta.data(),
          .states = at.states.data(),
          .out = at.out.data(),
          .heads = in.heads,
          .key_dim = kDim,
          .value_dim = kDim,
          .decay_dim = in.decay_dim,
          .chunk = kChunk,
          .spans = {.spans = at.spans.data(),
                    .count = static_cast<int64_t>(in.spans.size()),
                    .slots = at.slots.data(),
                    .prompt_tokens = at.prompts.data(),
                    .rows = count_rows(in.spans, in.prompts, {}, kChunk)}};
}

}  // namespace banyan::gpu
