// A line on stderr that tells how far something has come; silent when stderr is no terminal.
//
// The line is rewritten in place at most ten times a second and erased in the end. update() may be
// called from one thread at a time, whichever it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "banyan/config.h"
#include "base/status_line.h"

namespace banyan::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);

  // "loading  45%  1.2 GB of 2.7 GB  830 MB/s  2 s left"
  void update(int64_t bytes_done, int64_t bytes_total);
  // "bench  3 of 5"; shown at once.
  void show(const std::string& state);

  // For a loader; valid while this lives.
  LoadProgress load_progress();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  StatusLine line_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_;
};

// The line's text after "loading"; `seconds` since the beginning. A total that is not more than
// what is done is one that nobody knows.
std::string describe_progress(int64_t bytes_done, int64_t bytes_total, double seconds);

}  // namespace banyan::cli
