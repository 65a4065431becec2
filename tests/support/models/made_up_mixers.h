// Mixers that only tests have, with states of kinds that no family keeps yet: what is true of them
// is true of any state of those kinds. They read and write the pools themselves.
#pragma once

#include <atomic>
#include <cstdint>

#include "ops/step.h"
#include "weights/builder.h"

namespace banyan::test {

// Gives every position the mean of the means of all complete blocks of some tokens: a state with
// one row for each of those, the sum of the block's keys.
class BlockMeans {
 public:
  BlockMeans(Builder b, int64_t hidden, int block_tokens);
  Tensor operator()(Step& s, Tensor x) const;

 private:
  void sum_blocks(Step& s, const SpanArgs& span) const;

  int64_t hidden_;
  StateId keys_, sums_;
};

// Gives zeros, and aborts where an advisory state is neither what was written for its position nor
// missing: pages of a window, and a slot with snapshots and a log of drafts.
class Notes {
 public:
  Notes(Builder b, int64_t hidden);
  Tensor operator()(Step& s, Tensor x) const;

  // Times that one was missing, in all models together.
  static inline std::atomic<int64_t> missing_pages = 0, missing_slots = 0;
  // Notes that slots took from logs.
  static inline std::atomic<int64_t> replayed = 0;

 private:
  int64_t hidden_;
  StateId truth_, notes_, slot_, log_;
};

}  // namespace banyan::test
