#include "engine/thread_choice.h"

#include <algorithm>
#include <bit>

namespace banyan {
namespace {

// The share of a processor for each thread that others must take, and go on taking.
constexpr double kContended = 0.1, kContendedStill = 0.05;
// Steps in a row with the same threads, of which the first, which wakes or misses threads, does not
// count; how many count on each side; and after how many a trial whose steps differ is given up.
constexpr int64_t kStepsInTurn = 4, kTimesOfASide = 9, kTrialSteps = 96;
// The rival must take at most this much of the time.
constexpr double kTimeOfRival = 0.95;
// The time of a trial, half of it perhaps wasted, is a small part of what lies between two.
constexpr double kRestAfterTrial = 25;

double median(std::vector<double>& times) {
  auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

}  // namespace

ThreadChoice::ThreadChoice(int threads) {
  for (int n = threads; n > 0; n -= std::max(1, n / 4)) levels_.push_back(n);
}

size_t ThreadChoice::kind_of(int64_t rows) {
  auto bits =
      static_cast<size_t>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(rows, 1))));
  return std::min((bits - 1) / 2, kKinds - 1);
}

void ThreadChoice::set_free(double processors) {
  free_ = processors;
  double taken = 1 - free_ / levels_[0];
  contended_ = taken > (contended_ ? kContendedStill : kContended);
  if (contended_) return;
  for (Kind& kind : kinds_) kind.level = kind.rival = 0;
}

bool ThreadChoice::rival_runs(const Kind& kind) const {
  return kind.rival != kind.level && kind.steps / kStepsInTurn % 2 == 1;
}

int ThreadChoice::threads_for(int64_t rows) const {
  const Kind& kind = kinds_[kind_of(rows)];
  return levels_[rival_runs(kind) ? kind.rival : kind.level];
}

void ThreadChoice::begin(Kind& kind, int64_t rows) const {
  bool most = kind.level == 0, least = kind.level + 1 == levels_.size();
  kind.up = (kind.up && !most) || least;
  kind.rival = kind.up ? kind.level - 1 : kind.level + 1;
  // What others leave, if that is less.
  while (!kind.up && kind.rival + 1 < levels_.size() && levels_[kind.rival] > free_) ++kind.rival;
  kind.up = !kind.up;
  kind.rows = rows;
  kind.steps = 0;
  kind.tried_s = 0;
  kind.times.clear();
  kind.rival_times.clear();
}

void ThreadChoice::observe(int64_t rows, double time_s) {
  if (levels_.size() == 1) return;
  Kind& kind = kinds_[kind_of(rows)];
  if (kind.rival == kind.level) {
    kind.rest_s -= time_s;
    if (contended_ && kind.rest_s <= 0) begin(kind, rows);
    return;
  }
  bool counts = rows == kind.rows && kind.steps % kStepsInTurn > 0;
  if (counts) (rival_runs(kind) ? kind.rival_times : kind.times).push_back(time_s);
  ++kind.steps;
  kind.tried_s += time_s;
  bool enough =
      std::ssize(kind.times) >= kTimesOfASide && std::ssize(kind.rival_times) >= kTimesOfASide;
  if (enough || kind.steps >= kTrialSteps) decide(kind);
}

void ThreadChoice::decide(Kind& kind) {
  bool compared = !kind.times.empty() && !kind.rival_times.empty();
  bool better = compared && median(kind.rival_times) < kTimeOfRival * median(kind.times);
  if (better) {
    kind.up = kind.rival < kind.level;  // further the same way
    kind.level = kind.rival;
  }
  kind.rival = kind.level;
  kind.rest_s = kRestAfterTrial * kind.tried_s;
}

}  // namespace banyan
