// The cost limits of one compilation: states, bytes of source, nesting and time. Every stage of the
// compiler charges the same Budget, so a hostile grammar fails at about the same cost in any stage.
// The error names what was too large.
//
// One Budget per compilation, used by one thread.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "banyan/grammar.h"
#include "base/error.h"

namespace banyan {

class Budget {
 public:
  explicit Budget(const GrammarLimits& limits = {})
      : limits_(limits), deadline_s_(thread_s() + limits.compile_s) {}

  const GrammarLimits& limits() const { return limits_; }

  // For an optional part that only makes the automaton smaller; it shares the overall time limit.
  Budget with_states_max(size_t states) const {
    Budget part = *this;
    part.limits_.dfa_states_max = std::min(part.limits_.dfa_states_max, states);
    return part;
  }

  // Call about once per thousand elementary steps, with the number of steps.
  Status spend(std::string_view what, size_t steps = 1) {
    steps_ += steps;
    if (steps_ < next_look_) return {};
    next_look_ = steps_ + kStepsBetweenLooks;
    if (thread_s() < deadline_s_) return {};
    return exhausted("compiling the grammar took more than {} s, at {}", limits_.compile_s, what);
  }

  // Fails, naming `what`, when `value` exceeds `max`.
  static Status fits(std::string_view what, size_t value, size_t max) {
    if (value <= max) return {};
    return exhausted("{} is too large: more than {} allowed", what, max);
  }

 private:
  static constexpr size_t kStepsBetweenLooks = 4096;

  // Processor seconds of this thread. The cost of a grammar should not depend on other load on the
  // processor.
  static double thread_s() {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  GrammarLimits limits_;
  double deadline_s_;
  size_t steps_ = 0;
  size_t next_look_ = 0;
};

}  // namespace banyan
