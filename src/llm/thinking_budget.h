// A bound on the tokens of reasoning: once they are spent, the text that ends the reasoning is all
// that may come.
//
// It follows the output's tokens alone, so a request's tokens are the same whatever is served with
// it, with drafts and without. What forces the text is a mask of one token; the same tokens are
// proposed as a draft.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"
#include "llm/messages/reasoning.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {

// Immutable; shared by the samples of a request. The tokenizer must outlive it.
struct ThinkingRules {
  const Tokenizer* tokenizer = nullptr;
  std::string begin, end;       // the marks of reasoning
  std::string call;             // the mark of a call, which ends reasoning too; empty: none does
  std::vector<TokenId> ending;  // what is forced
  int64_t tokens_max = 0;       // between the marks
  bool inside = false;          // the prompt has opened the reasoning
  bool again = false;           // reasoning may come more than once, not only at the beginning
};

// What of an answer the rules follow from.
struct ThinkingAnswer {
  ReasoningStart start = ReasoningStart::kMark;
  bool may_call = false;  // tools, after the reasoning
  std::string call = {};  // as ThinkingRules::call
};
// Null: an answer that begins so has no reasoning.
Result<std::shared_ptr<const ThinkingRules>> thinking_rules(const Tokenizer& tokenizer,
                                                            const ReasoningFormat& format,
                                                            const ThinkingAnswer& answer,
                                                            int64_t tokens_max);

// Driven by the engine's thread. What `inner` (null: anything) does not allow is never forced.
class ThinkingBudget final : public TokenConstraint {
 public:
  ThinkingBudget(std::shared_ptr<const ThinkingRules> rules, std::shared_ptr<TokenConstraint> inner,
                 int64_t vocabulary);

  void fill_mask(std::span<uint32_t> mask) override;
  void accept(TokenId token) override;
  std::span<const TokenId> draft_tokens() override;
  void rollback(int tokens) override;

 private:
  enum class Phase : uint8_t { kStart, kInside, kOutside, kOver };
  struct State {
    Phase phase = Phase::kStart;
    uint32_t forced = 0;  // tokens of the ending that have come
    int64_t tokens = 0;   // of reasoning so far
    std::string tail;     // the end of the text, in which a mark may have begun
  };

  bool ends_now() const;
  void follow(std::string text);
  void follow_inside(std::string text);

  const std::shared_ptr<const ThinkingRules> rules_;
  const std::shared_ptr<TokenConstraint> inner_;
  const int64_t vocabulary_;
  State state_;
  std::vector<State> before_;  // each token
};

}  // namespace banyan
