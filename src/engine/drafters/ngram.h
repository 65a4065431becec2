// Prompt lookup: what followed the last occurrence of the sequence's last tokens in its own text
// (and in the output that its request predicts). The longest occurrence wins, then the latest.
#pragma once

#include <memory>

#include "banyan/config.h"
#include "engine/drafters/drafter.h"

namespace banyan {

std::unique_ptr<Drafter> make_ngram_drafter(const EngineConfig& config);

}  // namespace banyan
