// One step's work as plain arrays, without pointers: it can be broadcast to ranks, logged and
// replayed. Built by the engine, read by ops; reused from step to step so that its vectors keep
// their capacity.
//
// Rows are token positions to compute; consecutive rows of one sequence form a span. There is no
// difference between prefill and decode: a span of one row is what people call decode.
#pragma once

#include <cstdint>
#include <vector>

#include "banyan/status.h"
#include "banyan/token.h"
#include "cache/state_pools.h"
#include "kernels/kernel_table.h"

namespace banyan {

// Where the states of one class are.
struct UnitTable {
  // Pages: those of all spans' sequences, one after the other, at the places that SpanArgs names. A
  // page that ends before the window of the span's first row may be -1: it is never read. Slots:
  // one for each span.
  std::vector<int32_t> units;
  std::vector<Capture> captures;  // slots: copies made during the step; no span is cut for them
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
  std::vector<int32_t> prompt_tokens;  // positions below take a mixer's prefill form
  std::vector<int32_t> adapters;       // -1: none

  PerClass<UnitTable> tables;    // by the model's StateClasses; those beyond its count are empty
  std::vector<UnitCopy> copies;  // made before the step, in this order

  std::vector<int32_t> logit_rows;  // ascending

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  void clear();

  // Refuses the fields that no kernel of this version understands, tokens outside the vocabulary or
  // beyond the `drawn` logit rows of a step in flight, and arrays that do not fit each other. Units
  // are checked against their pools where they are used.
  Status validate(int64_t vocabulary, const StateClasses& classes, int64_t drawn = 0) const;
};

}  // namespace banyan
