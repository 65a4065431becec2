#include "grammar/run/token_vocabulary.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "base/check.h"
#include "base/signed.h"
#include "grammar/regex/regex.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

void set_bit(std::vector<uint32_t>& mask, size_t word_begin, uint32_t token) {
  mask[word_begin + token / 32] |= 1u << (token % 32);
}

Dfa must_compile(std::string_view pattern) {
  Budget budget({.compile_s = 1e6});
  auto dfa = dfa_of_regex(pattern, budget);
  CHECK(dfa.has_value(), "{}", dfa.error().message);
  return *std::move(dfa);
}

constexpr std::string_view kStringCharacter =
    R"re((?:[^\x00-\x1f"\\]|\\["\\/bfnrt]|\\u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7])re"
    R"re([0-9a-fA-F]{2}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))re";

}  // namespace

std::string special_token_text(std::string_view name) {
  std::string text(1, kSpecialBegin);
  text += name;
  return text + kSpecialEnd;
}

const std::shared_ptr<const Dfa>& json_string_dfa() {
  static const auto kDfa = [] {
    Budget budget({.compile_s = 1e6});
    Dfa characters = must_compile(std::string(kStringCharacter) + "*");
    return std::make_shared<const Dfa>(*mark_character_ends(characters, characters, budget));
  }();
  return kDfa;
}

TokenTrie::TokenTrie(std::vector<std::pair<std::string, uint32_t>> texts) {
  std::sort(texts.begin(), texts.end());
  std::vector<uint32_t> path;  // nodes of the previous string
  const std::string* last = nullptr;
  for (const auto& [text, value] : texts) {
    if (text.empty()) continue;
    size_t common = 0;
    if (last != nullptr) {
      common =
          std::mismatch(text.begin(), text.end(), last->begin(), last->end()).first - text.begin();
    }
    for (size_t i = common; i < path.size(); ++i) {
      nodes_[path[i]].end = static_cast<uint32_t>(nodes_.size());
    }
    path.resize(common);
    for (size_t i = common; i < text.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({static_cast<uint8_t>(text[i]), 0, static_cast<uint16_t>(i + 1), 0});
      values_begin_.push_back(static_cast<uint32_t>(values_.size()));
    }
    nodes_[path.back()].marks = kHasValues;
    values_.push_back(value);
    values_begin_.back() = static_cast<uint32_t>(values_.size());
    depth_max_ = std::max(depth_max_, text.size());
    last = &text;
  }
  for (uint32_t node : path) nodes_[node].end = static_cast<uint32_t>(nodes_.size());
}

void TokenTrie::mark_within(int bit, const Dfa& texts) {
  CHECK(texts.states() <= 32, "{} states", texts.states());
  // By node, a bit for each state from which the whole subtree can be read. Children come later.
  std::vector<uint32_t> readable(nodes_.size());
  std::vector<uint32_t> height(nodes_.size(), 0);
  for (size_t i = nodes_.size(); i-- > 0;) {
    readable[i] = ~uint32_t{1};
    for (uint32_t child = static_cast<uint32_t>(i) + 1; child < nodes_[i].end;
         child = nodes_[child].end) {
      for (uint32_t s = 1; s < texts.states(); ++s) {
        uint32_t to = texts.step(s, nodes_[child].byte);
        if ((readable[child] >> to & 1) == 0) readable[i] &= ~(1u << s);
      }
      height[i] = std::max(height[i], height[child] + 1);
    }
    bool within = (readable[i] >> texts.start() & 1) != 0 && height[i] <= kSliceBytesMax;
    if (within) nodes_[i].marks |= static_cast<uint8_t>(1u << bit);
  }
}

std::shared_ptr<const TokenVocabulary> TokenVocabulary::make(const Tokenizer& tokenizer,
                                                             std::vector<TokenId> ends,
                                                             int mask_tokens) {
  std::vector<std::string> bytes(as_size(tokenizer.vocab_size()));
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    bool special = tokenizer.is_special(id);
    std::string text = special ? std::string(tokenizer.token(id)) : tokenizer.token_bytes(id);
    if (text.empty()) continue;
    if (!special && text.find(kSpecialBegin) != text.npos) continue;
    bytes[id] = special ? special_token_text(text) : std::move(text);
  }
  return make(std::move(bytes), std::move(ends), mask_tokens);
}

std::shared_ptr<const TokenVocabulary> TokenVocabulary::make(std::vector<std::string> bytes,
                                                             std::vector<TokenId> ends,
                                                             int mask_tokens) {
  std::shared_ptr<TokenVocabulary> vocabulary(new TokenVocabulary());
  vocabulary->bytes_ = std::move(bytes);
  vocabulary->build(std::move(ends), mask_tokens);
  return vocabulary;
}

void TokenVocabulary::build(std::vector<TokenId> ends, int mask_tokens) {
  static std::atomic<uint64_t> last_id = 0;
  id_ = ++last_id;
  mask_tokens_ = mask_tokens > 0 ? mask_tokens : static_cast<int>(bytes_.size());
  mask_words_ = (as_size(mask_tokens_) + 31) / 32;
  if (std::ssize(bytes_) > mask_tokens_) {
    bytes_.resize(as_size(mask_tokens_));
  }
  for (TokenId end : ends) {
    if (end >= 0 && end < mask_tokens_) ends_.push_back(end);
  }
  std::vector<std::pair<std::string, uint32_t>> texts;
  for (size_t id = 0; id < bytes_.size(); ++id) {
    bool usable = !bytes_[id].empty() && bytes_[id].size() <= UINT16_MAX;
    if (usable) texts.emplace_back(bytes_[id], static_cast<uint32_t>(id));
  }
  trie_ = TokenTrie(std::move(texts));
  build_slices();
  build_string_tables();
}

