#include "engine/batch_builder.h"

namespace banyan {
namespace {

void add_rows(const PlannedSpan& span, Batch& batch, std::vector<LogitRowUse>& uses) {
  Sequence& s = *span.sequence;
  for (int64_t position = span.first; position < span.end(); ++position) {
    int64_t ahead = position - s.length();  // from 0 on: a draft
    TokenId token = ahead < 0 ? s.tokens[static_cast<size_t>(position)]
                              : s.draft.tokens[static_cast<size_t>(ahead)];
    bool samples = ahead >= -1 && s.request.options.max_new_tokens > 0;
    if (samples || s.scores_prompt_at(position)) {
      batch.logit_rows.push_back(static_cast<int32_t>(batch.rows()));
      uses.push_back({&s, position, token, samples});
    }
    batch.tokens.push_back(token);
    batch.positions.push_back(static_cast<int32_t>(position));
  }
}

}  // namespace

void build_batch(const StepPlan& plan, Batch& batch, std::vector<LogitRowUse>& uses) {
  batch.clear();
  uses.clear();
  for (const PlannedSpan& span : plan.spans) {
    const Sequence& s = *span.sequence;
    batch.spans.push_back({.row_begin = static_cast<int32_t>(batch.rows()),
                           .row_count = static_cast<int32_t>(span.count),
                           .first_position = static_cast<int32_t>(span.first),
                           .page_begin = static_cast<int32_t>(batch.page_table.size())});
    batch.slots.push_back(s.slot);
    batch.adapters.push_back(-1);
    batch.prompt_tokens.push_back(static_cast<int32_t>(s.prompt_tokens));
    batch.page_table.insert(batch.page_table.end(), s.pages.begin(), s.pages.end());
    batch.window_page_table.insert(batch.window_page_table.end(), s.window_pages.begin(),
                                   s.window_pages.end());
    add_rows(span, batch, uses);
  }
  for (const auto* captures : {&plan.captures, &plan.before_drafts}) {
    for (const PlannedCapture& capture : *captures) {
      batch.captures.push_back({.span = static_cast<int32_t>(capture.span),
                                .position = static_cast<int32_t>(capture.position),
                                .slot = capture.slot});
    }
  }
  batch.page_copies = plan.copies.pages;
  batch.window_page_copies = plan.copies.window_pages;
  batch.slot_copies = plan.copies.slots;
}

}  // namespace banyan
