// What a layer remembers about a sequence, as data. Two questions describe every state: its unit
// (does it grow by pages, or is it one slot overwritten in place?) and its reach (to resume at
// position p, how far back must it be present?).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace banyan {

enum class StateUnit : uint8_t {
  kPage,  // page_size_tokens rows at a time
  kSlot,  // one fixed block per sequence
};

enum class StateReach : uint8_t {
  kAll,     // every position before p
  kWindow,  // the window_tokens - 1 positions before p: what p sees beside itself
  kPoint,   // only the state exactly at p
};

struct StateSpec {
  std::string name = "";  // "model.layers.3.self_attn.keys"
  StateUnit unit = StateUnit::kPage;
  StateReach reach = StateReach::kAll;
  int64_t window_tokens = 0;  // with kWindow
  int lookahead_tokens = 0;   // tokens beyond a position that its entry depends on
  DType dtype = DType::kF32;
  int64_t heads = 1;  // kPage: [pages, heads, page_size, width]; kSlot: [slots, heads, width]
  int64_t width = 0;

  // kSlot: a sequence resumes from a copy of it only at multiples of this, which is the chunk of
  // its mixer's prefill form.
  int alignment_tokens = 1;
  // The mixer's prefill and decode forms differ in bits, so what a generated position left behind
  // is never resumed from.
  bool two_forms = false;

  // kPage: of one token; kSlot: of one sequence.
  size_t bytes() const { return static_cast<size_t>(heads * width) * dtype_bytes(dtype); }
};

// Index of a state in the model's list and of its pool in StatePools.
using StateId = int;

}  // namespace banyan
