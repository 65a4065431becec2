#include "engine/tiers/writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr int64_t kWritingBytesMax = int64_t{1} << 26;
constexpr size_t kWritesMax = 128;
// Units near eviction are the next 1/kNearEviction of all units; with few units, the next
// 1/kNearOfFew, but at most kFewNear. They are collected again after 1/kLookAgain of that many
// changes. Writing earlier than necessary would keep units in memory and in the store at once, for
// which a small store has no room.
constexpr int64_t kNearEviction = 16, kNearOfFew = 4, kFewNear = 64, kLookAgain = 8;

int64_t near_eviction(int64_t units) {
  return std::max(units / kNearEviction, std::min(units / kNearOfFew, kFewNear));
}

// The number of evicted pages whose first use is remembered, per page in memory.
constexpr int64_t kSeenPages = 16;
constexpr int64_t kIdleNs = kNsPerS;
// Pause after a failed write.
constexpr int64_t kPauseNs = kNsPerS;

}  // namespace

Writer::Policy Writer::policy_of(const CacheStorageConfig& config) {
  if (config.write_policy == "write_through") return Policy::kThrough;
  return config.write_policy == "write_back" ? Policy::kBack : Policy::kSelective;
}

Writer::Writer(TierContext& context, const CacheStorageConfig& config)
    : context_(context),
      policy_(policy_of(config)),
      enabled_(!context.store.computes()),
      seen_(policy_ == Policy::kSelective ? kSeenPages * context.tree.use(kPathClass).total : 0),
      writes_(kWritesMax) {
  for (size_t i = kWritesMax; i > 0; --i) free_.push_back(narrow<int32_t>(i - 1));
  for (Write& write : writes_) {
    write.tokens.reserve(as_size(context.classes().page_size_tokens));
  }
  if (enabled_) context.tree.watch(this);
}

Writer::~Writer() {
  if (enabled_) context_.tree.unwatch(this);
  queue_.clear();
}

// ---- What the tree tells -----------------------------------------------------------------------

void Writer::gained(RadixNode& node) {
  ++changes_;
  if (policy_ == Policy::kSelective && !node.reused)
    node.reused = seen_.has(context_.keys.of(node));
  if (policy_ == Policy::kThrough || (policy_ == Policy::kSelective && node.reused)) queue(node);
}

bool Writer::loses(RadixNode& node, int unit_class) {
  ++changes_;
  if ((node.writing & class_bit(unit_class)) == 0) {
    if (!unwritten(node, unit_class)) return false;
    ++context_.stats.evicted_unwritten;
    bool once = policy_ == Policy::kSelective && unit_class == kPathClass && !node.reused;
    if (once) seen_.note(context_.keys.of(node));
    return false;
  }
  for (Write& write : writes_) {
    if (write.node != &node || write.unit_class != unit_class) continue;
    write.node = nullptr;
    write.kept = true;
    ++kept_;
    node.writing = static_cast<uint8_t>(node.writing & ~class_bit(unit_class));
    return true;
  }
  CHECK(false, "a unit is written by no write");
}

void Writer::goes(RadixNode& node) {
  if (node.to_write.is_linked()) queue_.erase(queue_.iterator_to(node));
}

void Writer::reused(RadixNode& node) {
  used_.clear();
  for (RadixNode* n = &node; n->parent != nullptr; n = n->parent) {
    for (int c = 0; c < context_.classes().count; ++c) {
      bool used = n == &node || context_.classes()[c].paged();
      if (used && (n->stored & class_bit(c)) != 0) used_.push_back({context_.keys.of(*n), c});
    }
  }
  if (!used_.empty()) context_.store.touch(used_);
  for (RadixNode* n = &node; n->parent != nullptr; n = n->parent) {
    n->reused = true;
    n->offered = 0;
  }
  if (policy_ == Policy::kSelective && node.parent != nullptr) queue(node);
}

// ---- Queueing ----------------------------------------------------------------------------------

bool Writer::unwritten(const RadixNode& node, int unit_class) const {
  bool passes = node.passing && !context_.classes()[unit_class].paged();
  return !passes && context_.keeps(unit_class) && node.units[unit_class].unit >= 0 &&
         ((node.stored | node.writing) & class_bit(unit_class)) == 0 &&
         std::ssize(node.tokens) == context_.classes().page_size_tokens;
}

// A store may have evicted a record since its last use. So with write_back it is asked again before
// memory evicts the unit, and what it still has counts as just written.
bool Writer::to_offer(const RadixNode& node, int unit_class) const {
  if (unwritten(node, unit_class)) return true;
  uint8_t bit = class_bit(unit_class);
  return policy_ == Policy::kBack && context_.keeps(unit_class) &&
         node.units[unit_class].unit >= 0 && (node.stored & bit) != 0 &&
         ((node.offered | node.writing) & bit) == 0;
}

void Writer::queue(RadixNode& node) {
  if (!enabled_) return;
  bool any = false;
  for (int c = 0; c < context_.classes().count; ++c) any |= to_offer(node, c);
  if (!any || node.to_write.is_linked()) return;
  chain_.assign(1, &node);
  for (RadixNode* n = node.parent; n->parent != nullptr; n = n->parent) {
    if (under_way(*n) || n->to_write.is_linked()) break;
    chain_.push_back(n);
  }
  for (; !chain_.empty(); chain_.pop_back()) queue_.push_back(*chain_.back());
}

