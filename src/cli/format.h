// Numbers for people, and JSON for programs.
#pragma once

#include <cstdint>
#include <string>

#include "banyan/llm.h"
#include "base/json_text.h"
#include "base/units.h"

namespace banyan::cli {

std::string format_digits(int64_t count);  // "1,234,567"; not negative

// The bytes a token stands for as text, whatever its spelling in the vocabulary; part of a
// character becomes U+FFFD. Null without a tokenizer.
Json token_text(const Llm& llm, TokenId id);

// Of every layer {layer, tokens, active_mean, experts, identities}.
Json expert_counts_json(const std::vector<ExpertCounts>& layers);

}  // namespace banyan::cli
