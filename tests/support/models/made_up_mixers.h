// Mixers that only tests have, with kinds of states that no family uses yet. They read and write
// the pools themselves.
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

// Outputs zeros. Aborts if an advisory state is neither missing nor what was written for its
// position: pages of a window, and a slot with snapshots and a log of drafts.
class Notes {
 public:
  Notes(Builder b, int64_t hidden);
  Tensor operator()(Step& s, Tensor x) const;

  // How often one was missing, over all models.
  static inline std::atomic<int64_t> missing_pages = 0, missing_slots = 0;
  // Number of notes that slots took from logs.
  static inline std::atomic<int64_t> replayed = 0;

 private:
  int64_t hidden_;
  StateId truth_, notes_, slot_, log_;
};

}  // namespace banyan::test
