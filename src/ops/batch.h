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

// Copy the state as it is after `position` of span `span` into snapshot slot `slot`.
struct Capture {
  int32_t span = 0;
  int32_t position = 0;
  int32_t slot = 0;
};

struct Batch {
  // A token value <= kSampleOfRow means "what the previous step sampled at its logit row
  // kSampleOfRow - value", for steps that are launched before the one before is read.
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
  std::vector<int32_t> slots;          // recurrent state of the span's sequence, -1: none
  std::vector<int32_t> prompt_tokens;  // positions below take a mixer's prefill form
  std::vector<int32_t> adapters;       // -1: none

  std::vector<int32_t> page_table;  // pages of all sequences, one after the other
  std::vector<int32_t> logit_rows;  // ascending
  std::vector<Capture> captures;

  int64_t rows() const { return static_cast<int64_t>(tokens.size()); }
  void clear();

  // Refuses the fields that no kernel of this version understands, and tokens outside the
  // vocabulary.
  Status validate(int64_t vocabulary) const;
};

}  // namespace banyan
