// What a machine can do at most: loops of one kind of instruction, which every kernel table brings,
// and what they reach here. Kernels are measured against them.
//
// A limit is the best of many short runs: other programs can only make a run slower.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/os/memory.h"
#include "base/thread_pool.h"
#include "kernels/operand.h"

namespace banyan {

struct KernelTable;

// A loop that only multiplies and adds.
struct ProductProbe {
  const char* name;  // "AVX-512 bf16 pairs"
  Operand operand;
  // Runs that many rounds; returns the operations done, two for each product.
  double (*run)(int64_t rounds);
};

// The loops of one kernel table's instruction set.
struct LimitProbes {
  std::span<const ProductProbe> products;  // one of f32 at least
  // Reads `bytes` bytes, a multiple of 256; unless `ahead` is 0 it asks for each line when it is
  // `ahead` bytes away.
  void (*read)(const std::byte* data, size_t bytes, size_t ahead);
};

// A kernel table and what its instruction set can reach.
struct MeasuredTable {
  const KernelTable* table;
  const LimitProbes* limits;
};

struct ReadLimit {
  double plain_bytes_per_s = 0;
  double bytes_per_s = 0;  // the best of all
  size_t ahead_bytes = 0;  // how that was reached; 0: plainly
};

// What `probes` says limits products of `operand`: of f32 where it has none of that kind. Several
// are the same instruction under other conditions.
std::span<const ProductProbe> probes_of(const LimitProbes& probes, Operand operand);

// What bounds the kernels of one table on some number of threads.
struct MachineLimits {
  double bytes_per_s = 0;
  std::array<double, kOperands> operations_per_s = {};
};

// Measures one thing after another on the workers of a pool.
class LimitMeter {
 public:
  static constexpr size_t kMemoryBytes = size_t{256} << 20;  // beyond the caches of most machines

  // `seconds` for each figure. Reads go through `memory_bytes`, less where memory is short, which
  // no cache should hold and which are taken when first needed.
  LimitMeter(ThreadPool& threads, double seconds, size_t memory_bytes = kMemoryBytes)
      : threads_(threads), seconds_(seconds), memory_bytes_(memory_bytes) {}

  double operations_per_s(const ProductProbe& probe);
  // The best of several.
  double operations_per_s(std::span<const ProductProbe> probes);
  ReadLimit read(const LimitProbes& probes);
  MachineLimits limits(const LimitProbes& probes);
  double barrier_s();

 private:
  // The least time that a run takes.
  double best_s(FunctionRef<void()> run) const;
  void take_memory();
  // Of a byte.
  double best_read_s(const LimitProbes& probes, size_t ahead);

  ThreadPool& threads_;
  double seconds_;
  size_t memory_bytes_;
  MemoryBlock memory_;
};

}  // namespace banyan
