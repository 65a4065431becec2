#include "ops/batch.h"

#include <algorithm>

#include "base/error.h"

namespace banyan {
namespace {

Status check_spans(const Batch& b) {
  auto spans = b.spans.size();
  if (b.slots.size() != spans || b.prompt_tokens.size() != spans || b.adapters.size() != spans) {
    return invalid_argument("batch: {} spans, {} slots, {} prompt lengths, {} adapters", spans,
                            b.slots.size(), b.prompt_tokens.size(), b.adapters.size());
  }
  if (b.window_page_table.size() != b.page_table.size()) {
    return invalid_argument("batch: {} pages, {} window pages", b.page_table.size(),
                            b.window_page_table.size());
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

Status check_captures(const Batch& b) {
  for (const Capture& capture : b.captures) {
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
    if (b.slots[index] < 0 || capture.slot < 0 || capture.slot == b.slots[index]) {
      return invalid_argument("batch: a capture of slot {} in slot {}", b.slots[index],
                              capture.slot);
    }
  }
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
  slots.clear();
  prompt_tokens.clear();
  adapters.clear();
  page_table.clear();
  window_page_table.clear();
  logit_rows.clear();
  page_copies.clear();
  window_page_copies.clear();
  slot_copies.clear();
  captures.clear();
}

Status Batch::validate(int64_t vocabulary, int64_t drawn) const {
  auto used = [](int32_t id) { return id >= 0; };
  if (position_axes != 1) return unsupported("batch: {} position axes", position_axes);
  if (!row_parents.empty()) return unsupported("batch: draft trees");
  if (!embedding_rows.empty()) return unsupported("batch: embedding rows");
  if (std::ranges::any_of(adapters, used)) return unsupported("batch: adapters");
  for (TokenId token : tokens) {
    if (token < 0 && kSampleOfRow - token >= drawn) {
      return invalid_argument("batch: the token of logit row {}, of {} in flight",
                              kSampleOfRow - token, drawn);
    }
    if (token >= vocabulary) {
      return invalid_argument("token {} is not in the vocabulary of {}", token, vocabulary);
    }
  }
  TRY(check_spans(*this));
  return check_captures(*this);
}

}  // namespace banyan
