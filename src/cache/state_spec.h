// What a layer remembers about a sequence, as data. Two questions describe every state: its unit
// (does it grow by pages, or is it one slot overwritten in place?) and its reach (to resume at
// position p, how far back must it be present?).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/state_rows.h"
#include "tensor/dtype.h"

namespace banyan {

enum class StateUnit : uint8_t {
  kPage,  // page_size_tokens positions at a time
  kSlot,  // one fixed block per sequence
};

enum class StateReach : uint8_t {
  kAll,     // every position before p
  kWindow,  // the window_tokens - 1 positions before p, which p sees in addition to itself
  kPoint,   // only the state exactly at p
  kNone,    // nothing: private to a sequence, uninitialised at its start, never shared
};

// The most rows that a log of drafts has. At 0.4 of a step's time for each row (an expert model in
// which every row uses other experts), more rows hardly pay.
inline constexpr int kDraftLogRowsMax = 16;

struct StateSpec {
  std::string name = "";  // "model.layers.3.self_attn.keys"
  StateUnit unit = StateUnit::kPage;
  StateReach reach = StateReach::kAll;
  int64_t window_tokens = 0;  // with kWindow
  int lookahead_tokens = 0;   // tokens beyond a position that its entry depends on
  DType dtype = DType::kF32;
  int64_t heads = 1;  // kPage: [pages, heads, rows_per_page, width]; kSlot: [slots, heads, width]
  int64_t width = 0;
  int64_t split = 0;  // of quantised rows, as RowShape has it

  // kPage: one row for this many tokens, which divides the page size or is a multiple of it. A page
  // has a row of its own even if it is shorter than that. A copy of a page's first tokens copies
  // whole rows only, and rejected drafts may have changed the row that they ended in. So a layer
  // trusts no row that its span begins inside; it recomputes that row from states that have a row
  // for every token.
  int tokens_per_row = 1;
  // Never decides where a sequence can be resumed. Missing states read as zeros, so no token may
  // depend on them. Used for the states of a draft layer, which only affect speed.
  bool advisory = false;
  // Used to choose keys, not attended to. For reports only.
  bool index = false;
  // Its op divides the rows of a step by their positions on the host.
  bool host_plans = false;

  // kSlot: a sequence resumes from a copy only at multiples of this, which is the chunk of its
  // mixer's prefill form.
  int alignment_tokens = 1;
  // The mixer's prefill and decode forms differ in bits, so sequences never resume from the state
  // after a generated position.
  bool two_forms = false;

  // kSlot of a sequence: what draft rows would add to a state of reach kPoint, in rows of `width`
  // (kernels/kernel_table.h, DraftLog). `heads` is the number of draft rows of a sequence in a
  // step, which the engine chooses, not the layer.
  bool draft_log = false;

  // Tokens of a page that share a row.
  int64_t tokens_of_row(int64_t page_size_tokens) const {
    return std::min<int64_t>(tokens_per_row, page_size_tokens);
  }
  int64_t rows_per_page(int64_t page_size_tokens) const {
    return page_size_tokens / tokens_of_row(page_size_tokens);
  }
  size_t row_bytes() const {
    return static_cast<size_t>(state_row_bytes(dtype, {.width = width, .split = split}));
  }
  // Of one head of one unit.
  size_t head_bytes(int64_t page_size_tokens) const {
    int64_t rows = unit == StateUnit::kPage ? rows_per_page(page_size_tokens) : 1;
    return row_bytes() * static_cast<size_t>(rows);
  }
  size_t unit_bytes(int64_t page_size_tokens) const {
    return head_bytes(page_size_tokens) * static_cast<size_t>(heads);
  }
};

// Index of a state in the model's list and of its pool in StatePools.
using StateId = int;

}  // namespace banyan
