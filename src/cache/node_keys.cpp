#include "cache/node_keys.h"

#include <cstring>

namespace banyan {

PageKey key_of_hash(const PageHash& hash) {
  PageKey key;
  static_assert(sizeof hash == sizeof key.bytes);
  std::memcpy(key.bytes.data(), &hash, sizeof hash);
  return key;
}

const PageKey& NodeKeys::of(RadixNode& node) {
  static const PageKey kUnknown;
  if (!states_) return node.key = key_of_hash(node.hash);
  path_.clear();
  RadixNode* known = &node;
  for (; known->key == kUnknown && known->parent != nullptr; known = known->parent) {
    path_.push_back(known);
  }
  if (known->key == kUnknown) known->key = keys_.root(*states_, *known->name_space);
  for (; !path_.empty(); path_.pop_back()) {
    RadixNode* next = path_.back();
    next->key = keys_.page(next->parent->key, next->tokens);
  }
  return node.key;
}

}  // namespace banyan
