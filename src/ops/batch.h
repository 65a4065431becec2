// One step's work as plain arrays, without pointers: it can be broadcast to ranks, logged and
// replayed. Built by the engine, read by ops; reused from step to step so that its vectors keep
// their capacity.
//
// Rows are token positions to compute; consecutive rows of one sequence form a span. There is no
// difference between prefill and decode: a span of one row is what people call decode.
#pragma once

#include <cstdint>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"
#include "kernels/kernel_table.h"

namespace banyan {

// Before the step: the first `tokens` rows of page `from` go to page `to`, in every state of their
// class.
struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
  int32_t tokens = 0;
};

// Before the step: the states of slot `from` go to slot `to`.
struct SlotCopy {
  int32_t from = 0;
  int32_t to = 0;
};

struct Batch {
  // A token value <= kSampleOfRow means "what the step before drew at its logit row kSampleOfRow -
  // value", in steps that are launched before the one before is read.
  static constexpr TokenId kSampleOfRow = -1;

  // [rows]
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions;  // [position_axes, rows]; axes beyond 0 are for M-RoPE
  int position_axes = 1;
  std::vector<int32_t>
      row_parents;  // draft trees: the row that a row follows; empty: the row before
  std::vector<int32_t> embedding_rows;  // rows that take an embedding instead of a token

  // [spans]
  std::vector<SpanArgs> spans;
  std::vector<int32_t> slots;          // of the span's sequence, -1: none
  std::vector<int32_t> prompt_tokens;  // positions below take a mixer's prefill form
  std::vector<int32_t> adapters;       // -1: none

  std::vector<int32_t> page_table;  // pages of all sequences, one after the other
  // Of windowed states, in the places of page_table. A page that ends before the window of the
  // span's first row may be -1, as may every page where the model has no windowed state: it is
  // never read.
  std::vector<int32_t> window_page_table;
  std::vector<int32_t> logit_rows;  // ascending

  // What is copied within the pools: before the step, each list in its order, ...
  std::vector<PageCopy> page_copies;
  std::vector<PageCopy> window_page_copies;
  std::vector<SlotCopy> slot_copies;
  std::vector<Capture> captures;  // ... and during it; spans are not cut for them

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  void clear();

  // Refuses the fields that no kernel of this version understands, tokens outside the vocabulary or
  // beyond the `drawn` logit rows of a step in flight, and arrays that do not fit each other. Units
  // are checked against their pools where they are used.
  Status validate(int64_t vocabulary, int64_t drawn = 0) const;
};

}  // namespace banyan
