#include "text/added_tokens.h"

#include <algorithm>

#include "text/unicode.h"

namespace banyan {
namespace {

bool is(char32_t code, uint32_t mask) {
  return (unicode::classes()[code] & mask) != 0;
}

// The start of the character that ends at `end` > 0.
size_t previous(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (text[end] & 0xc0) == 0x80);
  return end;
}

bool ends_in_word(std::string_view text) {
  return !text.empty() &&
         is(unicode::decode(text.data() + previous(text, text.size())).code, unicode::kWord);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is(unicode::decode(text.data()).code, unicode::kWord);
}

}  // namespace

int32_t AddedTokenMatcher::child_of(int32_t node, unsigned char byte) const {
  if (node == 0) return roots_[byte];
  for (const auto& [edge, child] : nodes_[static_cast<size_t>(node)].children) {
    if (edge == byte) return child;
  }
  return -1;
}

void AddedTokenMatcher::add(const AddedToken& token, std::string_view pattern) {
  if (pattern.empty()) return;
  int32_t node = 0;
  for (char c : pattern) {
    const auto byte = static_cast<unsigned char>(c);
    int32_t child = child_of(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_.emplace_back();
      if (node == 0) {
        roots_[byte] = child;
      } else {
        nodes_[static_cast<size_t>(node)].children.emplace_back(byte, child);
      }
    }
    node = child;
  }
  if (nodes_[static_cast<size_t>(node)].token >= 0) return;
  nodes_[static_cast<size_t>(node)].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
}

const AddedToken* AddedTokenMatcher::match(std::string_view text, size_t at, size_t& end) const {
  const AddedToken* longest = nullptr;
  int32_t node = 0;
  while (at < text.size()) {
    node = child_of(node, static_cast<unsigned char>(text[at++]));
    if (node < 0) break;
    const int32_t token = nodes_[static_cast<size_t>(node)].token;
    if (token < 0) continue;
    longest = &tokens_[static_cast<size_t>(token)];
    end = at;
  }
  return longest;
}

void AddedTokenMatcher::split(std::string_view text, bool specials,
                              std::vector<Section>& sections) const {
  auto add = [&](size_t begin, size_t end, TokenId id) {
    sections.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), id});
  };
  size_t copied = 0;
  for (size_t at = 0; !tokens_.empty() && at < text.size();) {
    size_t begin = at, end = 0;
    if (roots_[static_cast<unsigned char>(text[at])] < 0) {
      ++at;
      continue;
    }
    const AddedToken* token = match(text, at, end);
    if (token == nullptr) {
      ++at;
      continue;
    }
    at = end;  // a match that is discarded has still been passed
    if (token->special && !specials) continue;
    if (token->single_word &&
        (ends_in_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token->lstrip) {
      while (begin > copied &&
             is(unicode::decode(text.data() + previous(text, begin)).code, unicode::kSpace)) {
        begin = previous(text, begin);
      }
      begin = std::max(begin, copied);
    }
    while (token->rstrip && end < text.size() &&
           is(unicode::decode(text.data() + end).code, unicode::kSpace)) {
      end += unicode::decode(text.data() + end).size;
    }
    if (copied < begin) add(copied, begin, -1);
    add(begin, end, token->id);
    copied = end;
  }
  if (copied != text.size()) add(copied, text.size(), -1);
}

}  // namespace banyan
