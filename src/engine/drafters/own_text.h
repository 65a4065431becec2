// Lookup in a sequence's own text, through an index that the sequence owns. Engine's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/signed.h"
#include "engine/drafters/drafter.h"
#include "engine/drafters/text_index.h"

namespace banyan {

// The last tokens of the task's sequence, followed by its forced tokens.
class DraftContext {
 public:
  explicit DraftContext(const DraftTask& task);
  std::span<const TokenId> tokens() const { return slice(tokens_, 0, count_); }

 private:
  std::array<TokenId, TextIndex::kContextMax> tokens_;
  int64_t count_ = 0;
};

// Returns the index of the sequence's tokens and predicted output, updated. The prediction counts
// as newer than the prompt.
const TextIndex& own_text(Sequence& s);

// How far a match of this many tokens is trusted: the longer the more, from 0 to 1.
float match_confidence(int64_t length);

// The token `ahead` places after a match. Positions past the end of the text continue with the
// forced and drafted tokens, so a match may overlap its own continuation.
TokenId own_token(const TextIndex& text, std::span<const TokenId> forced,
                  std::span<const TokenId> drafted, int64_t match_end, int64_t ahead);

}  // namespace banyan
