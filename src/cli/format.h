// Formats numbers for people, and JSON for programs.
#pragma once

#include <cstdint>
#include <string>

#include "banyan/llm.h"
#include "base/json_text.h"
#include "base/units.h"

namespace banyan::cli {

std::string format_digits(int64_t count);  // "1,234,567"; not negative

// The token's bytes as text, not its spelling in the vocabulary; an incomplete character becomes
// U+FFFD. Null without a tokenizer.
Json token_text(const Llm& llm, TokenId id);

// {layer, tokens, active_mean, experts, identities} per layer.
Json expert_counts_json(const std::vector<ExpertCounts>& layers);

}  // namespace banyan::cli
