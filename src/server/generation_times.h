// Timings of one choice, for protocols that report them. Belongs to one thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "banyan/request.h"

namespace banyan {

class GenerationTimes {
 public:
  using Clock = std::chrono::steady_clock;

  explicit GenerationTimes(Clock::time_point received) : received_(received) {}

  void take(const TokenEvent& event) {
    auto now = Clock::now();
    queued_s_ = std::max(queued_s_, event.queued_s);
    if (event.is_progress()) {
      progress_ = now;
      return;
    }
    bool generated = event.has_token && !event.from_prompt;
    if (first_ == Clock::time_point()) first_ = now;
    if (generated || event.finish != FinishReason::kNone) last_ = now;
  }

  // From the arrival of the request to its last token.
  double total_s() const { return std::max(0.0, seconds(last_ - received_)); }
  // Until the prompt's last reported progress, without the time in the queue.
  double progress_s() const { return std::max(0.0, seconds(progress_ - received_) - queued_s_); }
  // Until the first token, without the time in the queue.
  double prompt_s() const { return std::max(0.0, seconds(first_ - received_) - queued_s_); }
  // From the first token to the last.
  double predicted_s() const { return std::max(0.0, seconds(last_ - first_)); }

 private:
  static double seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  Clock::time_point received_, progress_, first_, last_;
  double queued_s_ = 0;
};

}  // namespace banyan
