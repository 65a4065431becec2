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
  auto index = static_cast<size_t>(capture.span);
  const SpanArgs& span = b.spans[index];
  if (capture.position < span.first_position ||
      capture.position - span.first_position >= span.row_count) {
    return invalid_argument("batch: a capture after position {} of a span of {} from {}",
                            capture.position, span.row_count, span.first_position);
  }
  int32_t slot = slots.units[index];
  if (slot < 0 || capture.slot < 0 || capture.slot == slot) {
    return invalid_argument("batch: a capture of slot {} in slot {}", slot, capture.slot);
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
  row_parents.clear();
  embedding_rows.clear();
  spans.clear();
  prompt_tokens.clear();
  adapters.clear();
  for (UnitTable& table : tables) {
    table.units.clear();
    table.captures.clear();
  }
  copies.clear();
  logit_rows.clear();
}

Status Batch::validate(int64_t vocabulary, const StateClasses& classes, int64_t drawn) const {
  auto used = [](int32_t id) { return id >= 0; };
  if (position_axes != 1) return unsupported("batch: {} position axes", position_axes);
  if (!row_parents.empty()) return unsupported("batch: draft trees are not supported");
  if (!embedding_rows.empty()) return unsupported("batch: embedding rows are not supported");
  if (std::ranges::any_of(adapters, used)) return unsupported("batch: adapters are not supported");
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
  for (int c = 0; c < classes.count; ++c) {
    TRY(check_table(*this, at(tables, c), classes[c]));
  }
  return {};
}

}  // namespace banyan
