#include "server/fields/token_filter.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kBadWordsMax = 256;
constexpr size_t kBadWordBytesMax = 256;
constexpr size_t kAllowedMax = size_t{1} << 20;

// The tokens of the word at the start of a text and, if equally many, after a space.
Result<std::vector<std::vector<TokenId>>> spellings(const Tokenizer& tokenizer,
                                                    std::string_view word) {
  word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
  constexpr EncodeOptions kInside = {.add_special_tokens = false};
  std::vector<std::vector<TokenId>> ways;
  ways.push_back(TRY(tokenizer.encode(word, kInside)));
  std::vector<TokenId> spaced = TRY(tokenizer.encode(" " + std::string(word), kInside));
  bool another = !spaced.empty() && spaced.size() == ways[0].size() && spaced[0] != ways[0][0];
  if (another) ways.push_back(std::move(spaced));
  std::erase_if(ways, [](const auto& way) { return way.empty(); });
  return ways;
}

}  // namespace

TokenWishes read_token_wishes(RequestFields& fields) {
  TokenWishes wishes{.allowed_token_ids = fields.token_ids("allowed_token_ids", kAllowedMax),
                     .bad_words = fields.strings("bad_words", kBadWordsMax, kBadWordBytesMax)};
  const Json* allowed = fields.find("allowed_token_ids");
  if (allowed != nullptr && wishes.allowed_token_ids.empty()) {
    fields.fail("allowed_token_ids", " is empty: nothing could be drawn");
  }
  return wishes;
}

Result<std::shared_ptr<const TokenRules>> token_rules(const TokenWishes& wishes,
                                                      const Tokenizer* tokenizer,
                                                      int64_t vocabulary) {
  auto rules = std::make_shared<TokenRules>();
  for (TokenId id : wishes.allowed_token_ids) {
    if (id >= vocabulary) {
      return invalid_argument("allowed_token_ids: {} is beyond the vocabulary of {} tokens", id,
                              vocabulary);
    }
  }
  rules->allowed = wishes.allowed_token_ids;
  if (!wishes.bad_words.empty() && tokenizer == nullptr) {
    return unsupported("bad_words: the model has no tokenizer");
  }
  for (const std::string& word : wishes.bad_words) {
    for (auto& way : TRY(spellings(*tokenizer, word))) rules->banned.push_back(std::move(way));
  }
  return rules;
}

void TokenFilter::fill_allowed(std::span<uint32_t> mask) const {
  if (!rules_->allowed.empty()) {
    std::ranges::fill(mask, 0u);
    for (TokenId id : rules_->allowed) mask[as_size(id) / 32] |= 1u << (id % 32);
    return;
  }
  std::ranges::fill(mask, ~0u);
  if (vocabulary_ % 32 != 0) mask.back() = (1u << (vocabulary_ % 32)) - 1;
}

void TokenFilter::fill_mask(std::span<uint32_t> mask) {
  fill_allowed(mask);
  bool banned = false;
  for (const std::vector<TokenId>& sequence : rules_->banned) {
    auto before = std::span(sequence).first(sequence.size() - 1);
    if (written_.size() < before.size()) continue;
    auto last = std::span(written_).last(before.size());
    if (!std::ranges::equal(last, before) || sequence.back() >= vocabulary_) continue;
    mask[as_size(sequence.back()) / 32] &= ~(1u << (sequence.back() % 32));
    banned = true;
  }
  bool nothing = banned && std::ranges::all_of(mask, [](uint32_t word) { return word == 0; });
  if (nothing) fill_allowed(mask);
}

void TokenFilter::rollback(int tokens) {
  CHECK(tokens >= 0 && tokens <= std::ssize(written_));
  written_.resize(written_.size() - as_size(tokens));
}

}  // namespace banyan
