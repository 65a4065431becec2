// Does the GPU's wgmma compute what kernels/cuda/wgmma_arithmetic.h says, bit for bit, for bf16
// and f16, every width, for A from shared memory and from registers, for B along its rows, with the
// operands exchanged?
//
//   build/cuda/gpu/gpu_probe
//
// Prints one line for each kind of data and way, and ends with 1 where any bit differs; then it
// also says which number of fraction bits would fit.
#include "kernels/cuda/device/float_types.cuh"

#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "gpu.cuh"
#include "kernels/cuda/device/wgmma.cuh"
#include "kernels/cuda/wgmma_arithmetic.h"

namespace banyan::gpu {
namespace {

using namespace cuda::device;

constexpr int kRows = 64;         // of A
constexpr int kColumnsMax = 256;  // rows of B
constexpr int kDepth = 256;       // four tiles of 64 columns

enum class Way { kShared, kRegisters, kTransposed };

// From [rows, kDepth] to swizzled tiles of 64 columns each.
template <class T>
__device__ void load_tiles(const T* source, int rows, unsigned char* tiles) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kDepth; i += 128) {
    int row = i / kDepth, column = i % kDepth;
    unsigned char* tile = tiles + column / 64 * rows * cuda::kTileRowBytes;
    uint32_t place =
        cuda::swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(column % 64) * 2);
    *reinterpret_cast<T*>(tile + place) = source[i];
  }
}

// The same rows as columns: tiles of 64 rows of `source` each, [kDepth, 64].
template <class T>
__device__ void load_transposed(const T* source, int rows, unsigned char* tiles) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kDepth; i += 128) {
    int row = i / kDepth, column = i % kDepth;
    unsigned char* tile = tiles + row / 64 * kDepth * cuda::kTileRowBytes;
    uint32_t place =
        cuda::swizzled(static_cast<uint32_t>(column), static_cast<uint32_t>(row % 64) * 2);
    *reinterpret_cast<T*>(tile + place) = source[i];
  }
}

template <class T>
__device__ uint32_t pair_at(const T* a, int row, int column) {
  return *reinterpret_cast<const uint32_t*>(a + row * kDepth + column);
}

// y [64, n] = a [64, kDepth] b^T [kDepth, n], by one warpgroup.
template <class T, int n, Way way>
__global__ __launch_bounds__(128, 1) void multiply(const T* a, const T* b, float* y) {
  extern __shared__ __align__(1024) unsigned char shared[];
  unsigned char* a_tiles = shared;
  unsigned char* b_tiles = shared + kRows * kDepth * 2;
  load_tiles(a, kRows, a_tiles);
  way == Way::kTransposed ? load_transposed(b, n, b_tiles) : load_tiles(b, n, b_tiles);
  fence_shared();
  __syncthreads();
  float d[n / 2] = {};
  for (int k = 0; k < kDepth; k += 16) {
    uint64_t step = static_cast<uint64_t>(k % 64 / 16) * cuda::kDescriptorStep;
    uint64_t b_tile =
        cuda::tile_descriptor(shared_address(b_tiles + k / 64 * n * cuda::kTileRowBytes)) + step;
    if constexpr (way == Way::kShared) {
      uint64_t a_tile =
          cuda::tile_descriptor(shared_address(a_tiles + k / 64 * kRows * cuda::kTileRowBytes)) +
          step;
      wgmma_fence();
      Wgmma<n, T>::shared(d, a_tile, b_tile, 1);
    } else {
      int row = accumulator_row(0), column = k + accumulator_column(0);
      uint32_t fragment[4] = {pair_at(a, row, column), pair_at(a, row + 8, column),
                              pair_at(a, row, column + 8), pair_at(a, row + 8, column + 8)};
      wgmma_fence();
      if constexpr (way == Way::kTransposed) {
        uint64_t rows =
            cuda::transposed_descriptor(shared_address(b_tiles), kDepth * cuda::kTileRowBytes) +
            static_cast<uint64_t>(k / 16) * cuda::kTransposedStep;
        Wgmma<n, T>::template registers<1>(d, fragment, rows, 1);
      } else {
        Wgmma<n, T>::template registers<0>(d, fragment, b_tile, 1);
      }
    }
    wgmma_commit();
    wgmma_wait();
  }
  for (int i = 0; i < n / 2; ++i) y[accumulator_row(i) * n + accumulator_column(i)] = d[i];
}

template <class T>
using Values = std::vector<T>;

struct Kind {
  const char* name;
  std::function<float(std::mt19937&)> draw;
};

// Numbers that T holds; others are rounded.
template <class T>
std::vector<Kind> kinds() {
  constexpr bool kHalves = std::is_same_v<T, Float16>;
  constexpr float kUnit = kHalves ? 0x1p-10f : 0x1p-7f, kSpread = kHalves ? 3 : 10;
  constexpr float kHuge = kHalves ? 0x1p15f : 0x1p60f, kTiny = kHalves ? 0x1p-20f : 0x1p-130f;
  auto normal = [](std::mt19937& r) { return std::normal_distribution<float>()(r); };
  auto sign = [](std::mt19937& r) { return r() % 2 == 0 ? 1.0f : -1.0f; };
  std::vector<Kind> kinds = {
      {"normal", normal},
      {"wide exponents", [=](auto& r) { return normal(r) * std::exp2(kSpread * normal(r)); }},
      {"cancelling", [=](auto& r) { return sign(r) * (1 + kUnit * static_cast<float>(r() % 2)); }},
      {"zeros and huge", [=](auto& r) { return r() % 2 == 0 ? 0 : sign(r) * kHuge; }},
      {"subnormal", [=](auto& r) { return normal(r) * (r() % 2 == 0 ? kTiny : 0x1p10f); }},
      {"infinite", [=](auto& r) { return r() % 64 == 0 ? sign(r) * INFINITY : normal(r); }},
  };
  if (!kHalves) kinds.push_back({"overflowing", [=](auto& r) { return sign(r) * 0x1p63f; }});
  return kinds;
}

