// Rows of x as integers, for products with weights of integers (kernels/gemm.h).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// A row's codes, then an f32 step for each of its groups. Where weights lie in fragments, codes are
// filled up with zeros to whole chunks.
struct QuantisedRows {
  void* workspace;
  int64_t rows, segments, columns, groups;

  static constexpr int64_t columns_of(int64_t k, int64_t group) {
    if (!in_fragments(Format::kInt8, k, group)) return k;
    return (k + kChunkColumns - 1) / kChunkColumns * kChunkColumns;
  }
  static constexpr size_t bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
    int64_t codes = (rows * segments * columns_of(k, group) + 3) / 4 * 4;
    return (codes + rows * segments * (k / group) * 4 + 63) / 64 * 64;
  }
  BANYAN_HOST_DEVICE int8_t* codes(int64_t row, int64_t segment) const {
    return static_cast<int8_t*>(workspace) + (row * segments + segment) * columns;
  }
  BANYAN_HOST_DEVICE float* steps(int64_t row, int64_t segment) const {
    auto* first = static_cast<int8_t*>(workspace) + (rows * segments * columns + 3) / 4 * 4;
    return reinterpret_cast<float*>(first) + (row * segments + segment) * groups;
  }
};

BANYAN_HOST_DEVICE inline QuantisedRows quantised_rows(const GemmArgs& a) {
  int64_t columns = a.k;
  if (in_fragments(Format::kInt8, a.k, a.group)) {
    columns = quotient(a.k + kChunkColumns - 1, kChunkColumns) * kChunkColumns;
  }
  return {a.workspace, a.x_rows, a.segments, columns, quotient(a.k, a.group)};
}

// A block quantises one group of one row after the other, or as many short ones as it has threads
// for eight columns each.
struct QuantiseRows {
  static constexpr int64_t kColumns = 8, kSlab = kColumns * kBlockThreads;
  GemmArgs a;

  struct Shared {
    float largest[kBlockThreads], poison[kBlockThreads];  // of a thread's columns
  };
  Shape shape() const {
    return {.blocks = a.x_rows * a.segments * slabs(), .shared_bytes = sizeof(Shared)};
  }

  // Slabs of a row: whole groups that a block quantises together, or one longer group each.
  BANYAN_HOST_DEVICE constexpr bool is_short() const {
    return kSlab % a.group == 0 && a.group % kColumns == 0;
  }
  BANYAN_HOST_DEVICE int64_t slab_columns() const { return is_short() ? kSlab : a.group; }
  BANYAN_HOST_DEVICE int64_t slabs() const {
    return quotient(a.k + slab_columns() - 1, slab_columns());
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    const GemmGroup& w = a.weights;
    int64_t rows = w.begins != nullptr && a.x_index == nullptr ? w.begins[w.count] : a.x_rows;
    for (int64_t i = block.index(); i < rows * a.segments * slabs(); i += block.count()) {
      int64_t at = quotient(i, slabs()), slab = i - at * slabs();
      int64_t row = quotient(at, a.segments), segment = at - row * a.segments;
      int64_t first = slab * slab_columns();
      quantise(block, row, segment, first, least(slab_columns(), a.k - first));
      if (slab == 0) fill_up(block, row, segment);
    }
  }

  template <class Block>
  BANYAN_DEVICE void quantise(Block& block, int64_t row, int64_t segment, int64_t first,
                              int64_t count) const {
    Shared& shared = *block.template shared<Shared>();
    const float* x = a.x + row * a.x_stride + segment * a.segment_stride + first;
    int8_t* codes = quantised_rows(a).codes(row, segment) + first;
    float* steps = quantised_rows(a).steps(row, segment) + quotient(first, a.group);
    int64_t per_thread = is_short() ? kColumns : quotient(count + kBlockThreads - 1, kBlockThreads);
    block.each([&](int thread) {
      float largest = 0, poison = 0;
      int64_t begin = thread * per_thread, end = least(begin + per_thread, count);
      for (int64_t c = begin; c < end; ++c) {
        float size = magnitude(x[c]);
        largest = largest < size ? size : largest;
        poison += x[c] * 0.0f;  // becomes NaN if any element is not finite
      }
      shared.largest[thread] = largest;
      shared.poison[thread] = poison;
    });
    block.each([&](int thread) {
      int64_t begin = thread * per_thread, end = least(begin + per_thread, count);
      if (begin >= end) return;
      int64_t group = is_short() ? quotient(begin, a.group) : 0;
      int64_t threads = is_short() ? quotient(a.group, kColumns) : kBlockThreads;
      float largest = 0, poison = 0;
      for (int64_t t = group * threads; t < (group + 1) * threads; ++t) {
        largest = largest < shared.largest[t] ? shared.largest[t] : largest;
        poison += shared.poison[t];
      }
      float inverse = largest >= kQuantisedMin ? 127.0f / largest : 0.0f;
      constexpr float kToInteger = 0x1.8p23f;
      for (int64_t c = begin; c < end; ++c) {
        float code = (x[c] * inverse + kToInteger) - kToInteger;
        codes[c] = poison == 0 ? static_cast<int8_t>(code) : int8_t{0};
      }
      if (begin == group * a.group) {
        steps[group] = largest >= kQuantisedMin ? largest / 127.0f + poison : poison;
      }
    });
  }

  template <class Block>
  BANYAN_DEVICE void fill_up(Block& block, int64_t row, int64_t segment) const {
    QuantisedRows to = quantised_rows(a);
    int8_t* codes = to.codes(row, segment);
    for_each(block, to.columns - a.k, [&](int64_t c) { codes[a.k + c] = 0; });
  }
};

}  // namespace banyan::cuda
