// One span of FollowDraftsArgs, for every table: where a sequence continues after a step that
// nobody has read. For host and device.
#pragma once

#include "kernels/kernel_table.h"

namespace banyan {

// How many of the span's drafts equal what the rows before them drew, up to the first that does
// not.
constexpr int32_t accepted_drafts(const FollowDraftsArgs& a, const SpanArgs& span) {
  int32_t accepted = 0;
  while (accepted + 1 < span.row_count &&
         a.tokens[span.row_begin + accepted + 1] == a.drawn[span.row_begin + accepted].token) {
    ++accepted;
  }
  return accepted;
}

// The token that a row gets from a draw: 0 if there is none that the model knows.
constexpr TokenId followed_token(const DrawResult& drawn, int64_t vocabulary) {
  return drawn.token >= 0 && drawn.token < vocabulary ? drawn.token : 0;
}

constexpr void follow_span(const FollowDraftsArgs& a, int64_t number) {
  const SpanArgs& before = a.before[number];
  int32_t accepted = accepted_drafts(a, before);
  int32_t last = before.row_begin + accepted;
  int32_t next = before.first_position + accepted + 1;
  SpanArgs& after = a.after[number];
  after.first_position = next + static_cast<int32_t>(a.offset);
  if (a.last_rows != nullptr) a.last_rows[number] = last;
  if (a.drafts != nullptr) a.drafts[number].replayed = accepted;
  for (int32_t i = 0; i < after.row_count; ++i) {
    int32_t row = after.row_begin + i, position = after.first_position + i;
    if (a.positions != nullptr) a.positions[row] = position;
    if (a.draws != nullptr) a.draws[row].noise.position = position + a.ahead;
    if (a.next_tokens == nullptr) continue;
    const DrawResult& drawn = i == 0 ? a.drawn[last] : a.drafted[(i - 1) * a.spans + number];
    a.next_tokens[row] = followed_token(drawn, a.vocabulary);
  }
}

}  // namespace banyan
