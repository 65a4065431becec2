#include "llm/thinking_budget.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "base/space.h"
#include "llm/messages/marks.h"

namespace banyan {
namespace {

// Harmony's messages: reasoning is one of them, and may occur again between calls.
constexpr std::string_view kAnalysis = "<|channel|>analysis<|message|>", kMessageEnd = "<|end|>",
                           kFinal = "<|start|>assistant<|channel|>final<|message|>";

// Whether `text` ends within a character.
bool is_cut(std::string_view text) {
  constexpr size_t kCharacterBytesMax = 4;
  for (size_t n = 1; n <= std::min(text.size(), kCharacterBytesMax); ++n) {
    auto byte = static_cast<uint8_t>(text[text.size() - n]);
    if ((byte & 0xc0u) == 0x80u) continue;
    size_t bytes = byte < 0xc0u ? 1 : byte < 0xe0u ? 2 : byte < 0xf0u ? 3 : 4;
    return bytes > n;
  }
  return false;
}

std::string last_bytes(std::string text, size_t count) {
  if (text.size() > count) text.erase(0, text.size() - count);
  return text;
}

}  // namespace

Result<std::shared_ptr<const ThinkingRules>> thinking_rules(const Tokenizer& tokenizer,
                                                            const ReasoningFormat& format,
                                                            const ThinkingAnswer& answer,
                                                            int64_t tokens_max) {
  if (answer.start == ReasoningStart::kOutside) return nullptr;
  bool harmony = format.begin.empty();
  std::string ending(harmony ? kMessageEnd : format.end);
  if (harmony && !answer.may_call) ending += kFinal;
  auto rules = std::make_shared<ThinkingRules>(ThinkingRules{
      .tokenizer = &tokenizer,
      .begin = std::string(harmony ? kAnalysis : format.begin),
      .end = std::string(harmony ? kMessageEnd : format.end),
      .call = harmony ? std::string() : answer.call,
      .ending = TRY(tokenizer.encode(ending, {.add_special_tokens = false})),
      .tokens_max = tokens_max,
      .inside = answer.start == ReasoningStart::kInside,
      .again = harmony,
  });
  if (rules->ending.empty()) return unsupported("no tokens spell {}", ending);
  return rules;
}

ThinkingBudget::ThinkingBudget(std::shared_ptr<const ThinkingRules> rules,
                               std::shared_ptr<TokenConstraint> inner, int64_t vocabulary)
    : rules_(std::move(rules)), inner_(std::move(inner)), vocabulary_(vocabulary) {
  if (rules_->inside) {
    state_.phase = Phase::kInside;
  } else if (rules_->again) {
    state_.phase = Phase::kOutside;
  }
}

bool ThinkingBudget::ends_now() const {
  if (state_.forced > 0) return state_.forced < rules_->ending.size();
  return state_.phase == Phase::kInside && state_.tokens >= rules_->tokens_max &&
         !is_cut(state_.tail);
}

void ThinkingBudget::fill_mask(std::span<uint32_t> mask) {
  if (inner_) {
    inner_->fill_mask(mask);
  } else {
    std::ranges::fill(mask, ~0u);
    if (vocabulary_ % 32 != 0) mask.back() = (1u << (vocabulary_ % 32)) - 1;
  }
  if (!ends_now()) return;
  auto token = as_size(rules_->ending[state_.forced]);
  uint32_t bit = 1u << (token % 32);
  if (token / 32 >= mask.size() || (mask[token / 32] & bit) == 0) return;
  std::ranges::fill(mask, 0u);
  mask[token / 32] = bit;
}

void ThinkingBudget::accept(TokenId token) {
  if (inner_) inner_->accept(token);
  before_.push_back(state_);
  bool forced = ends_now() && token == rules_->ending[state_.forced];
  state_.forced = forced ? state_.forced + 1 : 0;
  if (state_.forced == rules_->ending.size()) state_.forced = 0;
  if (state_.phase == Phase::kOver) return;
  if (state_.phase == Phase::kInside) ++state_.tokens;
  follow(std::exchange(state_.tail, {}) + rules_->tokenizer->token_bytes(token));
}

// `text`: the tail plus the text after it.
void ThinkingBudget::follow(std::string text) {
  if (state_.phase == Phase::kInside) return follow_inside(std::move(text));
  const std::string& mark = rules_->begin;
  if (state_.phase == Phase::kStart) {
    text.erase(0, std::min(text.find_first_not_of(kSpace), text.size()));
    if (mark.starts_with(text) && text != mark) {
      state_.tail = std::move(text);
      return;
    }
    state_.phase = text.starts_with(mark) ? Phase::kInside : Phase::kOver;
    if (state_.phase == Phase::kInside) follow(text.substr(mark.size()));
    return;
  }
  size_t at = text.find(mark);
  if (at == text.npos) {
    state_.tail = last_bytes(std::move(text), mark.size() - 1);
    return;
  }
  state_.phase = Phase::kInside;
  follow(text.substr(at + mark.size()));
}

void ThinkingBudget::follow_inside(std::string text) {
  std::array<std::string_view, 2> marks = {rules_->end, rules_->call};
  FoundMark found = find_mark(text, std::span(marks).first(rules_->call.empty() ? 1 : 2));
  if (found.mark.empty()) {
    state_.tail = last_bytes(std::move(text), std::max(marks[0].size(), marks[1].size()) - 1);
    return;
  }
  state_.phase = rules_->again ? Phase::kOutside : Phase::kOver;
  if (rules_->again) follow(text.substr(found.at + found.mark.size()));
}

std::span<const TokenId> ThinkingBudget::draft_tokens() {
  if (ends_now()) return std::span(rules_->ending).subspan(state_.forced);
  return inner_ ? inner_->draft_tokens() : std::span<const TokenId>();
}

bool ThinkingBudget::describe(ConstraintSource& source) const {
  source.thinking = rules_;
  return inner_ == nullptr || inner_->describe(source);
}

void ThinkingBudget::rollback(int tokens) {
  CHECK(tokens >= 0 && tokens <= std::ssize(before_));
  if (inner_) inner_->rollback(tokens);
  if (tokens == 0) return;
  size_t left = before_.size() - as_size(tokens);
  state_ = std::move(before_[left]);
  before_.resize(left);
}

}  // namespace banyan
