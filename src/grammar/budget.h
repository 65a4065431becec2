// What one compilation may cost: states, bytes of source, nesting and time. Every stage of the
// compiler counts against the same Budget, so a hostile grammar ends in an error that names what
// was too large, at about the same cost whichever stage it was made to hurt.
//
// One Budget per compilation, used by one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "banyan/grammar.h"
#include "base/error.h"

namespace banyan {

class Budget {
 public:
  explicit Budget(const GrammarLimits& limits = {})
      : limits_(limits),
        deadline_(std::chrono::steady_clock::now() +
                  std::chrono::microseconds(static_cast<int64_t>(limits.compile_s * 1e6))) {}

  const GrammarLimits& limits() const { return limits_; }

  // To be called about once per thousand elementary steps, with how many there were.
  Status spend(std::string_view what, size_t steps = 1) {
    steps_ += steps;
    if (steps_ < next_look_) return {};
    next_look_ = steps_ + kStepsBetweenLooks;
    if (std::chrono::steady_clock::now() < deadline_) return {};
    return exhausted("compiling the grammar took more than {} s, at {}", limits_.compile_s, what);
  }

  // Names `what` when `value` is beyond `max`.
  static Status fits(std::string_view what, size_t value, size_t max) {
    if (value <= max) return {};
    return exhausted("{} is too large: more than {} allowed", what, max);
  }

 private:
  static constexpr size_t kStepsBetweenLooks = 4096;

  GrammarLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  size_t steps_ = 0;
  size_t next_look_ = 0;
};

}  // namespace banyan
