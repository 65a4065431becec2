// What the programs here share: errors of the runtime end them, device memory, times.
#pragma once

#include "kernels/cuda/device/float_types.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace banyan::gpu {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK_CUDA(call) ::banyan::gpu::check((call), #call)

// Ends the program where there is no GPU of compute capability 9.0; prints which one there is.
inline cudaDeviceProp require_hopper() {
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    std::fprintf(stderr, "no CUDA device: %s\n", cudaGetErrorString(error));
    std::exit(1);
  }
  cudaDeviceProp gpu;
  CHECK_CUDA(cudaGetDeviceProperties(&gpu, 0));
  std::printf("GPU: %s, %d multiprocessors, compute capability %d.%d\n", gpu.name,
              gpu.multiProcessorCount, gpu.major, gpu.minor);
  if (gpu.major == 9) return gpu;
  std::fprintf(stderr, "these programs need compute capability 9.0\n");
  std::exit(1);
}

// More than a GPU's caches hold.
constexpr size_t kBeyondCaches = size_t{256} << 20;

// Normal numbers of bf16, repeated after a prime number of them.
inline std::vector<uint16_t> normal_bf16(size_t count, float scale) {
  constexpr size_t kPeriod = 1000003;
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, scale);
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = i < kPeriod ? from_float<BFloat16>(normal(random)).bits : values[i - kPeriod];
  }
  return values;
}

// Milliseconds of one body(), which launches work that wait() waits for: the median of five rounds.
template <class Body, class Wait>
float time_of(const Body& body, const Wait& wait) {
  constexpr int kRuns = 20;
  body();
  wait();
  std::vector<float> times;
  for (int round = 0; round < 5; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < kRuns; ++run) body();
    wait();
    std::chrono::duration<float, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count() / kRuns);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Elements in device memory. Not copied.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    CHECK_CUDA(cudaMalloc(&data_, count * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& host) : DeviceArray(host.size()) { upload(host); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  void upload(const std::vector<T>& host) {
    CHECK_CUDA(cudaMemcpy(data_, host.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> download() const {
    std::vector<T> host(count_);
    CHECK_CUDA(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return host;
  }
  T* data() const { return data_; }
  size_t size() const { return count_; }

 private:
  size_t count_ = 0;
  T* data_ = nullptr;
};

// The median of `runs` times of body(), in milliseconds, after one that is not counted.
template <class Body>
float median_ms(int runs, const Body& body) {
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int run = 0; run <= runs; ++run) {
    CHECK_CUDA(cudaEventRecord(begin));
    body();
    CHECK_CUDA(cudaEventRecord(end));
    CHECK_CUDA(cudaEventSynchronize(end));
    CHECK_CUDA(cudaGetLastError());
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (run > 0) times.push_back(ms);
  }
  CHECK_CUDA(cudaEventDestroy(begin));
  CHECK_CUDA(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace banyan::gpu
