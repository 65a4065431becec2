#include "engine/batch_builder.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

void add_rows(const PlannedSpan& span, Batch& batch, std::vector<LogitRowUse>& uses) {
  Sequence& s = *span.sequence;
  for (int64_t position = span.first; position < span.end(); ++position) {
    int64_t ahead = position - s.length();  // from 0 on: a draft
    TokenId token = ahead < 0 ? at(s.tokens, position) : at(s.draft.tokens, ahead);
    bool samples = ahead >= -1 && s.request.options.max_new_tokens > 0;
    if (samples || s.scores_prompt_at(position)) {
      batch.logit_rows.push_back(narrow<int32_t>(batch.rows()));
      uses.push_back({&s, position, token, samples});
    }
    batch.tokens.push_back(token);
    batch.positions.push_back(narrow<int32_t>(position));
  }
}

void add_units(const Sequence& s, const StateClasses& classes, Batch& batch) {
  for (int c = 0; c < classes.count; ++c) {
    const std::vector<int32_t>& units = s.held(c).units;
    std::vector<int32_t>& table = at(batch.tables, c).units;
    table.insert(table.end(), units.begin(), units.end());
  }
}

void add_captures(std::span<const PlannedCapture> captures, const StateClasses& classes,
                  Batch& batch) {
  for (const PlannedCapture& capture : captures) {
    for (int c = 0; c < classes.count; ++c) {
      if (capture.slots[c] < 0) continue;
      at(batch.tables, c)
          .captures.push_back({.span = narrow<int32_t>(capture.span),
                               .position = narrow<int32_t>(capture.position),
                               .slot = capture.slots[c]});
    }
  }
}

// For models that log drafts, in steps that use the log.
void add_drafts(const StepPlan& plan, const StateClasses& classes, Batch& batch) {
  auto unused = [](const PlannedSpan& span) {
    return span.drafts == 0 && span.replayed == 0 && span.held == 0;
  };
  if (!classes.logs_drafts() || std::ranges::all_of(plan.spans, unused)) return;
  for (const PlannedSpan& span : plan.spans) {
    batch.drafts.push_back({.count = narrow<int32_t>(span.drafts),
                            .replayed = narrow<int32_t>(span.replayed),
                            .held = narrow<int32_t>(span.held)});
  }
}

}  // namespace

void build_batch(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                 std::vector<LogitRowUse>& uses) {
  batch.clear();
  uses.clear();
  for (const PlannedSpan& span : plan.spans) {
    const Sequence& s = *span.sequence;
    auto pages = batch.tables[kPathClass].units.size();
    batch.spans.push_back({.row_begin = narrow<int32_t>(batch.rows()),
                           .row_count = narrow<int32_t>(span.count),
                           .first_position = narrow<int32_t>(span.first),
                           .page_begin = narrow<int32_t>(pages)});
    batch.adapters.push_back(-1);
    batch.prompt_tokens.push_back(narrow<int32_t>(s.prompt_tokens));
    add_units(s, classes, batch);
    add_rows(span, batch, uses);
  }
  add_drafts(plan, classes, batch);
  add_captures(plan.captures, classes, batch);
  batch.copies = plan.copies;
}

}  // namespace banyan
