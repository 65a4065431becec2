#include "kernels/limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWindow = size_t{32} << 20;  // bytes read per run: about a millisecond
constexpr size_t kReadUnit = 256;             // granularity of LimitProbes::read
constexpr double kRunSeconds = 5e-4;          // of a product run: short, so rarely interrupted
constexpr std::array<size_t, 5> kAhead = {0, 1024, 2048, 4096, 8192};

double seconds_of(FunctionRef<void()> run) {
  auto begin = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

std::span<const ProductProbe> probes_of(const LimitProbes& probes, Operand operand) {
  auto all = probes.products;
  auto begin = std::ranges::find(all, operand, &ProductProbe::operand);
  if (begin == all.end()) return probes_of(probes, Operand::kF32);
  auto end = std::find_if(begin, all.end(),
                          [&](const ProductProbe& probe) { return probe.operand != operand; });
  return {begin, end};
}

void LimitMeter::take_memory() {
  size_t quarter = std::max<int64_t>(available_memory_bytes(), 0) / 4;
  size_t part = kReadUnit * threads_.size();
  memory_ = MemoryBlock(std::max(std::min(memory_bytes_, quarter) / part, size_t{2}) * part);
  // Untouched pages map to the shared zero page, so each worker first writes the part it will read.
  threads_.parallel_for(std::ssize(memory_), kReadUnit, [&](int64_t begin, int64_t end) {
    std::memset(memory_.data() + begin, 1, end - begin);
  });
}

double LimitMeter::best_s(FunctionRef<void()> run) const {
  constexpr int kRunsMin = 3;
  std::chrono::duration<double> time(seconds_);
  double best = seconds_of(run);
  auto begin = Clock::now();
  for (int runs = 1; runs < kRunsMin || Clock::now() - begin < time; ++runs) {
    best = std::min(best, seconds_of(run));
  }
  return best;
}

double LimitMeter::operations_per_s(const ProductProbe& probe) {
  int64_t rounds = 64;
  while (seconds_of([&] { probe.run(rounds); }) < kRunSeconds) rounds *= 2;
  struct alignas(64) Count {
    double operations = 0;
  };
  std::vector<Count> counts(threads_.size());
  auto work = [&](int worker) { counts[worker].operations = probe.run(rounds); };
  double best = best_s([&] { threads_.run(work); });
  double operations = 0;
  for (const Count& count : counts) operations += count.operations;
  return operations / best;
}

double LimitMeter::operations_per_s(std::span<const ProductProbe> probes) {
  double best = 0;
  for (const ProductProbe& probe : probes) best = std::max(best, operations_per_s(probe));
  return best;
}

double LimitMeter::best_read_s(const LimitProbes& probes, size_t ahead) {
  if (memory_.size() == 0) take_memory();
  // Each run reads the next window, so that no cache still holds a window when it is read again. A
  // worker always reads the part of memory that it wrote.
  size_t workers = threads_.size();
  size_t part = memory_.size() / workers;
  size_t own = std::min(kWindow / workers, part / 2) / kReadUnit * kReadUnit;
  size_t offset = 0;
  auto read = [&](int worker) { probes.read(memory_.data() + worker * part + offset, own, ahead); };
  double best = best_s([&] {
    threads_.run(read);
    offset = offset + 2 * own <= part ? offset + own : 0;
  });
  return best / (own * workers);
}

ReadLimit LimitMeter::read(const LimitProbes& probes) {
  ReadLimit limit;
  for (size_t ahead : kAhead) {
    double rate = 1 / best_read_s(probes, ahead);
    if (ahead == 0) limit.plain_bytes_per_s = rate;
    if (rate <= limit.bytes_per_s) continue;
    limit.bytes_per_s = rate;
    limit.ahead_bytes = ahead;
  }
  return limit;
}

MachineLimits LimitMeter::limits(const LimitProbes& probes) {
  MachineLimits limits = {.bytes_per_s = read(probes).bytes_per_s};
  for (size_t i = 0; i < limits.operations_per_s.size(); ++i) {
    limits.operations_per_s[i] = operations_per_s(probes_of(probes, static_cast<Operand>(i)));
  }
  return limits;
}

double LimitMeter::barrier_s() {
  constexpr int kBarriers = 200;
  auto job = [&](int) {
    for (int i = 0; i < kBarriers; ++i) threads_.barrier();
  };
  return best_s([&] { threads_.run(job); }) / kBarriers;
}

}  // namespace banyan
