#include "ops/sparse.h"

#include <algorithm>

#include "base/check.h"

namespace banyan {

SelectedKeys select_keys(Step& s, const SpanList& spans, int64_t heads, const SelectionRule& rule,
                         FunctionRef<void(const ScoreBlock&)> score) {
  CHECK(rule.forced_first + rule.forced_last <= rule.top_k, "{} of {} forced",
        rule.forced_first + rule.forced_last, rule.top_k);
  int64_t lists = s.batch.rows() * heads, rows = 0, entries = 1;
  for (const SpanArgs& span : spans.host) {
    rows += span.row_count;
    entries = std::max<int64_t>(entries,
                                (span.first_position + span.row_count - 1) / rule.entry_tokens + 1);
  }
  auto* runs = s.arena.allocate_array<KeyRun>(lists * rule.top_k);
  auto* run_counts = s.arena.allocate_array<int32_t>(lists);
  auto* key_counts = s.arena.allocate_array<int32_t>(lists);
  size_t mark = s.arena.mark();
  auto* scores = s.arena.allocate_array<float>(kRowScoresMax);
  int64_t rows_max = kRowScoresMax / (heads * entries);
  CHECK(rows_max > 0, "{} entries of {} heads", entries, heads);
  for (int64_t begin = 0; begin < rows; begin += rows_max) {
    RowPart part = {begin, std::min(rows - begin, rows_max)};
    score({part, scores, entries});
    s.kernels.select_keys({.launch = s.launch,
                           .scores = scores,
                           .entries_max = entries,
                           .heads = heads,
                           .rule = rule,
                           .spans = spans.device,
                           .span_count = spans.count(),
                           .part = part,
                           .runs = runs,
                           .run_counts = run_counts,
                           .key_counts = key_counts,
                           .runs_max = rule.top_k});
  }
  s.arena.rewind(mark);
  return {.runs = runs,
          .run_counts = run_counts,
          .key_counts = key_counts,
          .heads = heads,
          .runs_max = rule.top_k,
          .alignment = rule.entry_tokens,
          .keys_max = rule.top_k * rule.entry_tokens};
}

}  // namespace banyan
