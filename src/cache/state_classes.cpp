#include "cache/state_classes.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace banyan {

StateClasses classify_states(std::span<const StateSpec> specs, int page_size_tokens) {
  StateClasses classes{.page_size_tokens = page_size_tokens};
  int alignment = page_size_tokens;
  for (const StateSpec& spec : specs) {
    CHECK(spec.alignment_tokens > 0, "{}: alignment of {}", spec.name, spec.alignment_tokens);
    if (spec.reach == StateReach::kWindow) {
      classes.window_tokens = std::max<int64_t>(classes.window_tokens, spec.window_tokens);
    }
    if (spec.unit == StateUnit::kSlot) {
      classes.recurrent = true;
      alignment = std::lcm(alignment, spec.alignment_tokens);
    }
    classes.prompt_only |= spec.two_forms;
  }
  if (classes.recurrent) classes.resume_alignment_tokens = alignment;
  return classes;
}

}  // namespace banyan
