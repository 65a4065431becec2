// Does the card's wgmma compute what kernels/cuda/wgmma_arithmetic.h says, bit for bit, for every
// width, for A from shared memory and from registers, for B along its rows, with the operands
// exchanged?
//
//   build/cuda/gpu/gpu_probe
//
// Prints one line for each kind of data and way, and ends with 1 where any bit differs; then it
// also says which number of fraction bits would fit.
#include <bit>
#include <cmath>
#include <functional>
#include <random>
#include <string>

#include "card.cuh"
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
__device__ void load_tiles(const uint16_t* source, int rows, unsigned char* tiles) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kDepth; i += 128) {
    int row = i / kDepth, column = i % kDepth;
    unsigned char* tile = tiles + column / 64 * rows * cuda::kTileRowBytes;
    uint32_t place =
        cuda::swizzled(static_cast<uint32_t>(row), static_cast<uint32_t>(column % 64) * 2);
    *reinterpret_cast<uint16_t*>(tile + place) = source[i];
  }
}

// The same rows as columns: tiles of 64 rows of `source` each, [kDepth, 64].
__device__ void load_transposed(const uint16_t* source, int rows, unsigned char* tiles) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * kDepth; i += 128) {
    int row = i / kDepth, column = i % kDepth;
    unsigned char* tile = tiles + row / 64 * kDepth * cuda::kTileRowBytes;
    uint32_t place =
        cuda::swizzled(static_cast<uint32_t>(column), static_cast<uint32_t>(row % 64) * 2);
    *reinterpret_cast<uint16_t*>(tile + place) = source[i];
  }
}

__device__ uint32_t pair_at(const uint16_t* a, int row, int column) {
  return *reinterpret_cast<const uint32_t*>(a + row * kDepth + column);
}

// y [64, n] = a [64, kDepth] b^T [kDepth, n], by one warpgroup.
template <int n, Way way>
__global__ __launch_bounds__(128, 1) void multiply(const uint16_t* a, const uint16_t* b, float* y) {
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
      Wgmma<n>::shared(d, a_tile, b_tile, 1);
    } else {
      int row = accumulator_row(0), column = k + accumulator_column(0);
      uint32_t fragment[4] = {pair_at(a, row, column), pair_at(a, row + 8, column),
                              pair_at(a, row, column + 8), pair_at(a, row + 8, column + 8)};
      wgmma_fence();
      if constexpr (way == Way::kTransposed) {
        uint64_t rows =
            cuda::transposed_descriptor(shared_address(b_tiles), kDepth * cuda::kTileRowBytes) +
            static_cast<uint64_t>(k / 16) * cuda::kTransposedStep;
        Wgmma<n>::template registers<1>(d, fragment, rows, 1);
      } else {
        Wgmma<n>::template registers<0>(d, fragment, b_tile, 1);
      }
    }
    wgmma_commit();
    wgmma_wait();
  }
  for (int i = 0; i < n / 2; ++i) y[accumulator_row(i) * n + accumulator_column(i)] = d[i];
}

using Values = std::vector<uint16_t>;

// Truncated: any value will do.
uint16_t bf16(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}

struct Kind {
  const char* name;
  std::function<float(std::mt19937&)> draw;
};

std::vector<Kind> kinds() {
  auto normal = [](std::mt19937& r) { return std::normal_distribution<float>()(r); };
  auto sign = [](std::mt19937& r) { return r() % 2 == 0 ? 1.0f : -1.0f; };
  return {
      {"normal", normal},
      {"wide exponents", [=](auto& r) { return normal(r) * std::exp2(10 * normal(r)); }},
      {"cancelling",
       [=](auto& r) { return sign(r) * (1 + 0x1p-7f * static_cast<float>(r() % 2)); }},
      {"zeros and huge", [=](auto& r) { return r() % 2 == 0 ? 0 : sign(r) * std::exp2(60.0f); }},
      {"subnormal", [=](auto& r) { return normal(r) * (r() % 2 == 0 ? 0x1p-130f : 0x1p10f); }},
      {"overflowing", [=](auto& r) { return sign(r) * 0x1p63f; }},
      {"infinite", [=](auto& r) { return r() % 64 == 0 ? sign(r) * INFINITY : normal(r); }},
  };
}

Values draw(const Kind& kind, int count, std::mt19937& random) {
  Values values(static_cast<size_t>(count));
  for (uint16_t& x : values) x = bf16(kind.draw(random));
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
Mismatches compare(const Values& a, const Values& b, const std::vector<float>& y, int n,
                   int fraction_bits) {
  Mismatches found;
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < n; ++column) {
      const uint16_t* x = a.data() + row * kDepth;
      const uint16_t* w = b.data() + column * kDepth;
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

template <int n, Way way>
std::vector<float> run(const Values& a, const Values& b) {
  DeviceArray<uint16_t> device_a(a), device_b(b);
  DeviceArray<float> y(static_cast<size_t>(kRows * n));
  int bytes = (kRows + n) * kDepth * 2;
  CHECK_CUDA(
      cudaFuncSetAttribute(multiply<n, way>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  multiply<n, way>
      <<<1, 128, static_cast<size_t>(bytes)>>>(device_a.data(), device_b.data(), y.data());
  CHECK_CUDA(cudaDeviceSynchronize());
  return y.download();
}

// Which number of fraction bits explains the most, for a chip that the model does not fit.
int best_fraction_bits(const Values& a, const Values& b, const std::vector<float>& y, int n) {
  int best = 0;
  int64_t least = INT64_MAX;
  for (int bits = 20; bits <= 34; ++bits) {
    int64_t count = compare(a, b, y, n, bits).count;
    if (count < least) least = count, best = bits;
  }
  return best;
}

template <int n, Way way>
int64_t probe_way(const Kind& kind, const Values& a, const Values& b) {
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

template <int n>
int64_t probe_width(const Kind& kind) {
  std::mt19937 random(static_cast<unsigned>(n));
  Values a = draw(kind, kRows * kDepth, random), b = draw(kind, n * kDepth, random);
  int64_t found =
      probe_way<n, Way::kShared>(kind, a, b) + probe_way<n, Way::kRegisters>(kind, a, b);
  if constexpr (n % 64 == 0) found += probe_way<n, Way::kTransposed>(kind, a, b);
  return found;
}

// The first 64 rows of B as A and A as B: the same sums at exchanged places.
int64_t probe_exchange(const Kind& kind) {
  std::mt19937 random(7);
  Values a = draw(kind, kRows * kDepth, random), b = draw(kind, kRows * kDepth, random);
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

template <int... eighths>
int64_t probe_widths(const Kind& kind, std::integer_sequence<int, eighths...>) {
  return (probe_width<8 * (eighths + 1)>(kind) + ...);
}

int run_all() {
  require_hopper();
  int64_t all = 0;
  for (const Kind& kind : kinds()) {
    int64_t mismatches = probe_widths(kind, std::make_integer_sequence<int, kColumnsMax / 8>()) +
                         probe_exchange(kind);
    std::printf("%-18s %s\n", kind.name, mismatches == 0 ? "equal bit for bit" : "DIFFERS");
    all += mismatches;
  }
  return all == 0 ? 0 : 1;
}

}  // namespace
}  // namespace banyan::gpu

int main() {
  return banyan::gpu::run_all();
}
