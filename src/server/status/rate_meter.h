// How fast a counter advances while something goes on. It may advance less often than it is read,
// so the rate is that from one advance to the next. Belongs to one thread.
#pragma once

#include <chrono>
#include <cstdint>

namespace banyan {

class RateMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void observe(bool goes_on, int64_t count, Time now) {
    if (!goes_on) {
      state_ = State::kOff;
    } else if (state_ == State::kOff) {
      state_ = State::kOn;
      count_ = count;
    } else if (count > count_) {
      double time_s = std::chrono::duration<double>(now - at_).count();
      if (state_ == State::kMarked && time_s > 0) blend((count - count_) / time_s);
      state_ = State::kMarked;
      count_ = count;
      at_ = now;
    }
  }
  double per_s() const { return per_s_; }  // 0: not measured yet

 private:
  // kMarked: `at_` is when the counter advanced.
  enum class State : uint8_t { kOff, kOn, kMarked };
  static constexpr double kMemory = 0.8;  // weight of earlier measurements

  void blend(double value) {
    per_s_ = per_s_ == 0 ? value : kMemory * per_s_ + (1 - kMemory) * value;
  }

  State state_ = State::kOff;
  int64_t count_ = 0;
  Time at_;
  double per_s_ = 0;
};

}  // namespace banyan
