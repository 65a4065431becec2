// Limits the number of reasoning tokens: when the budget is spent, the end of the reasoning is
// forced.
//
// The rule depends only on the output's tokens, so results are the same in any batch, with or
// without drafts. The ending is forced by masks with a single token; the same tokens are offered as
// a draft.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "banyan/constraint_source.h"
#include "banyan/request.h"
#include "banyan/status.h"
#include "llm/messages/reasoning.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// Immutable; shared by the samples of a request. The tokenizer must outlive it.
struct ThinkingRules {
  const Tokenizer* tokenizer = nullptr;
  std::string begin, end;  // the markers of reasoning
  std::string call;  // the marker of a tool call, which also ends reasoning; empty: it does not
  std::vector<TokenId> ending;  // the forced tokens
  int64_t tokens_max = 0;       // between the markers
  bool inside = false;          // the prompt has opened the reasoning
  bool again = false;           // reasoning may occur again later, not only at the start
};

// The properties of an answer that determine the rules.
struct ThinkingAnswer {
  ReasoningStart start = ReasoningStart::kMark;
  bool may_call = false;  // tool calls may follow the reasoning
  std::string call = {};  // as ThinkingRules::call
};
// Null: such an answer has no reasoning.
Result<std::shared_ptr<const ThinkingRules>> thinking_rules(const Tokenizer& tokenizer,
                                                            const ReasoningFormat& format,
                                                            const ThinkingAnswer& answer,
                                                            int64_t tokens_max);

// Only the engine's thread calls it. It never forces what `inner` (null: no constraint) forbids.
class ThinkingBudget final : public TokenConstraint {
 public:
  ThinkingBudget(std::shared_ptr<const ThinkingRules> rules, std::shared_ptr<TokenConstraint> inner,
                 int64_t vocabulary);

  void fill_mask(std::span<uint32_t> mask) override;
  void accept(TokenId token) override;
  std::span<const TokenId> draft_tokens() override;
  void rollback(int tokens) override;
  bool describe(ConstraintSource& source) const override;

 private:
  enum class Phase : uint8_t { kStart, kInside, kOutside, kOver };
  struct State {
    Phase phase = Phase::kStart;
    uint32_t forced = 0;  // number of ending tokens produced
    int64_t tokens = 0;   // reasoning tokens so far
    std::string tail;     // end of the text, which may hold the start of a marker
  };

  bool ends_now() const;
  void follow(std::string text);
  void follow_inside(std::string text);

  const std::shared_ptr<const ThinkingRules> rules_;
  const std::shared_ptr<TokenConstraint> inner_;
  const int64_t vocabulary_;
  State state_;
  std::vector<State> before_;  // the state before each token, for rollback
};

}  // namespace banyan
