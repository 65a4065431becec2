// The source of a TokenConstraint, as data, so that another process can build the same constraint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "banyan/grammar_source.h"
#include "banyan/token.h"

namespace banyan {

struct ThinkingRules;  // src/llm/thinking_budget.h
struct TokenRules;     // src/server/fields/token_filter.h

// Combines min_new_tokens and ignore_eos with a grammar, which takes precedence: before
// `tokens_min` tokens none of `stops` is drawn while anything else may follow.
struct EarlyStops {
  int64_t tokens_min = 0;
  std::vector<TokenId> stops;
};

// The innermost part is a grammar or token rules, never both; a limit on reasoning tokens may
// surround it.
struct ConstraintSource {
  std::optional<GrammarSource> grammar = {};
  EarlyStops early = {};                               // with a grammar
  std::shared_ptr<const TokenRules> tokens = {};       // null: none
  std::shared_ptr<const ThinkingRules> thinking = {};  // null: none
};

}  // namespace banyan
