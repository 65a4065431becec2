// Decides whether something that keeps failing is tried again: after kFailuresMax consecutive
// failures, not for kPause; then once, and so on. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace banyan {

class Breaker {
 public:
  static constexpr int kFailuresMax = 5;
  static constexpr auto kPause = std::chrono::seconds(30);

  // `what` is for the log.
  explicit Breaker(std::string what) : what_(std::move(what)) {}

  bool closed() const;  // it may be tried
  void succeeded();
  void failed(std::string_view why);
  std::string trouble() const;  // why it is open; empty if closed

 private:
  using Clock = std::chrono::steady_clock;

  const std::string what_;
  mutable std::mutex mutex_;
  int failures_ = 0;
  Clock::time_point open_until_ = {};
  std::string trouble_;
};

}  // namespace banyan
