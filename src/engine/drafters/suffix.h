// Suffix decoding (Oliaro et al. 2024, arXiv:2411.04975). Earlier occurrences of the sequence's
// final tokens, in its own text and in recent texts of the same namespace, vote on the
// continuation. The most frequent one is drafted while it is likely enough to be worth a row.
//
// Texts never cross namespaces (adapter, salt, extra key), since draft speed would reveal what
// others wrote. Each namespace keeps its two newest blocks of text; only the most recently used
// namespaces are kept. Engine's thread only.
#pragma once

#include <memory>

#include "engine/drafters/drafter.h"

namespace banyan {

std::unique_ptr<Drafter> make_suffix_drafter();

}  // namespace banyan
