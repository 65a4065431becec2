// What a host knows of the rows of SlotSpans, whose arrays may be in a device's memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"

namespace banyan {

// Counts the chunks of prompts and the other rows of spans in the host's memory; no drafts if
// empty.
inline void count_rows(SlotSpans& to, std::span<const SpanArgs> spans,
                       std::span<const int32_t> prompt_tokens, std::span<const DraftRows> drafts,
                       int64_t chunk) {
  to.prompt_chunks = to.later_rows = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    int64_t rows = spans[i].row_count, known = rows - (drafts.empty() ? 0 : drafts[i].count);
    int64_t left = int64_t{prompt_tokens[i]} - spans[i].first_position;
    int64_t prompt = std::clamp<int64_t>(left, 0, known);
    to.prompt_chunks += (prompt + chunk - 1) / chunk;
    to.later_rows += rows - prompt;
  }
}

}  // namespace banyan
