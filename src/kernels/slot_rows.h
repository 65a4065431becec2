// Which rows of a span over states in slots are a prompt's, and how many a host launches kernels
// for where the arrays of SlotSpans are in a device's memory.
//
// Included by files of several instruction sets, so everything is static (see x86/vec_avx512.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"

namespace banyan {

// The first rows of a span: those of the prompt that are not drafts.
static constexpr int64_t prompt_rows(const SpanArgs& span, int64_t prompt_tokens, int64_t drafts) {
  int64_t rows = prompt_tokens - span.first_position, known = span.row_count - drafts;
  return rows < 0 ? 0 : rows < known ? rows : known;
}
static constexpr int64_t prompt_rows(const SlotSpans& spans, int64_t s) {
  int64_t drafts = spans.drafts != nullptr ? spans.drafts[s].count : 0;
  return prompt_rows(spans.spans[s], spans.prompt_tokens[s], drafts);
}

// Counts the rows of spans in the host's memory; no drafts if empty.
[[maybe_unused]] static SlotRows count_rows(std::span<const SpanArgs> spans,
                                            std::span<const int32_t> prompt_tokens,
                                            std::span<const DraftRows> drafts, int64_t chunk) {
  SlotRows rows = {.prompt_chunks = 0};
  for (size_t i = 0; i < spans.size(); ++i) {
    int64_t of_drafts = drafts.empty() ? 0 : drafts[i].count;
    int64_t prompt = prompt_rows(spans[i], prompt_tokens[i], of_drafts);
    if (prompt < spans[i].row_count) rows.has_others = true;
    if (prompt == 0) continue;
    if (rows.prompt_chunks == 0) rows.first_prompt = static_cast<int64_t>(i);
    rows.prompts_end = static_cast<int64_t>(i) + 1;
    rows.prompt_chunks += (prompt + chunk - 1) / chunk;
  }
  return rows;
}

}  // namespace banyan