void TokenVocabulary::build_slices() {
  for (const auto& texts : token_slices()) {
    Slice slice;
    slice.mask.assign(mask_words_, 0);
    std::vector<std::pair<std::string, uint32_t>> longer;
    std::array<std::vector<std::pair<std::string, uint32_t>>, kByteGroups> others;
    for (uint32_t id = 0; id < bytes_.size(); ++id) {
      const std::string& bytes = bytes_[id];
      if (bytes.empty() || bytes.size() > UINT16_MAX) continue;
      uint32_t s = texts->start();
      size_t i = 0;
      for (; i < bytes.size(); ++i) {
        s = texts->step(s, static_cast<uint8_t>(bytes[i]));
        if (s == Dfa::kDead) break;
      }
      if (i >= kSliceBytesMax) longer.emplace_back(bytes, id);
      if (i < bytes.size()) {
        others[byte_group(static_cast<uint8_t>(bytes[i]))].emplace_back(bytes, id);
      } else if (i <= kSliceBytesMax) {
        set_bit(slice.mask, 0, id);
      } else {
        slice.long_tokens.push_back(id);
      }
    }
    slice.long_texts = TokenTrie(std::move(longer));
    for (size_t g = 0; g < kByteGroups; ++g) slice.others[g] = TokenTrie(std::move(others[g]));
    slices_.push_back(std::move(slice));
  }
  std::vector<TokenTrie*> tries = {&trie_};
  for (Slice& slice : slices_) {
    for (TokenTrie& others : slice.others) tries.push_back(&others);
  }
  for (TokenTrie* trie : tries) {
    for (size_t i = 0; i < slices_.size(); ++i) {
      trie->mark_within(static_cast<int>(i) + 1, *token_slices()[i]);
    }
  }
}

void TokenVocabulary::build_string_tables() {
  const Dfa& dfa = *json_string_dfa();
  std::vector<std::vector<uint32_t>> inner;  // by characters
  std::vector<std::pair<std::string, uint32_t>> rests;
  for (uint32_t id = 0; id < bytes_.size(); ++id) {
    std::string_view bytes = bytes_[id];
    if (bytes.empty() || bytes.size() > UINT16_MAX) continue;
    uint32_t s = dfa.start(), characters = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == '"' && i > 0) {
        rests.emplace_back(bytes.substr(i), static_cast<uint32_t>(exits_.size()));
        bool ends = s != Dfa::kDead && dfa.character_end(s);
        exits_.push_back({static_cast<TokenId>(id), static_cast<uint32_t>(i),
                          ends ? characters : Exit::kNoString});
      }
      s = dfa.step(s, static_cast<uint8_t>(bytes[i]));
      characters += s != Dfa::kDead && dfa.character_end(s) ? 1 : 0;
    }
    if (s == Dfa::kDead) continue;
    if (!dfa.character_end(s)) ++characters;
    if (inner.size() <= characters) inner.resize(characters + 1);
    inner[characters].push_back(id);
  }
  exit_trie_ = TokenTrie(std::move(rests));
  if (inner.empty()) inner.resize(1);
  string_masks_.assign(inner.size() * mask_words_, 0);
  for (size_t n = 0; n < inner.size(); ++n) {
    size_t row = n * mask_words_;
    if (n > 0) {
      std::copy_n(string_masks_.begin() + row - mask_words_, mask_words_,
                  string_masks_.begin() + row);
    }
    for (uint32_t id : inner[n]) set_bit(string_masks_, row, id);
  }
}

std::span<const uint32_t> TokenVocabulary::string_mask(uint32_t characters) const {
  size_t rows = string_masks_.size() / std::max<size_t>(mask_words_, 1);
  size_t row = std::min<size_t>(characters, rows - 1);
  return {string_masks_.data() + row * mask_words_, mask_words_};
}

std::string_view TokenVocabulary::bytes_of(TokenId token) const {
  size_t i = token;
  return token >= 0 && i < bytes_.size() ? std::string_view(bytes_[i]) : std::string_view();
}

bool TokenVocabulary::ends_output(TokenId token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

TokenId TokenVocabulary::find_special(std::string_view name) const {
  std::string text = special_token_text(name);
  auto it = std::find(bytes_.begin(), bytes_.end(), text);
  return it == bytes_.end() ? -1 : static_cast<TokenId>(it - bytes_.begin());
}

size_t TokenVocabulary::bytes() const {
  size_t total = trie_.bytes() + exit_trie_.bytes();
  for (const Slice& slice : slices_) {
    total += (slice.mask.size() + slice.long_tokens.size()) * 4 + slice.long_texts.bytes();
    for (const TokenTrie& others : slice.others) total += others.bytes();
  }
  for (const std::string& b : bytes_) total += sizeof b + (b.size() > 15 ? b.size() : 0);
  return total + string_masks_.size() * 4 + exits_.size() * sizeof(Exit);
}

}  // namespace banyan
