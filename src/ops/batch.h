// One step's work as plain arrays without pointers: it can be broadcast to ranks, logged and
// replayed. Built by the engine, read by ops; reused between steps so that its vectors keep their
// capacity.
//
// Rows are token positions to compute; consecutive rows of one sequence form a span. Prefill and
// decode are not distinguished: a decode is a span of one row.
//
// A draft tree is a span, its trunk, and one more span for each branch. A branch has pages of its
// own from the one on in which it leaves the trunk. So each path is a chain to every kernel. The
// rows of the trunk that the branch's first page needs are not computed again: `shared_rows` has
// them stored in both pages.
#pragma once

#include <cstdint>
#include <vector>

#include "banyan/status.h"
#include "banyan/token.h"
#include "cache/state_pools.h"
#include "kernels/kernel_table.h"

namespace banyan {

// The units of one state class.
struct UnitTable {
  // Pages: those of all spans' sequences, concatenated, at the offsets in SpanArgs. A page that
  // ends before the window of the span's first row may be -1, since it is never read. Slots: one
  // per span.
  std::vector<int32_t> units;
  std::vector<Capture> captures;  // slots: copies made during the step, without splitting spans
};

struct Batch {
  // A token value <= kSampleOfRow is a placeholder for the token that the previous step draws at
  // its logit row kSampleOfRow - value. Used in steps that are launched before the previous one is
  // read.
  static constexpr TokenId kSampleOfRow = -1;

  // [rows]
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;  // [position_axes, rows]; axes beyond 0 are for M-RoPE
  int position_axes = 1;
  std::vector<int32_t> embedding_rows;  // rows whose input is an embedding instead of a token

  // [spans]
  std::vector<SpanArgs> spans;
  std::vector<int32_t> prompt_tokens;  // positions below use a mixer's prefill form
  std::vector<DraftRows> drafts;       // for states in slots; empty: no span drafts or replays
  std::vector<int32_t> adapters;       // slots of the step's adapters; -1: none
  std::vector<SpanArgs> shared_rows;   // rows of spans that are stored in other pages as well

  PerClass<UnitTable> tables;    // by the model's StateClasses; entries past its count are empty
  std::vector<UnitCopy> copies;  // done before the step, in this order

  std::vector<int32_t> logit_rows;   // ascending
  std::vector<int32_t> hidden_rows;  // ascending; rows whose hidden state the host gets

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  void clear();

  // Rejects fields that no kernel of this version supports, tokens outside the vocabulary or past
  // the `drawn` logit rows of a step in flight, slots of adapters past `adapters_max`, and arrays
  // of inconsistent sizes. Units are checked against their pools where they are used.
  Status validate(int64_t vocabulary, const StateClasses& classes, int64_t drawn = 0,
                  int64_t adapters_max = 0) const;
};

}  // namespace banyan
