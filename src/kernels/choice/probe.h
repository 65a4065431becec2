// How fast a machine's kernel tables are for weights of each format, relative to each other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "kernels/choice/formats.h"

namespace banyan {

// The speed of each table for one format, in the order of the tables, that of the last being 1.
using TableSpeeds = std::vector<double>;
using ProbedSpeeds = std::array<TableSpeeds, kGemmFormats.size()>;

// What is measured, and the clock: tests bring their own.
class KernelProbe {
 public:
  virtual ~KernelProbe() = default;
  // Makes room for the runs of one format.
  virtual void prepare(const GemmFormat& format) = 0;
  // Seconds of one run of its work with the table of that index.
  virtual double run(size_t table) = 0;
  virtual double now_s() = 0;  // by the clock that the budget is of
};

// Runs the tables in turn, round after round, so that what neighbours take meets them alike; the
// speed is the median of the rounds' own ratios. Ends after `budget_s` in all, but for one round of
// each format at least.
ProbedSpeeds probe_kernels(KernelProbe& probe, size_t tables, double budget_s);

// The last of the tables that are as fast as the fastest, but for what may be chance: tables share
// most kernels, and which of two alike is taken should not be chance. `speeds` is not empty.
size_t fastest_table(const TableSpeeds& speeds);

// An eighth of a decoder layer in the proportions of Qwen3-0.6B's: a step of 64 rows of a prompt,
// products and attention to 256 keys, and one row through four times as many weights, which the
// level-2 cache does not hold. The two count alike (the geometric mean). On one thread: what
// decides is the ratio, and threads that wait for each other would only add to its noise.
std::unique_ptr<KernelProbe> real_probe(std::span<const KernelTable* const> tables);

}  // namespace banyan
