// Decides which units of the tree are written to the store, and when.
//
// A record is useful only with those of all pages before it. So nodes are queued after their
// ancestors, and one is written when its parent's page is stored or being written. Write policies
// differ in when nodes are queued: at once (write_through), or at a second use
// (write_through_selective). With write_back they are queued near eviction, while the engine is
// idle, and at shutdown.
//
// A unit is written from where it lies, without a copy, since complete pages do not change. If it
// is to be evicted meanwhile, another unit is evicted instead, if there is one; else ownership
// passes to the write, which returns the unit when it ends. So eviction never waits. What is
// evicted unwritten is lost, and counted.
//
// A page that is evicted and computed again counts as used a second time.
#pragma once

#include <cstdint>
#include <vector>

#include "cache/radix_tree.h"
#include "engine/tiers/context.h"
#include "engine/tiers/seen_pages.h"

namespace banyan {

class Writer final : public UnitWatcher {
 public:
  // Watches the tree while it lives.
  Writer(TierContext& context, const CacheStorageConfig& config);
  ~Writer() override;

  void gained(RadixNode& node) override;
  bool loses(RadixNode& node, int unit_class) override;
  void goes(RadixNode& node) override;
  // A sequence resumed after the node.
  void reused(RadixNode& node);

  void take(const TierDone& done, int64_t now_ns);
  // Queues what is near eviction, and writes if `may_write`.
  void advance(int64_t now_ns, bool may_write);
  // works(): the engine computes. rest(): it is idle; after a while there is time to write hot
  // pages.
  void works();
  void rest(int64_t now_ns);
  // Shutdown: queues everything that the policy would have written later, hottest first.
  void queue_all();
  // The store was cleared.
  void forget_stored();

  int64_t writing() const { return writing_; }
  bool queued() const { return !queue_.empty(); }
  bool busy() const { return writing_ > 0 || !queue_.empty() || !idle_done_; }
  // Units whose nodes are gone.
  void add_held(UnitCounts& held) const;
  // A write failed, so none is tried for a while.
  bool pauses(int64_t now_ns) const { return now_ns < paused_until_ns_; }
  bool keeps_units() const { return kept_ > 0; }

 private:
  enum class Policy : uint8_t { kBack, kThrough, kSelective };
  struct Write {
    RadixNode* node = nullptr;  // null: evicted, or no longer relevant
    int unit_class = 0;
    int32_t unit = -1;  // -1: no write
    bool kept = false;  // the write owns the unit
    int64_t clears = 0;
    std::vector<PrefixToken> tokens;
    std::vector<TierPiece> pieces;
  };

  static Policy policy_of(const CacheStorageConfig& config);
  bool unwritten(const RadixNode& node, int unit_class) const;
  bool to_offer(const RadixNode& node, int unit_class) const;
  bool under_way(const RadixNode& node) const {
    return !context_.keeps(kPathClass) ||
           ((node.stored | node.writing) & class_bit(kPathClass)) != 0;
  }
  void queue(RadixNode& node);
  void queue_near_eviction();
  void queue_hot();
  void write_queued();
  bool write(RadixNode& node);
  void start(RadixNode& node, int unit_class);

  TierContext& context_;
  const Policy policy_;
  const bool enabled_;  // the store takes records
  WriteList queue_;
  SeenPages seen_;                 // evicted after a first use
  std::vector<RadixNode*> chain_;  // scratch
  std::vector<TierKey> used_;      // scratch
  std::vector<Write> writes_;
  std::vector<int32_t> free_;  // of them
  int64_t writing_ = 0, writing_bytes_ = 0, kept_ = 0;
  int64_t changes_ = 0;  // of the tree, since units near eviction were queued
  int64_t paused_until_ns_ = 0;
  int64_t idle_since_ns_ = -1;
  bool idle_done_ = true;
};

}  // namespace banyan
