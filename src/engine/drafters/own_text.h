// Lookups in the text of a sequence itself, which lies in an index that the sequence owns.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/drafters/drafter.h"
#include "engine/drafters/text_index.h"

namespace banyan {

// The last tokens of the task's sequence and of what is forced to follow it.
class DraftContext {
 public:
  explicit DraftContext(const DraftTask& task);
  std::span<const TokenId> tokens() const {
    return std::span(tokens_).first(static_cast<size_t>(count_));
  }

 private:
  std::array<TokenId, static_cast<size_t>(TextIndex::kContextMax)> tokens_;
  int64_t count_ = 0;
};

// The index of all of the sequence's tokens, and of the output that its request predicts, which
// counts as newer than the prompt.
const TextIndex& own_text(Sequence& s);

// The token `ahead` places after a match in the sequence's own text, where the text goes on with
// what is forced and with what has been proposed so far: so a match may overlap what it continues.
TokenId own_token(const TextIndex& text, const DraftTask& task, int64_t match_end, int64_t ahead);

}  // namespace banyan
