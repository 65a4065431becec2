// Matrix products over row-major weights whose rows are padded to whole cache lines.
#pragma once

#include <cstring>

#include "kernels/launch.h"
#include "kernels/x86/dot.h"
#include "tensor/float_types.h"

namespace banyan::x86 {

// Activations that stay in a core's level-2 cache while all weights of a share pass by.
constexpr int64_t kRowBlockBytes = 512 << 10;
// Outputs that one cache line of y holds: shares of threads do not meet in a line.
constexpr int64_t kOutputGrain = 16;

template <class W>
static constexpr int64_t packed_stride(int64_t k) {
  constexpr int64_t kPerLine = 64 / sizeof(W);
  return (k + kPerLine - 1) / kPerLine * kPerLine;
}

// y[r, j] for `rows` <= kTileRows rows from `row` on and the outputs j = first + b * stride < end
// for b < kTileOutputs; `first` is one of them.
template <class V, class W>
inline void gemm_tile(const GemmArgs& a, int64_t row, int64_t rows, int64_t first, int64_t stride,
                      int64_t end) {
  const float* x[V::kTileRows];
  const W* w[kTileOutputs];
  float sums[V::kTileRows][kTileOutputs];
  for (int64_t r = 0; r < rows; ++r) x[r] = a.x + (row + r) * a.x_stride;
  for (int64_t b = 0; b < kTileOutputs; ++b) {  // beyond the last output: the first one again
    int64_t j = first + b * stride < end ? first + b * stride : first;
    w[b] = static_cast<const W*>(a.weight) + j * packed_stride<W>(a.k);
  }
  dot_tile_of<V, W>(rows, x, w, a.k, sums);
  for (int64_t r = 0; r < rows; ++r) {
    float* y = a.y + (row + r) * a.y_stride;
    for (int64_t b = 0; b < kTileOutputs && first + b * stride < end; ++b) {
      int64_t j = first + b * stride;
      y[j] = a.bias ? sums[r][b] + a.bias[j] : sums[r][b];
    }
  }
}

// A worker's share of the weights is read as kTileOutputs streams side by side, each sequential
// from one end to the other: several times faster from memory than going through neighbouring rows
// together, whose short runs the processor's prefetcher does not recognise.
template <class V, class W>
void gemm_run(const GemmArgs& a) {
  int64_t row_bytes = a.k * static_cast<int64_t>(sizeof(float)) + 1;
  int64_t block = (kRowBlockBytes / row_bytes / V::kTileRows + 1) * V::kTileRows;
  parallel_for(a.launch, a.n, kOutputGrain, [&](int64_t begin, int64_t end) {
    int64_t stride = (end - begin + kTileOutputs - 1) / kTileOutputs;
    for (int64_t first = 0; first < a.rows; first += block) {
      int64_t last = a.rows - first < block ? a.rows : first + block;
      for (int64_t j = begin; j < begin + stride; ++j) {
        for (int64_t row = first; row < last; row += V::kTileRows) {
          int64_t rows = last - row < V::kTileRows ? last - row : V::kTileRows;
          gemm_tile<V, W>(a, row, rows, j, stride, end);
        }
      }
    }
  });
}

template <class V, class W>
void gemm_gather(const GatherArgs& a) {
  for (int64_t i = 0; i < a.rows; ++i) {
    const W* row = static_cast<const W*>(a.weight) + a.ids[i] * packed_stride<W>(a.k);
    for (int64_t c = 0; c < a.k; c += V::kLanes) {
      store_up_to<V>(a.y + i * a.k + c, a.k - c, load_up_to<V>(row + c, a.k - c));
    }
  }
}

template <class V, class W>
size_t gemm_packed_bytes(int64_t n, int64_t k) {
  return static_cast<size_t>(n) * static_cast<size_t>(packed_stride<W>(k)) * sizeof(W);
}

template <class V, class W>
void gemm_pack(const PackArgs& a) {
  int64_t stride = packed_stride<W>(a.k);
  for (int64_t r = 0; r < a.row_count; ++r) {
    W* to = static_cast<W*>(a.packed) + (a.row_begin + r) * stride;
    std::memcpy(to, static_cast<const W*>(a.source) + r * a.k, a.k * sizeof(W));
    std::memset(static_cast<void*>(to + a.k), 0, (stride - a.k) * sizeof(W));
  }
}

template <class V, class W>
constexpr GemmKernel gemm_kernel() {
  return {gemm_packed_bytes<V, W>, gemm_pack<V, W>, gemm_gather<V, W>, gemm_run<V, W>};
}

}  // namespace banyan::x86
