// Which sequences run in the next step, and over which of their positions.
//
// First come, first served: a waiting sequence is admitted as soon as there is room beside the
// running ones for all the tokens that it may ever have, so nothing that runs is ever stopped for
// want of pages. Running sequences share the step's rows, those that need one row first.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cache/state_pools.h"
#include "engine/sequence.h"

namespace banyan {

// A run of consecutive positions of a sequence.
struct PlannedSpan {
  Sequence* sequence = nullptr;
  int64_t first = 0;
  int64_t count = 0;
};

struct StepPlan {
  std::vector<PlannedSpan> spans;
};

class Scheduler {
 public:
  Scheduler(int64_t pages, int page_size_tokens, int running_max, int64_t rows_max);

  // Requires pages_for(sequence.tokens_max) <= pages_total().
  void enqueue(std::unique_ptr<Sequence> sequence);
  void cancel(SequenceId id);

  // Admits what fits and fills `plan`, whose spans stay valid until the next call of any method.
  void plan(StepPlan& plan);

  // Takes the sequence out and frees its pages. It must be running or waiting.
  std::unique_ptr<Sequence> remove(Sequence* sequence);
  // A cancelled sequence, removed; null when there is none left.
  std::unique_ptr<Sequence> remove_cancelled();

  int64_t pages_for(int64_t tokens) const {
    return (tokens + page_size_tokens_ - 1) / page_size_tokens_;
  }
  int64_t pages_total() const { return pages_total_; }
  int64_t pages_free() const { return free_pages_.free_count(); }
  int64_t running() const { return static_cast<int64_t>(running_.size()); }
  int64_t waiting() const { return static_cast<int64_t>(waiting_.size()); }

 private:
  void admit();

  PageList free_pages_;
  int64_t pages_total_;
  int page_size_tokens_;
  int running_max_;
  int64_t rows_max_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
};

}  // namespace banyan
