// How fast a machine's kernel tables are for weights of each format, relative to each other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/choice/formats.h"

namespace banyan {

// The speed of each table for one format, in the order of the tables, relative to the last one.
using TableSpeeds = std::vector<double>;
using ProbedSpeeds = std::array<TableSpeeds, kGemmFormats.size()>;

// The work to measure, and the clock; an interface for tests.
class KernelProbe {
 public:
  virtual ~KernelProbe() = default;
  // Prepares the runs of one format.
  virtual void prepare(const GemmFormat& format) = 0;
  // Seconds of one run with the table of that index.
  virtual double run(size_t table) = 0;
  virtual double now_s() = 0;  // on the clock that the budget refers to
};

// Runs the tables in turn, round after round, so that other load on the machine affects all alike.
// The speed is the median of the rounds' ratios. Ends after `budget_s` in total, but runs at least
// one round of each format.
ProbedSpeeds probe_kernels(KernelProbe& probe, size_t tables, double budget_s);

// The last table that is as fast as the fastest, within noise. Tables share most kernels, and noise
// should not decide between equal ones. `speeds` is not empty.
size_t fastest_table(const TableSpeeds& speeds);

// The work is an eighth of a decoder layer with the proportions of Qwen3-0.6B. It has a step of 64
// prompt rows, with products and attention to 256 keys, and a step of one row with four times as
// many weights, which exceed the level-2 cache. Both count equally (geometric mean). Runs on one
// thread: only the ratio matters, and threads that wait for each other add noise.
std::unique_ptr<KernelProbe> real_probe(std::span<const KernelTable* const> tables);

}  // namespace banyan
