#include "ops/batch.h"

#include <algorithm>

#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

Status check_spans(const Batch& b) {
  auto spans = b.spans.size();
  if (b.prompt_tokens.size() != spans || b.adapters.size() != spans) {
    return invalid_argument("batch: {} spans, {} prompt lengths, {} adapters", spans,
                            b.prompt_tokens.size(), b.adapters.size());
  }
  int64_t rows = 0;
  for (const SpanArgs& span : b.spans) {
    if (span.row_begin != rows || span.row_count <= 0 || span.first_position < 0) {
      return invalid_argument("batch: a span of {} rows from row {} and position {} after {} rows",
                              span.row_count, span.row_begin, span.first_position, rows);
    }
    rows += span.row_count;
  }
  if (rows != b.rows() || b.positions.size() != b.tokens.size()) {
    return invalid_argument("batch: {} tokens, {} positions, {} rows in spans", b.rows(),
                            b.positions.size(), rows);
  }
  return {};
}

Status check_capture(const Batch& b, const UnitTable& slots, const Capture& capture) {
  if (capture.span < 0 || capture.span >= std::ssize(b.spans)) {
    return invalid_argument("batch: a capture of span {} of {}", capture.span, b.spans.size());
  }
  auto index = as_size(capture.span);
  const SpanArgs& span = b.spans[index];
  DraftRows drafts = b.drafts.empty() ? DraftRows() : b.drafts[index];
  int32_t row = capture.position - span.first_position;
  if (row < -drafts.replayed || row >= span.row_count - drafts.count) {
    return invalid_argument("batch: a capture after position {} of a span of {} from {}",
                            capture.position, span.row_count, span.first_position);
  }
  int32_t slot = slots.units[index];
  if (slot < 0 || capture.slot < 0 || capture.slot == slot) {
    return invalid_argument("batch: a capture of slot {} in slot {}", slot, capture.slot);
  }
  return {};
}

Status check_drafts(const Batch& b, const StateClasses& classes) {
  if (b.drafts.empty()) return {};
  if (b.drafts.size() != b.spans.size()) {
    return invalid_argument("batch: {} spans, drafts of {}", b.spans.size(), b.drafts.size());
  }
  for (size_t i = 0; i < b.spans.size(); ++i) {
    const SpanArgs& span = b.spans[i];
    const auto& [count, replayed, held] = b.drafts[i];
    bool whole = held == 0 || (count == span.row_count && replayed == 0);
    bool generated = span.first_position - replayed >= (replayed > 0 ? b.prompt_tokens[i] : 0);
    if (count < 0 || replayed < 0 || held < 0 || count > span.row_count || !whole || !generated) {
      return invalid_argument(
          "batch: {} drafts of a span of {} from {} after {} replayed and {} held", count,
          span.row_count, span.first_position, replayed, held);
    }
    if (std::max<int64_t>(replayed, int64_t{held} + count) > classes.draft_rows_max) {
      return invalid_argument("batch: {} drafts after {} replayed and {} held in a log of {}",
                              count, replayed, held, classes.draft_rows_max);
    }
  }
  return {};
}

Status check_shared_rows(const Batch& b, const StateClasses& classes) {
  if (!b.shared_rows.empty() && !classes.draft_trees) {
    return unsupported("batch: a draft tree of a model that keeps more than pages of rows");
  }
  for (const SpanArgs& shared : b.shared_rows) {
    bool fits = shared.row_begin >= 0 && shared.row_count > 0 &&
                shared.row_begin + shared.row_count <= b.rows() &&
                at(b.positions, shared.row_begin) == shared.first_position;
    if (fits) continue;
    return invalid_argument("batch: {} shared rows from row {} and position {} of {} rows",
                            shared.row_count, shared.row_begin, shared.first_position, b.rows());
  }
  return {};
}

Status check_table(const Batch& b, const UnitTable& table, const UnitClass& c) {
  size_t expected = c.paged() ? b.tables[kPathClass].units.size() : b.spans.size();
  if (table.units.size() != expected) {
    return invalid_argument("batch: {} {}, expected {}", table.units.size(), describe(c), expected);
  }
  if (c.paged() && !table.captures.empty()) {
    return invalid_argument("batch: {} captures of {}", table.captures.size(), describe(c));
  }
  for (const Capture& capture : table.captures) TRY(check_capture(b, table, capture));
  return {};
}

}  // namespace

void Batch::clear() {
  tokens.clear();
  positions.clear();
  position_axes = 1;
  embedding_rows.clear();
  spans.clear();
  prompt_tokens.clear();
  drafts.clear();
  adapters.clear();
  shared_rows.clear();
  for (UnitTable& table : tables) {
    table.units.clear();
    table.captures.clear();
  }
  copies.clear();
  logit_rows.clear();
  hidden_rows.clear();
}

Status Batch::validate(int64_t vocabulary, const StateClasses& classes, int64_t drawn,
                       int64_t adapters_max) const {
  if (position_axes != 1) return unsupported("batch: {} position axes", position_axes);
  if (!embedding_rows.empty()) return unsupported("batch: embedding rows are not supported");
  for (int32_t adapter : adapters) {
    if (adapter < adapters_max) continue;
    return invalid_argument("batch: adapter {} of {}", adapter, adapters_max);
  }
  for (TokenId token : tokens) {
    if (token < 0 && kSampleOfRow - token >= drawn) {
      return invalid_argument(
          "batch: a token refers to logit row {}, but the step in flight has {}",
          kSampleOfRow - token, drawn);
    }
    if (token >= vocabulary) {
      return invalid_argument("token {} is outside the vocabulary of {} tokens", token, vocabulary);
    }
  }
  TRY(check_spans(*this));
  TRY(check_drafts(*this, classes));
  TRY(check_shared_rows(*this, classes));
  for (int c = 0; c < classes.count; ++c) {
    TRY(check_table(*this, at(tables, c), classes[c]));
  }
  return {};
}

}  // namespace banyan
