// GEMM with unquantised weights of each element type, accumulated in f32 in ascending order of k.
#include <algorithm>
#include <cstring>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

// Outputs computed together; independent sums hide the latency of additions.
constexpr int64_t kBlock = 8;

template <class W>
size_t packed_bytes(int64_t n, int64_t k, int64_t /*group*/) {
  return (n * k * sizeof(W) + 63) / 64 * 64;
}

template <class W>
void pack(const PackArgs& a) {
  std::memcpy(static_cast<W*>(a.packed) + a.row_begin * a.k, a.source,
              (a.row_count * a.k) * sizeof(W));
}

template <class W>
void gather(const GatherArgs& a) {
  const W* weight = static_cast<const W*>(a.weight);
  for (int64_t i = 0; i < a.rows; ++i) {
    const W* row = weight + a.ids[i] * a.k;
    for (int64_t c = 0; c < a.k; ++c) a.y[i * a.k + c] = to_float(row[c]);
  }
}

// y[j] = sum over k, ascending, of x[k] * weight[j, k], for j in [j, j + count), count <= kBlock.
template <class W>
void dot_block(const float* x, const W* weight, const float* bias, float* y, int64_t j,
               int64_t count, int64_t k) {
  const W* rows[kBlock];
  float sums[kBlock] = {};
  for (int64_t b = 0; b < kBlock; ++b) rows[b] = weight + (j + std::min(b, count - 1)) * k;
  for (int64_t c = 0; c < k; ++c) {
    for (int64_t b = 0; b < kBlock; ++b) sums[b] += x[c] * to_float(rows[b][c]);
  }
  for (int64_t b = 0; b < count; ++b) y[j + b] = bias ? sums[b] + bias[j + b] : sums[b];
}

template <class W>
void run(const GemmArgs& a) {
  parallel_for(a.launch, a.n, kBlock, [&](int64_t begin, int64_t end) {
    for_part_rows(a, [&](const GemmPart& part, const float* x, float* y) {
      for (int64_t j = begin; j < end; j += kBlock) {
        dot_block(x, reinterpret_cast<const W*>(part.weight), part.bias, y, j,
                  std::min(kBlock, end - j), a.k);
      }
    });
  });
}

template <class W>
GemmKernel kernel() {
  return {packed_bytes<W>, no_workspace, pack<W>, gather<W>, run<W>};
}

}  // namespace

size_t no_workspace(int64_t, int64_t, int64_t, int64_t) {
  return 0;
}

GemmKernel gemm_f32() {
  return kernel<float>();
}

GemmKernel gemm_bf16() {
  return kernel<BFloat16>();
}

GemmKernel gemm_f16() {
  return kernel<Float16>();
}

}  // namespace banyan::portable
