#include "engine/schedule/prefill_pace.h"

#include <algorithm>

#include "base/divide.h"

namespace banyan {
namespace {

// With fewer rows, a CPU reads weights for a good part of the step.
constexpr int64_t kRowsMin = 64;
// Until a step is measured.
constexpr int64_t kRowsFirst = 128;
// Steps with fewer say little about the cost of a row.
constexpr int64_t kRowsMeasured = 32;
constexpr double kNewWeight = 0.5;

}  // namespace

PrefillPace::PrefillPace(double step_ms, int64_t rows_max, int64_t alignment)
    : step_s_(step_ms * 1e-3),
      rows_max_(rows_max),
      rows_min_(std::min(rows_max, divide_up(kRowsMin, alignment) * alignment)),
      alignment_(alignment) {}

int64_t PrefillPace::rows() const {
  if (step_s_ == 0) return rows_max_;
  double rows = row_s_ > 0 ? step_s_ / row_s_ : kRowsFirst;
  auto most = static_cast<double>(rows_max_);
  int64_t whole = static_cast<int64_t>(std::min(rows, most)) / alignment_ * alignment_;
  return std::max(whole, rows_min_);
}

// A step's fixed cost counts as its rows'. With the number of rows that follows from this, the next
// step comes closer to the wanted time, from above and from below.
void PrefillPace::observe(int64_t rows, double time_s) {
  bool tells = row_s_ == 0 ? rows >= kRowsMeasured : 2 * rows >= this->rows();
  if (step_s_ == 0 || !tells) return;
  double row_s = time_s / static_cast<double>(rows);
  row_s_ = row_s_ == 0 ? row_s : row_s_ + kNewWeight * (row_s - row_s_);
}

}  // namespace banyan
