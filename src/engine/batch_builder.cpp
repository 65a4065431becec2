#include "engine/batch_builder.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

void add_row(TokenId token, int64_t position, Batch& batch) {
  batch.tokens.push_back(token);
  batch.positions.push_back(narrow<int32_t>(position));
}

// The rows of positions [first, end), along the trunk or a branch of the sequence's draft.
void add_rows(Sequence& s, int path, int64_t first, int64_t end, Batch& batch,
              std::vector<LogitRowUse>& uses) {
  std::span<const TokenId> draft = s.draft_path(path);
  for (int64_t position = first; position < end; ++position) {
    int64_t ahead = position - s.length();  // from 0 on: a draft
    TokenId token = ahead < 0 ? at(s.tokens, position) : at(draft, ahead);
    bool samples = ahead >= -1 && s.request.options.max_new_tokens > 0;
    if (samples || s.scores_prompt_at(position)) {
      batch.logit_rows.push_back(narrow<int32_t>(batch.rows()));
      uses.push_back({&s, position, token, samples, path});
    }
    add_row(token, position, batch);
  }
}

void add_span(const Sequence& s, int64_t first, int64_t count, Batch& batch) {
  auto pages = batch.tables[kPathClass].units.size();
  batch.spans.push_back({.row_begin = narrow<int32_t>(batch.rows()),
                         .row_count = narrow<int32_t>(count),
                         .first_position = narrow<int32_t>(first),
                         .page_begin = narrow<int32_t>(pages)});
  batch.adapters.push_back(s.adapter ? s.adapter->slot : -1);
  batch.prompt_tokens.push_back(narrow<int32_t>(s.prompt_tokens));
}

void append(std::span<const int32_t> units, UnitTable& table) {
  table.units.insert(table.units.end(), units.begin(), units.end());
}

// A span of its own. The trunk's rows before it are stored in its first page as well.
void add_branch(const PlannedBranch& planned, const StepPlan& plan, const StateClasses& classes,
                Batch& batch, std::vector<LogitRowUse>& uses) {
  Sequence& s = *planned.sequence;
  const Sequence::Branch& branch = at(s.draft.branches, planned.path - 1);
  const PlannedSpan& trunk = at(plan.spans, planned.span);
  SpanArgs shared = at(batch.spans, planned.span);
  add_span(s, planned.first, planned.count, batch);
  for (int c = 0; c < classes.count; ++c) {
    append(slice(s.held(c).units, 0, branch.first_page), at(batch.tables, c));
    append(at(branch.units, c), at(batch.tables, c));
  }
  add_rows(s, planned.path, planned.first, planned.end(), batch, uses);
  int64_t first = std::max(trunk.first, branch.first_page * classes.page_size_tokens);
  if (first == planned.first) return;
  batch.shared_rows.push_back({.row_begin = narrow<int32_t>(shared.row_begin + first - trunk.first),
                               .row_count = narrow<int32_t>(planned.first - first),
                               .first_position = narrow<int32_t>(first),
                               .page_begin = batch.spans.back().page_begin});
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

// With the units that the sequence holds.
void add_span(const Sequence& s, int64_t first, int64_t count, const StateClasses& classes,
              Batch& batch) {
  add_span(s, first, count, batch);
  for (int c = 0; c < classes.count; ++c) append(s.held(c).units, at(batch.tables, c));
}

}  // namespace

void build_batch(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                 std::vector<LogitRowUse>& uses) {
  batch.clear();
  uses.clear();
  for (const PlannedSpan& span : plan.spans) {
    Sequence& s = *span.sequence;
    add_span(s, span.first, span.count, classes, batch);
    add_rows(s, 0, span.first, span.end(), batch, uses);
  }
  for (const PlannedBranch& branch : plan.branches) {
    add_branch(branch, plan, classes, batch, uses);
  }
  add_drafts(plan, classes, batch);
  add_captures(plan.captures, classes, batch);
  batch.copies = plan.copies;
}

void add_hidden_rows(const StepPlan& plan, Batch& batch, std::vector<HiddenRowUse>& uses) {
  uses.clear();
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    Sequence& s = *plan.spans[i].sequence;
    const SpanArgs& span = batch.spans[i];
    for (int32_t row = 0; row < span.row_count; ++row) {
      if (!s.pools_at(span.first_position + row)) continue;
      batch.hidden_rows.push_back(span.row_begin + row);
      uses.push_back({&s, span.first_position + row});
    }
  }
}

void build_following(const StepPlan& plan, const StateClasses& classes, Batch& batch,
                     std::vector<LogitRowUse>& uses) {
  batch.clear();
  uses.clear();
  for (const PlannedSpan& span : plan.spans) {
    Sequence& s = *span.sequence;
    add_span(s, span.first, span.count, classes, batch);
    for (int64_t position = span.first; position < span.end(); ++position) {
      batch.logit_rows.push_back(narrow<int32_t>(batch.rows()));
      uses.push_back({.sequence = &s, .position = position, .samples = true});
      add_row(0, position, batch);
    }
  }
  add_drafts(plan, classes, batch);
}

void build_draft_rows(const StepPlan& plan, int64_t ahead, const StateClasses& classes,
                      Batch& batch) {
  batch.clear();
  for (const PlannedSpan& span : plan.spans) {
    add_span(*span.sequence, span.first + ahead, 1, classes, batch);
    add_row(Batch::kSampleOfRow - narrow<TokenId>(batch.rows()), span.first + ahead, batch);
  }
}

}  // namespace banyan
