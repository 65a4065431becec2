#include "text/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "unicode/unicode.h"

namespace banyan {
namespace {

// The start of the character that ends at `end` > 0.
size_t previous(std::string_view text, size_t end) {
  do {
    --end;
  } while (end > 0 && (text[end] & 0xc0) == 0x80);
  return end;
}

bool ends_in_word(std::string_view text) {
  return !text.empty() &&
         unicode::is(unicode::decode(text.data() + previous(text, text.size())).code,
                     unicode::kWord);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && unicode::is(unicode::decode(text.data()).code, unicode::kWord);
}

}  // namespace

int32_t AddedTokenMatcher::child_of(int32_t node, unsigned char byte) const {
  if (node == 0) return roots_[byte];
  int32_t child = nodes_[node].child;
  while (child >= 0 && nodes_[child].byte != byte) {
    child = nodes_[child].sibling;
  }
  return child;
}

Status AddedTokenMatcher::add(const AddedToken& token, std::string_view pattern) {
  if (pattern.empty()) return {};
  pattern_bytes_ += pattern.size();
  if (pattern_bytes_ > kPatternBytesMax) {
    return exhausted("the added tokens have more than {} bytes", kPatternBytesMax);
  }
  int32_t node = 0;
  for (size_t i = pattern.size(); i-- > 0;) {
    const auto byte = static_cast<unsigned char>(pattern[i]);
    int32_t child = child_of(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({.byte = byte});
      if (node == 0) {
        roots_[byte] = child;
      } else {
        Node& parent = nodes_[node];
        nodes_[child].sibling = std::exchange(parent.child, child);
      }
    }
    node = child;
  }
  if (nodes_[node].token >= 0) return {};
  nodes_[node].token = static_cast<int32_t>(tokens_.size());
  tokens_.push_back(token);
  sizes_.push_back(static_cast<uint32_t>(pattern.size()));
  return {};
}

// Breadth first, so that a node's links refer to finished nodes.
void AddedTokenMatcher::link() {
  std::vector<int32_t> order;
  order.reserve(nodes_.size());
  for (int32_t root : roots_) {
    if (root >= 0) order.push_back(root);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    Node& node = nodes_[order[i]];
    node.inner = node.token >= 0 ? node.token : nodes_[node.shorter].inner;
    for (int32_t child = node.child; child >= 0;) {
      Node& next = nodes_[child];
      next.shorter = step(node.shorter, next.byte);
      order.push_back(child);
      child = next.sibling;
    }
  }
}

int32_t AddedTokenMatcher::step(int32_t node, unsigned char byte) const {
  for (;;) {
    if (const int32_t child = child_of(node, byte); child >= 0) return child;
    if (node == 0) return 0;
    node = nodes_[node].shorter;
  }
}

std::vector<AddedTokenMatcher::Found> AddedTokenMatcher::find_all(std::string_view text) const {
  std::vector<Found> found;
  int32_t node = 0;
  for (size_t at = text.size(); at-- > 0;) {
    node = step(node, static_cast<unsigned char>(text[at]));
    const int32_t token = nodes_[node].inner;
    if (token >= 0) found.push_back({static_cast<uint32_t>(at), token});
  }
  return found;
}

void AddedTokenMatcher::split(std::string_view text, bool specials,
                              std::vector<Section>& sections) const {
  auto add = [&](size_t begin, size_t end, TokenId id) {
    sections.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), id});
  };
  size_t copied = 0, passed = 0;
  size_t spaces_end = 0;  // end of the run of spaces that the last rstrip token scanned
  const std::vector<Found> all = tokens_.empty() ? std::vector<Found>() : find_all(text);
  for (size_t i = all.size(); i-- > 0;) {
    size_t begin = all[i].begin;
    if (begin < passed) continue;
    const AddedToken& token = tokens_[all[i].token];
    size_t end = begin + sizes_[all[i].token];
    passed = end;  // a discarded match is skipped all the same
    if (token.special && !specials) continue;
    if (token.single_word &&
        (ends_in_word(text.substr(0, begin)) || starts_with_word(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) {
      while (
          begin > copied &&
          unicode::is(unicode::decode(text.data() + previous(text, begin)).code, unicode::kSpace)) {
        begin = previous(text, begin);
      }
      begin = std::max(begin, copied);
    }
    if (token.rstrip) {
      end = std::max(end, spaces_end);
      while (end < text.size() &&
             unicode::is(unicode::decode(text.data() + end).code, unicode::kSpace)) {
        end += unicode::decode(text.data() + end).size;
      }
      spaces_end = end;
    }
    if (copied < begin) add(copied, begin, -1);
    add(begin, end, token.id);
    copied = end;
  }
  if (copied != text.size()) add(copied, text.size(), -1);
}

}  // namespace banyan
