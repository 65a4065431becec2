#include "engine/tiers/context.h"

namespace banyan {

const PageKey& NodeKeys::of(RadixNode& node) {
  static const PageKey kUnknown;
  path_.clear();
  RadixNode* known = &node;
  for (; known->key == kUnknown && known->parent != nullptr; known = known->parent) {
    path_.push_back(known);
  }
  if (known->key == kUnknown) known->key = keys_.root(states_, *known->name_space);
  for (; !path_.empty(); path_.pop_back()) {
    RadixNode* next = path_.back();
    next->key = keys_.page(next->parent->key, next->tokens);
  }
  return node.key;
}

}  // namespace banyan
