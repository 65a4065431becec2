#include "ops/batch.h"

#include <algorithm>

#include "base/error.h"

namespace banyan {

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
  logit_rows.clear();
  captures.clear();
}

Status Batch::validate(int64_t vocabulary) const {
  auto used = [](int32_t id) { return id >= 0; };
  if (position_axes != 1) return unsupported("batch: {} position axes", position_axes);
  if (!row_parents.empty()) return unsupported("batch: draft trees");
  if (!embedding_rows.empty()) return unsupported("batch: embedding rows");
  if (!captures.empty()) return unsupported("batch: state captures");
  if (std::ranges::any_of(adapters, used)) return unsupported("batch: adapters");
  if (std::ranges::any_of(slots, used)) return unsupported("batch: state slots");
  for (TokenId token : tokens) {
    if (token <= kSampleOfRow) return unsupported("batch: tokens of a step in flight");
    if (token >= vocabulary) {
      return invalid_argument("token {} is not in the vocabulary of {}", token, vocabulary);
    }
  }
  return {};
}

}  // namespace banyan
