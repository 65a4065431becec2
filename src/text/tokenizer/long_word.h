// Merges long words in n log n time for any set of merges.
#pragma once

#include <vector>

#include "text/tokenizer/bpe.h"

namespace banyan {

// Applies `merges` to `symbols` in place: lowest rank first, leftmost first among equals.
void merge_long_word(const MergeTable& merges, std::vector<TokenId>& symbols);

}  // namespace banyan
