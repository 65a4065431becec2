// Measures what a machine can reach at most, with loops of one kind of instruction that every
// kernel table provides. Kernels are compared with these limits.
//
// A limit is the best of many short runs, since other load can only slow a run down.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/os/memory.h"
#include "base/threads/thread_pool.h"
#include "kernels/operand.h"

namespace banyan {

struct KernelTable;

// A loop of only multiply-adds.
struct ProductProbe {
  const char* name;  // "AVX-512 bf16 pairs"
  Operand operand;
  // Runs `rounds` rounds; returns the number of operations, two per product.
  double (*run)(int64_t rounds);
};

// The loops of one kernel table's instruction set.
struct LimitProbes {
  std::span<const ProductProbe> products;  // at least one for f32
  // Reads `bytes` bytes, a multiple of 256. If `ahead` is not 0, prefetches each line `ahead` bytes
  // early.
  void (*read)(const std::byte* data, size_t bytes, size_t ahead);
};

// A kernel table and the limits of its instruction set.
struct MeasuredTable {
  const KernelTable* table;
  const LimitProbes* limits;
};

struct ReadLimit {
  double plain_bytes_per_s = 0;
  double bytes_per_s = 0;  // best over all variants
  size_t ahead_bytes = 0;  // prefetch distance of the best variant; 0: no prefetch
};

// The probes that limit products of `operand`; those of f32 if there are none. Several probes are
// the same instruction under different conditions.
std::span<const ProductProbe> probes_of(const LimitProbes& probes, Operand operand);

// The limits of one table's kernels with a given number of threads.
struct MachineLimits {
  double bytes_per_s = 0;
  std::array<double, kOperands> operations_per_s = {};
};

// Measures one limit at a time on the workers of a pool.
class LimitMeter {
 public:
  static constexpr size_t kMemoryBytes = size_t{256} << 20;  // beyond the caches of most machines

  // `seconds` per figure. Reads cover `memory_bytes` (less if memory is short), which should exceed
  // all caches and is allocated on first use.
  LimitMeter(ThreadPool& threads, double seconds, size_t memory_bytes = kMemoryBytes)
      : threads_(threads), seconds_(seconds), memory_bytes_(memory_bytes) {}

  double operations_per_s(const ProductProbe& probe);
  // The best of several probes.
  double operations_per_s(std::span<const ProductProbe> probes);
  ReadLimit read(const LimitProbes& probes);
  MachineLimits limits(const LimitProbes& probes);
  double barrier_s();

 private:
  // The shortest time of a run.
  double best_s(FunctionRef<void()> run) const;
  void take_memory();
  // Seconds per byte.
  double best_read_s(const LimitProbes& probes, size_t ahead);

  ThreadPool& threads_;
  double seconds_;
  size_t memory_bytes_;
  MemoryBlock memory_;
};

}  // namespace banyan
