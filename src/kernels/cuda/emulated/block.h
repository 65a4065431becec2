// A block of threads on the host (kernels/cuda/block.h): every phase is a loop over its threads, in
// ascending or descending order. The order changes from phase to phase by a running number, so that
// a phase in which threads depend on each other gives different results from run to run.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/cuda/block.h"
#include "kernels/cuda/emulated/tensor_gemm.h"
#include "kernels/cuda/split_fragments.h"

namespace banyan::cuda::emulated {

// Whether the next phase, or grid of blocks, runs in descending order.
class Orders {
 public:
  bool descending() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 63 != 0;
  }

 private:
  uint64_t state_ = 1;
};

// Memory that is not initialised, as on a GPU: filled with NaN.
class Poisoned {
 public:
  std::byte* at_least(size_t bytes) {
    constexpr size_t kAlignment = 1024;
    bytes_.assign(bytes + kAlignment, std::byte{0xff});
    auto address = std::bit_cast<uintptr_t>(bytes_.data());
    return bytes_.data() + (kAlignment - address % kAlignment);
  }

 private:
  std::vector<std::byte> bytes_;
};

// Products of a warpgroup in registers and shared memory.
struct Products {
  template <int n, bool transposed, class SumsOf, class FragmentsOf>
  void add(SumsOf& sums, const FragmentsOf& a, const OperandTiles& b, int step, bool keeps) const {
    BFloat16 rows[kWarpgroup / 2][kWgmmaDepth];
    for (int thread = 0; thread < kWarpgroup; ++thread) {
      for (int i = 0; i < kWgmmaDepth / 2; ++i) {
        uint32_t pair = a(thread)[i / 2] >> (i % 2 * 16);
        rows[Sums<16>::row(thread, i)][Sums<16>::column(thread, i)].bits =
            static_cast<uint16_t>(pair);
      }
    }
    WgmmaOperand of_rows[kWarpgroup / 2], of_columns[n];
    for (int i = 0; i < kWarpgroup / 2; ++i) of_rows[i].assign(rows[i], kWgmmaDepth);
    for (int j = 0; j < n; ++j) {
      BFloat16 column[kWgmmaDepth];
      for (int k = 0; k < kWgmmaDepth; ++k) {
        int64_t depth = step * kWgmmaDepth + k;
        std::memcpy(&column[k], transposed ? at(b, depth, j) : at(b, j, depth), sizeof column[k]);
      }
      of_columns[j].assign(column, kWgmmaDepth);
    }
    for (int thread = 0; thread < kWarpgroup; ++thread) {
      for (int i = 0; i < n / 2; ++i) {
        float& sum = sums[thread].at[i];
        sum = wgmma_step(keeps ? sum : 0, of_rows[Sums<n>::row(thread, i)],
                         of_columns[Sums<n>::column(thread, i)], 0);
      }
    }
  }

 private:
  static const std::byte* at(const OperandTiles& b, int64_t row, int64_t column) {
    return b.pair(row, column / 2 * 2) + column % 2 * 2;
  }
};

template <int Threads>
class Block {
 public:
  static constexpr int kThreads = Threads;

  template <class T>
  class PerThread {
   public:
    T& operator[](int thread) { return values_[thread]; }

   private:
    T values_[Threads] = {};
  };

  Block(int64_t index, int64_t count, std::byte* shared, std::byte* scratch, Orders& orders)
      : index_(index), count_(count), shared_(shared), scratch_(scratch), orders_(orders) {}

  int64_t index() const { return index_; }
  int64_t count() const { return count_; }
  template <class T>
  T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }
  std::byte* scratch() const { return scratch_; }

  template <class Body>
  void each(const Body& body) {
    bool descending = orders_.descending();
    for (int i = 0; i < Threads; ++i) body(descending ? Threads - 1 - i : i);
  }

  template <class Body>
  void one(const Body& body) {
    body();
  }

  template <class Body, class Combine>
  auto reduce(const Body& body, const Combine& combine) {
    using T = decltype(body(0));
    T values[Threads];
    each([&](int thread) { values[thread] = body(thread); });
    for (int warp = 0; warp < Threads; warp += kWarp) {
      for (int half = kWarp / 2; half > 0; half /= 2) {
        for (int i = warp; i < warp + half; ++i) values[i] = combine(values[i], values[i + half]);
      }
    }
    for (int warp = kWarp; warp < Threads; warp += kWarp) {
      values[0] = combine(values[0], values[warp]);
    }
    return values[0];
  }

  template <class Body, class Combine>
  auto reduce_warps(const Body& body, const Combine& combine) {
    using T = decltype(body(0));
    PerThread<T> values;
    each([&](int thread) { values[thread] = body(thread); });
    for (int warp = 0; warp < Threads; warp += kWarp) {
      for (int half = kWarp / 2; half > 0; half /= 2) {
        for (int i = warp; i < warp + half; ++i) values[i] = combine(values[i], values[i + half]);
      }
      for (int lane = 1; lane < kWarp; ++lane) values[warp + lane] = values[warp];
    }
    return values;
  }

  template <class Body, class Combine>
  auto reduce_lanes(int lanes, const Body& body, const Combine& combine) {
    using T = decltype(body(0));
    PerThread<T> values;
    each([&](int thread) { values[thread] = body(thread); });
    for (int first = 0; first < Threads; first += lanes) {
      for (int i = 1; i < lanes; ++i) values[first] = combine(values[first], values[first + i]);
      for (int i = 1; i < lanes; ++i) values[first + i] = values[first];
    }
    return values;
  }

  template <class Body>
  auto sum_quads(const Body& body) {
    float values[Threads];
    each([&](int thread) { values[thread] = body(thread); });
    PerThread<float> sums;
    for (int i = 0; i < Threads; ++i) {
      const float* quad = values + i / 4 * 4;
      sums[i] = (quad[0] + quad[1]) + (quad[2] + quad[3]);
    }
    return sums;
  }

  template <class Body>
  void alone(const Body& body) {
    each(body);
  }

  template <class Body, class... Values>
  void multiply(const Body& body, Values&... /*values*/) const {
    static_assert(Threads == kWarpgroup);
    const Products products;
    body(products);
  }

  void begin_fetching() const {}
  void fetch(std::byte* to, const std::byte* from, int64_t bytes) const {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void wait_for_fetched() const {}

  template <class T>
  void exclusive_sums(T* values) {
    T next = 0;
    for (int thread = 0; thread < Threads; ++thread) {
      T value = values[thread];
      values[thread] = next;
      next += value;
    }
  }

 private:
  int64_t index_, count_;
  std::byte *shared_, *scratch_;
  Orders& orders_;
};

}  // namespace banyan::cuda::emulated
