#include "cache/kv_announcer.h"

#include <utility>

#include "base/signed.h"

namespace banyan {
namespace {

uint8_t class_bit(int unit_class) {
  return static_cast<uint8_t>(1U << unsigned(unit_class));
}

}  // namespace

KvAnnouncer::KvAnnouncer(RadixTree& tree, std::optional<StateDigest> states, uint64_t epoch,
                         size_t events)
    : tree_(tree), log_(epoch, events), keys_(std::move(states)) {
  visit_pages([&](RadixNode& node) {
    node.announced = 0;
    gained(node);
  });
  tree.watch(this);
}

// Parents come before their children.
template <class Visit>
void KvAnnouncer::visit_pages(Visit visit) {
  std::vector<RadixNode*> left;
  tree_.for_each_root(
      [&](const RadixNode& root) { left.push_back(const_cast<RadixNode*>(&root)); });
  int64_t page = tree_.classes().page_size_tokens;
  while (!left.empty()) {
    RadixNode* node = left.back();
    left.pop_back();
    bool full = node->parent != nullptr && std::ssize(node->tokens) == page;
    if (full) visit(*node);
    for (RadixNode& child : node->children) left.push_back(&child);
  }
}

void KvAnnouncer::gained(RadixNode& node) {
  cleared_ = false;
  const StateClasses& classes = tree_.classes();
  for (int c = 0; c < classes.count; ++c) {
    bool known = (node.announced & class_bit(c)) != 0;
    if (known || !classes[c].decides() || node.units[c].unit < 0) continue;
    node.announced |= class_bit(c);
    tell(KvOperation::kStored, node, c);
  }
}

void KvAnnouncer::tell(KvOperation operation, RadixNode& node, int unit_class) {
  KvEvent event = {.sequence = log_.next(),
                   .operation = operation,
                   .unit = {.page = keys_.of(node), .unit_class = narrow<uint8_t>(unit_class)},
                   .parent = keys_.of(*node.parent)};
  log_.add(operation, event.unit, event.parent);
  if (observer_) observer_(event, node.tokens, node.parent->parent == nullptr);
}

bool KvAnnouncer::loses(RadixNode& node, int unit_class) {
  if ((node.announced & class_bit(unit_class)) == 0) return false;
  node.announced &= static_cast<uint8_t>(~class_bit(unit_class));
  if (cleared_) return false;
  tell(KvOperation::kRemoved, node, unit_class);
  return false;
}

void KvAnnouncer::clears() {
  KvEvent event = {.sequence = log_.next(), .operation = KvOperation::kCleared};
  log_.add(event.operation, {}, {});
  if (observer_) observer_(event, {}, false);
  cleared_ = true;
}

std::vector<KvUnit> KvAnnouncer::snapshot() {
  std::vector<KvUnit> units;
  visit_pages([&](RadixNode& node) {
    for (int c = 0; c < tree_.classes().count; ++c) {
      if ((node.announced & class_bit(c)) == 0) continue;
      units.push_back({.page = keys_.of(node), .unit_class = narrow<uint8_t>(c)});
    }
  });
  return units;
}

}  // namespace banyan
