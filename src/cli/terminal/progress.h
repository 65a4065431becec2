// A progress line on stderr; prints nothing if stderr is not a terminal.
//
// The line is rewritten in place at most ten times per second and erased at the end. update() may
// be called from any thread, but not concurrently.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "banyan/config.h"
#include "base/os/status_line.h"

namespace banyan::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);

  // "loading  45%  1.2 GB of 2.7 GB  830 MB/s  2 s left"
  void update(int64_t bytes_done, int64_t bytes_total);
  // "bench  3 of 5"; drawn immediately.
  void show(const std::string& state);

  // A callback for loaders; valid while this object lives.
  LoadProgress load_progress();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  StatusLine line_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;
};

// The line's text after "loading"; `seconds` since the start. A total not greater than the amount
// done counts as unknown.
std::string describe_progress(int64_t bytes_done, int64_t bytes_total, double seconds);

}  // namespace banyan::cli
