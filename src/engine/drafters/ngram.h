// Prompt lookup decoding. Proposes what followed the last occurrence of the sequence's final tokens
// in its own text or predicted output. The longest match wins, then the latest. Engine's thread
// only.
#pragma once

#include <memory>

#include "banyan/config.h"
#include "engine/drafters/drafter.h"

namespace banyan {

std::unique_ptr<Drafter> make_ngram_drafter(const EngineConfig& config);

}  // namespace banyan