template <class T>
Values<T> draw(const Kind& kind, int count, std::mt19937& random) {
  Values<T> values(static_cast<size_t>(count));
  for (T& x : values) x = from_float<T>(kind.draw(random));
  return values;
}

bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

struct Mismatches {
  int64_t count = 0;
  std::string first;
};

// y [64, n] against the model.
template <class T>
Mismatches compare(const Values<T>& a, const Values<T>& b, const std::vector<float>& y, int n,
                   int fraction_bits) {
  Mismatches found;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < n; ++column) {
      const T* x = a.data() + row * kDepth;
      const T* w = b.data() + column * kDepth;
      float expected = 0;
      for (int k = 0; k < kDepth; k += 16) {
        expected = cuda::wgmma_step(expected, x + k, w + k, fraction_bits);
      }
      float got = y[static_cast<size_t>(row * n + column)];
      if (same_bits(got, expected)) continue;
      if (found.count++ > 0) continue;
      char text[96];
      std::snprintf(text, sizeof text, "row %d column %d: %a, the model says %a", row, column,
                    static_cast<double>(got), static_cast<double>(expected));
      found.first = text;
    }
  }
  return found;
}

template <int n, Way way, class T>
std::vector<float> run(const Values<T>& a, const Values<T>& b) {
  DeviceArray<T> device_a(a), device_b(b);
  DeviceArray<float> y(static_cast<size_t>(kRows * n));
  int bytes = (kRows + n) * kDepth * 2;
  CHECK_CUDA(cudaFuncSetAttribute(multiply<T, n, way>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  bytes));
  multiply<T, n, way>
      <<<1, 128, static_cast<size_t>(bytes)>>>(device_a.data(), device_b.data(), y.data());
  CHECK_CUDA(cudaDeviceSynchronize());
  return y.download();
}

// Which number of fraction bits explains the most, for a chip that the model does not fit.
template <class T>
int best_fraction_bits(const Values<T>& a, const Values<T>& b, const std::vector<float>& y, int n) {
  int best = 0;
  int64_t least = INT64_MAX;
  for (int bits = 20; bits <= 34; ++bits) {
    int64_t count = compare(a, b, y, n, bits).count;
    if (count < least) least = count, best = bits;
  }
  return best;
}

template <int n, Way way, class T>
int64_t probe_way(const Kind& kind, const Values<T>& a, const Values<T>& b) {
  std::vector<float> y = run<n, way>(a, b);
  Mismatches found = compare(a, b, y, n, cuda::kFractionBits);
  if (found.count == 0) return 0;
  const char* operands = way == Way::kShared      ? "A from shared memory"
                         : way == Way::kRegisters ? "A from registers"
                                                  : "B along its rows";
  std::printf("%-18s n %3d %s: %lld of %d differ; %s; %d fraction bits fit best\n", kind.name, n,
              operands, static_cast<long long>(found.count), kRows * n, found.first.c_str(),
              best_fraction_bits(a, b, y, n));
  return found.count;
}

template <class T, int n>
int64_t probe_width(const Kind& kind) {
  std::mt19937 random(static_cast<unsigned>(n));
  Values<T> a = draw<T>(kind, kRows * kDepth, random), b = draw<T>(kind, n * kDepth, random);
  int64_t found =
      probe_way<n, Way::kShared>(kind, a, b) + probe_way<n, Way::kRegisters>(kind, a, b);
  if constexpr (n % 64 == 0) found += probe_way<n, Way::kTransposed>(kind, a, b);
  return found;
}

// The first 64 rows of B as A and A as B: the same sums at exchanged places.
template <class T>
int64_t probe_exchange(const Kind& kind) {
  std::mt19937 random(7);
  Values<T> a = draw<T>(kind, kRows * kDepth, random), b = draw<T>(kind, kRows * kDepth, random);
  std::vector<float> y = run<64, Way::kShared>(a, b), z = run<64, Way::kShared>(b, a);
  int64_t mismatches = 0;
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 64; ++j) mismatches += same_bits(y[i * 64 + j], z[j * 64 + i]) ? 0 : 1;
  }
  if (mismatches > 0) {
    std::printf("%-18s operands exchanged: %lld differ\n", kind.name,
                static_cast<long long>(mismatches));
  }
  return mismatches;
}

template <class T, int... eighths>
int64_t probe_widths(const Kind& kind, std::integer_sequence<int, eighths...>) {
  return (probe_width<T, 8 * (eighths + 1)>(kind) + ...);
}

template <class T>
int64_t probe(const char* type) {
  int64_t all = 0;
  for (const Kind& kind : kinds<T>()) {
    int64_t mismatches = probe_widths<T>(kind, std::make_integer_sequence<int, kColumnsMax / 8>()) +
                         probe_exchange<T>(kind);
    std::printf("%s, %-18s %s\n", type, kind.name,
                mismatches == 0 ? "equal bit for bit" : "DIFFERS");
    all += mismatches;
  }
  return all;
}

int run_all() {
  require_hopper();
  int64_t mismatches = probe<BFloat16>("bf16") + probe<Float16>("f16");
  return mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace banyan::gpu

int main() {
  return banyan::gpu::run_all();
}
