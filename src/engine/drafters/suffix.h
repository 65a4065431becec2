// Suffix decoding (Oliaro et al. 2024, arXiv:2411.04975). Earlier occurrences of the sequence's
// final tokens, in its own text and in the prefix cache, vote on the continuation. The most
// frequent one is drafted while it is likely enough to be worth a row.
//
// The radix tree is the corpus (cache/tree_text.h): prompts and outputs of other requests, running
// or ended, as long as their pages are cached. Texts never cross namespaces (adapter, salt, extra
// key), since draft speed would reveal what others wrote. Only the most recently used namespaces
// are indexed. Engine's thread only.
#pragma once

#include <memory>

#include "engine/drafters/drafter.h"

namespace banyan {

std::unique_ptr<Drafter> make_suffix_drafter();

}  // namespace banyan
