// What the GPU can do at most, for the floors in docs/BENCHMARKS.md: bytes read and copied, and
// products of bf16 on random numbers (zeros raise the clocks).
//
//   build/cuda/gpu/gpu_ceilings
#include <algorithm>
#include <bit>
#include <random>

#include "gpu.cuh"
#include "kernels/cuda/device/wgmma.cuh"

namespace banyan::gpu {
namespace {

using namespace cuda::device;

constexpr size_t kBytes = size_t{8} << 30;

__global__ void copy(const uint4* from, uint4* to, size_t count) {
  size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    to[i] = from[i];
  }
}

// Four loads in flight per thread; the sum keeps the compiler from removing them.
__global__ void read(const uint4* from, uint32_t* sum, size_t count) {
  size_t step = size_t{gridDim.x} * blockDim.x;
  uint32_t total = 0;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i + 3 * step < count;
       i += 4 * step) {
    uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    total += a.x ^ b.y ^ c.z ^ d.w;
  }
  if (total == 1) *sum = total;
}

__global__ void fill(uint32_t* words, size_t count) {
  size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = static_cast<uint32_t>(i * 2654435761u);
  }
}

// Two warpgroups a block multiply the same tiles of shared memory again and again.
constexpr int kStages = 4, kTileRows = 128;

template <int n>
__global__ __launch_bounds__(256, 1) void multiply(const uint16_t* values, float* y, int rounds) {
  extern __shared__ __align__(1024) unsigned char shared[];
  constexpr int kCount = kStages * (kTileRows + n) * 64;
  for (int i = static_cast<int>(threadIdx.x); i < kCount; i += 256) {
    reinterpret_cast<uint16_t*>(shared)[i] = values[i];
  }
  fence_shared();
  __syncthreads();
  uint32_t a = shared_address(shared) + threadIdx.x / 128 * 64 * cuda::kTileRowBytes;
  uint32_t b = shared_address(shared) + kStages * kTileRows * cuda::kTileRowBytes;
  float d[n / 2] = {};
  for (int round = 0; round < rounds; ++round) {
    wgmma_fence();
    for (uint32_t stage = 0; stage < kStages; ++stage) {
      uint64_t a_tile = cuda::tile_descriptor(a + stage * kTileRows * cuda::kTileRowBytes);
      uint64_t b_tile = cuda::tile_descriptor(b + stage * n * cuda::kTileRowBytes);
      for (uint64_t k = 0; k < 4; ++k) {
        Wgmma<n, BFloat16>::shared(d, a_tile + k * cuda::kDescriptorStep,
                                   b_tile + k * cuda::kDescriptorStep, 1);
      }
    }
    wgmma_commit();
    wgmma_wait();
  }
  float sum = 0;
  for (float x : d) sum += x;
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}

std::vector<uint16_t> random_values(size_t count) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0x1p-6f);
  std::vector<uint16_t> values(count);
  for (uint16_t& x : values) {
    x = static_cast<uint16_t>(std::bit_cast<uint32_t>(normal(random)) >> 16);
  }
  return values;
}

template <int n>
void measure_products(int multiprocessors) {
  constexpr int kRounds = 20000;
  constexpr size_t kCount = kStages * (kTileRows + n) * 64;
  DeviceArray<uint16_t> values(random_values(kCount));
  DeviceArray<float> y(static_cast<size_t>(multiprocessors) * 256);
  CHECK_CUDA(cudaFuncSetAttribute(multiply<n>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(kCount * 2)));
  float ms = median_ms(5, [&] {
    multiply<n><<<static_cast<unsigned>(multiprocessors), 256, kCount * 2>>>(values.data(),
                                                                             y.data(), kRounds);
  });
  double flops = 2.0 * kTileRows * n * 64 * kStages * kRounds * multiprocessors;
  std::printf("bf16 products, n %3d: %6.0f TFLOP/s\n", n, flops / ms * 1e-9);
}

void measure_memory(int multiprocessors) {
  DeviceArray<uint4> from(kBytes / sizeof(uint4)), to(kBytes / sizeof(uint4));
  DeviceArray<uint32_t> sum(1);
  auto blocks = static_cast<unsigned>(multiprocessors * 8);
  fill<<<blocks, 512>>>(reinterpret_cast<uint32_t*>(from.data()), kBytes / 4);
  float ms = median_ms(9, [&] { read<<<blocks, 512>>>(from.data(), sum.data(), from.size()); });
  std::printf("read: %.0f GB/s\n", static_cast<double>(kBytes) / ms * 1e-6);
  ms = median_ms(9, [&] { copy<<<blocks, 512>>>(from.data(), to.data(), from.size()); });
  std::printf("copy: %.0f GB/s read and written\n", 2.0 * static_cast<double>(kBytes) / ms * 1e-6);
}

}  // namespace
}  // namespace banyan::gpu

int main() {
  cudaDeviceProp gpu = banyan::gpu::require_hopper();
  banyan::gpu::measure_memory(gpu.multiProcessorCount);
  banyan::gpu::measure_products<256>(gpu.multiProcessorCount);
  banyan::gpu::measure_products<128>(gpu.multiProcessorCount);
  banyan::gpu::measure_products<64>(gpu.multiProcessorCount);
  banyan::gpu::measure_products<16>(gpu.multiProcessorCount);
  banyan::gpu::measure_products<8>(gpu.multiProcessorCount);
}