void Writer::queue_near_eviction() {
  for (int c = 0; c < context_.classes().count; ++c) {
    if (!context_.keeps(c)) continue;
    RadixTree::Use use = context_.tree.use(c);
    int64_t left = near_eviction(use.total) - use.free;
    if (left <= 0) continue;
    context_.tree.visit_oldest(c, [&](RadixNode& node) {
      queue(node);
      return --left > 0;
    });
  }
}

// Used twice, or held.
void Writer::queue_hot() {
  context_.tree.visit_nodes([&](RadixNode& node) {
    if (node.reused || node.waiters_below > 0) queue(node);
  });
}

void Writer::queue_all() {
  paused_until_ns_ = 0;
  if (policy_ == Policy::kSelective) return;
  context_.tree.visit_hottest([&](RadixNode& node) { queue(node); });
}

void Writer::forget_stored() {
  queue_.clear();
  context_.tree.visit_nodes([](RadixNode& node) { node.stored = node.offered = 0; });
}

void Writer::works() {
  idle_since_ns_ = -1;
  idle_done_ = policy_ != Policy::kBack;
}

void Writer::rest(int64_t now_ns) {
  if (idle_done_) return;
  if (idle_since_ns_ < 0) idle_since_ns_ = now_ns;
  if (now_ns - idle_since_ns_ < kIdleNs) return;
  queue_hot();
  idle_done_ = true;
}

void Writer::advance(int64_t now_ns, bool may_write) {
  int64_t near = near_eviction(context_.tree.use(kPathClass).total);
  if (policy_ == Policy::kBack && changes_ > near / kLookAgain) {
    changes_ = 0;
    queue_near_eviction();
  }
  if (may_write && !pauses(now_ns)) write_queued();
}

// ---- Writing -----------------------------------------------------------------------------------

void Writer::write_queued() {
  if (queue_.empty()) return;
  if (context_.store.stats().health != TierHealth::kOn) return queue_.clear();
  while (!queue_.empty()) {
    RadixNode& node = queue_.front();
    bool follows = node.parent->parent == nullptr || under_way(*node.parent);
    if (follows && !write(node)) return;
    queue_.pop_front();
  }
}

// False if too many writes are in flight.
bool Writer::write(RadixNode& node) {
  for (int c = 0; c < context_.classes().count; ++c) {
    if (!to_offer(node, c)) continue;
    if (c != kPathClass && !under_way(node)) continue;
    int64_t bytes = at(context_.unit_bytes, c);
    if (free_.empty() || (writing_ > 0 && writing_bytes_ + bytes > kWritingBytesMax)) return false;
    start(node, c);
  }
  return true;
}

void Writer::start(RadixNode& node, int unit_class) {
  int32_t place = free_.back();
  free_.pop_back();
  Write& write = at(writes_, place);
  write.node = &node;
  write.unit_class = unit_class;
  write.unit = node.units[unit_class].unit;
  write.kept = false;
  write.clears = context_.clears;
  write.tokens.assign(node.tokens.begin(), node.tokens.end());  // the node may be evicted meanwhile
  write.pieces.clear();
  context_.pieces.add(unit_class, write.unit, write.pieces);
  node.writing |= class_bit(unit_class);
  ++writing_;
  writing_bytes_ += at(context_.unit_bytes, unit_class);
  PageKey key = context_.keys.of(node);
  context_.store.write({.id = kWriteId | static_cast<uint64_t>(place),
                        .record = {.key = {.page = key, .unit_class = unit_class},
                                   .parent = node.parent->key,
                                   .end = node.end,
                                   .tokens = write.tokens},
                        .pieces = write.pieces,
                        .share = policy_ == Policy::kThrough || node.reused});
}

void Writer::take(const TierDone& done, int64_t now_ns) {
  auto place = static_cast<int32_t>(done.id & ~kWriteId);
  Write& write = at(writes_, place);
  CHECK(write.unit >= 0);
  bool stored = done.outcome == TierOutcome::kDone;
  uint8_t bit = class_bit(write.unit_class);
  if (write.node != nullptr) {
    write.node->writing = static_cast<uint8_t>(write.node->writing & ~bit);
    if (stored && write.clears == context_.clears) {
      write.node->stored |= bit;
      write.node->offered |= bit;
    }
  }
  if (write.kept) {
    context_.tree.give_back(write.unit_class, write.unit);
    --kept_;
  }
  write.node = nullptr;
  write.unit = -1;
  write.kept = false;
  free_.push_back(place);
  --writing_;
  writing_bytes_ -= at(context_.unit_bytes, write.unit_class);
  if (stored) {
    for (int i = 0; i < context_.store.layers(); ++i) {
      const TierWork& work = at(done.work, i);
      CacheLayerStats& layer = context_.layer(i);
      layer.written_units += work.bytes > 0 ? 1 : 0;  // 0: the store had it
      layer.written_bytes += work.bytes;
      layer.write_s += work.seconds;
    }
  } else {
    paused_until_ns_ = now_ns + kPauseNs;
  }
}

void Writer::add_held(UnitCounts& held) const {
  for (const Write& write : writes_) {
    if (write.kept) ++at(held, write.unit_class);
  }
}

}  // namespace banyan
