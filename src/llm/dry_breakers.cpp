#include "llm/dry_breakers.h"

#include <algorithm>
#include <string_view>

#include "base/signed.h"

namespace banyan {
namespace {

constexpr size_t kTailTokensMax = 20;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

class BreakerFinder {
 public:
  explicit BreakerFinder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
    for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
      texts_.push_back(tokenizer.token_bytes(id));
      if (texts_.back().size() == 1) byte_tokens_.try_emplace(texts_.back()[0], id);
    }
  }

  void add(std::string_view breaker) {
    for (TokenId id = 0; id < tokenizer_.vocab_size(); ++id) {
      std::string_view text = texts_[as_size(id)];
      if (text.find(breaker) != text.npos) {
        add_tail(id, {});
        continue;
      }
      for (size_t at = text.find(breaker[0]); at != text.npos; at = text.find(breaker[0], at + 1)) {
        std::string_view end = text.substr(at);
        if (breaker.starts_with(end)) add_tail(id, tail_of(breaker.substr(end.size())));
      }
    }
  }

  DryBreakers take() { return std::move(breakers_); }

 private:
  void add_tail(TokenId head, std::vector<TokenId> tail) {
    std::vector<std::vector<TokenId>>& tails = breakers_[head];
    if (std::ranges::find(tails, tail) == tails.end()) tails.push_back(std::move(tail));
  }

  // `rest` may start within a character.
  std::vector<TokenId> tail_of(std::string_view rest) const {
    std::vector<TokenId> tail;
    while (!rest.empty() && continues_character(rest[0])) {
      auto token = byte_tokens_.find(rest[0]);
      if (token != byte_tokens_.end()) tail.push_back(token->second);
      rest.remove_prefix(1);
    }
    auto ids = tokenizer_.encode(rest, {.add_special_tokens = false, .parse_special = false});
    if (ids) tail.insert(tail.end(), ids->begin(), ids->end());
    while (tail.size() > kTailTokensMax) tail.pop_back();
    return tail;
  }

  const Tokenizer& tokenizer_;
  std::vector<std::string> texts_;  // by token
  std::unordered_map<char, TokenId> byte_tokens_;
  DryBreakers breakers_;
};

}  // namespace

const std::vector<std::string>& default_dry_breakers() {
  static const std::vector<std::string> kBreakers = {"\n", ":", "\"", "*"};
  return kBreakers;
}

DryBreakers make_dry_breakers(const Tokenizer& tokenizer, const std::vector<std::string>& strings) {
  BreakerFinder finder(tokenizer);
  for (const std::string& breaker : strings) finder.add(breaker);
  return finder.take();
}

std::shared_ptr<const DryBreakers> DryBreakerCache::find(const Tokenizer& tokenizer,
                                                         const std::vector<std::string>& strings) {
  {
    std::lock_guard lock(mutex_);
    auto known = std::ranges::find(entries_, strings, &Entry::first);
    if (known != entries_.end()) {
      std::rotate(known, known + 1, entries_.end());
      return entries_.back().second;
    }
  }
  auto made = std::make_shared<const DryBreakers>(make_dry_breakers(tokenizer, strings));
  std::lock_guard lock(mutex_);
  if (entries_.size() == kEntriesMax) entries_.erase(entries_.begin());
  entries_.emplace_back(strings, made);
  return made;
}

}  // namespace banyan
