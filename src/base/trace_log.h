// An in-memory log of profile events: which kernel or layer ran when.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace banyan {

// Strings are literals. Numbers below 0 are unknown.
struct TraceEvent {
  const char* category = "";            // "step", "layer", "kernel"
  const char *name = "", *detail = "";  // "gemm", "int8"
  int64_t begin_ns = 0, end_ns = 0;     // by trace_clock_ns()
  int64_t index = -1;                   // layer index
  int64_t rows = -1, n = -1, k = -1;    // rows: the kernel's work; n and k: of products
};

int64_t trace_clock_ns();  // monotonic

// Bounded. Used by one thread until ended() is true; after that, its requester may read it.
class TraceLog {
 public:
  // Ends after `events_max` events or `steps_max` steps; 0 steps: no step limit.
  TraceLog(size_t events_max, int64_t steps_max);

  void add(const TraceEvent& event) {
    if (events_.size() < events_max_) events_.push_back(event);
  }
  // Call after each step. Returns whether the log has ended.
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

// Records one event that lasts as long as the object. With a null `log` it does nothing.
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
