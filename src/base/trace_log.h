// What ran when, in memory: the events of a profile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace banyan {

// Texts are literals. Numbers below 0 are not known.
struct TraceEvent {
  const char* category = "";            // "step", "layer", "kernel"
  const char *name = "", *detail = "";  // "gemm", "int8"
  int64_t begin_ns = 0, end_ns = 0;     // of trace_clock_ns()
  int64_t index = -1;                   // of a layer
  int64_t rows = -1, n = -1, k = -1;    // what a kernel worked on; n and k of products
};

int64_t trace_clock_ns();  // steady

// Bounded, and of one thread, until ended() is true: then whoever asked reads it.
class TraceLog {
 public:
  // Ends after so many events or steps; 0 steps: no such end.
  TraceLog(size_t events_max, int64_t steps_max);

  void add(const TraceEvent& event) {
    if (events_.size() < events_max_) events_.push_back(event);
  }
  // After each step. Whether the log has ended.
  bool end_step();
  void end() { ended_ = true; }

  bool ended() const { return ended_; }
  bool full() const { return events_.size() >= events_max_; }
  int64_t steps() const { return steps_; }
  const std::vector<TraceEvent>& events() const { return events_; }

 private:
  const size_t events_max_;
  const int64_t steps_max_;
  int64_t steps_ = 0;
  std::vector<TraceEvent> events_;
  std::atomic<bool> ended_ = false;
};

// The event of its own life. `log` null: none.
class TraceSpan {
 public:
  TraceSpan(TraceLog* log, const char* category, const char* name, int64_t index = -1)
      : log_(log), event_{.category = category, .name = name, .index = index} {
    if (log_ != nullptr) event_.begin_ns = trace_clock_ns();
  }
  ~TraceSpan() {
    if (log_ == nullptr) return;
    event_.end_ns = trace_clock_ns();
    log_->add(event_);
  }
  void set_rows(int64_t rows) { event_.rows = rows; }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  TraceLog* const log_;
  TraceEvent event_;
};

}  // namespace banyan
