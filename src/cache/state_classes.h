// What a model's states have in common, as the engine needs to know it: which classes of units a
// sequence holds beside its pages, and at which positions it can be resumed.
#pragma once

#include <cstdint>
#include <span>

#include "cache/state_spec.h"

namespace banyan {

struct StateClasses {
  int page_size_tokens = 1;
  int64_t window_tokens = 0;  // the longest window; 0: no state has one
  bool recurrent = false;     // some state is a slot
  int resume_alignment_tokens =
      1;                     // recurrent: least common multiple of the page size and of
                             // every slot's alignment; a model without slots resumes anywhere
  bool prompt_only = false;  // some state has two forms
};

// Alignments must be positive.
StateClasses classify_states(std::span<const StateSpec> specs, int page_size_tokens);

}  // namespace banyan
