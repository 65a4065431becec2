#include "base/trace_log.h"

#include <chrono>

namespace banyan {

int64_t trace_clock_ns() {
  auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

TraceLog::TraceLog(size_t events_max, int64_t steps_max)
    : events_max_(events_max), steps_max_(steps_max) {}

bool TraceLog::end_step() {
  ++steps_;
  if (full() || steps_ == steps_max_) end();
  return ended();
}

}  // namespace banyan
