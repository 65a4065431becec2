// Which worker holds which prefix: a map from a page's key to its holders. Keys are chained
// (cache/page_key.h), so looking up a prompt's keys in order finds its longest prefix. What can be
// resumed follows the rule of the worker's own tree (cache/radix_tree.h), class by class.
//
// A holder is a *slot*, an index into bit sets. A slot is opened for a worker and closed when
// everything it held becomes void: the worker left or restarted, or a snapshot replaces what was
// known. Closing takes no time; sweep() clears its entries later.
//
// Bounded: above `entries_max` pages, those not requested recently are dropped. The contents are
// hints: a missing page costs computing it again, and a wrong one the same on another worker.
//
// An entry is 32 bytes with up to two holders; more take three bit sets for each class.
//
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/kv_event.h"
#include "cache/state_classes.h"

namespace banyan {

struct MetaTreeConfig {
  StateClasses classes;
  int slots_max = 256;  // twice the workers is ample: closed ones are reused once they are swept
  int64_t entries_max = int64_t{1} << 22;
};

// How much of a prompt a slot has, in pages that need not be computed.
struct PrefixHolder {
  int slot = 0;
  int64_t pages = 0;         // resumable
  int64_t memory_pages = 0;  // without those that must be loaded first
};

class MetaTree {
 public:
  explicit MetaTree(const MetaTreeConfig& config);

  // Opens a slot that holds nothing; -1: all are in use.
  int open();
  void close(int slot);

  void stored(int slot, const KvUnit& unit);
  void removed(int slot, const KvUnit& unit);
  // Predicts what the slot will hold once it has computed the prompt of these pages. Until
  // unpredict() they count as held in memory, with snapshots after the last.
  void predict(int slot, std::span<const PageKey> pages);
  void unpredict(int slot, std::span<const PageKey> pages);

  // The slots that can resume somewhere in the prompt of `pages`, those with the longest prefix
  // first. Valid until the next call.
  std::span<const PrefixHolder> match(std::span<const PageKey> pages);

  // Clears some of what closed slots left; true while there is more.
  bool sweep();

  bool holds(int slot, const KvUnit& unit) const;             // not by prediction
  int64_t held(int slot) const { return slots_[slot].held; }  // path units
  int64_t entries() const { return entries_; }
  int64_t evicted() const { return evicted_; }  // entries dropped for lack of room
  int64_t bytes() const;

 private:
  // Where a unit is; the last value is a prediction.
  enum Plane : uint8_t { kMemory, kStorage, kPredicted, kPlanes };
  static constexpr uint16_t kNobody = 0xffff;
  struct Holder {
    uint16_t slot = kNobody;
    std::array<uint8_t, kPlanes> classes = {};  // bits
    bool empty() const { return (classes[0] | classes[1] | classes[2]) == 0; }
  };
  struct Entry {
    PageKey key;
    std::array<Holder, 2> holders;
    uint32_t block : 31 = 0;   // more holders: in block - 1
    uint32_t touched : 1 = 0;  // since the clock's hand last passed it
    bool vacant() const {
      return block == 0 && holders[0].slot == kNobody && holders[1].slot == kNobody;
    }
  };
  static_assert(sizeof(Entry) == 32);
  // A table with open addressing. There are many small ones, so that growing one never takes long.
  struct Shard {
    std::vector<Entry> entries;  // a power of two of them, or none
    int64_t count = 0;
    size_t hand = 0;
  };
  struct Slot {
    bool open = false;
    int unswept = 0;     // number of shards left to sweep, once it is closed
    int64_t held = 0;    // units of the path in memory
    int64_t stored = 0;  // units in storage
  };
  using Words = std::span<uint64_t>;

  size_t words() const { return words_; }
  Shard& shard_of(const PageKey& key) { return shards_[key.bytes[0]]; }
  const Shard& shard_of(const PageKey& key) const { return shards_[key.bytes[0]]; }
  bool is_open(int slot) const { return slots_[slot].open; }
  // The place of the key's entry, or where it would be inserted.
  static size_t place_of(const Shard& shard, const PageKey& key);
  Entry* find(const PageKey& key);
  void prefetch(const PageKey& key) const;
  Entry& find_or_add(const PageKey& key);
  void evict_from(Shard& shard);
  static void grow(Shard& shard);
  void erase(Shard& shard, size_t place);

  // Bit sets of one class of units.
  void set(int slot, const PageKey& key, Plane plane, int unit_class);
  void clear(int slot, const PageKey& key, Plane plane, int unit_class);
  bool has(const Entry& entry, int slot, Plane plane, int unit_class) const;
  void count(int slot, Plane plane, int unit_class, int64_t change);
  Holder* holder_for(Entry& entry, int slot) const;
  void uncount(const Entry& entry);
  void spill(Entry& entry);
  uint64_t* bits(const Entry& entry, int plane, int unit_class) const;
  bool is_held(const Entry& entry) const;
  void forget_closed(Entry& entry) const;
  size_t block_words() const { return kPlanes * classes_.count * words_; }

  void add_holders(const Entry& entry, int unit_class, bool storage, uint64_t* set) const;
  size_t follow_path(bool storage);
  void keep_runs(size_t pages, int unit_class, bool storage);
  void keep_snapshots(size_t pages, int unit_class, bool storage);
  // Calls visit(slot, pages) for each slot, those with the longest prefix first.
  template <class Visit>
  void visit_depths(bool storage, Visit visit);

  const StateClasses classes_;
  const int64_t shard_entries_max_;
  const size_t words_;  // of a bit set of slots
  std::vector<Shard> shards_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> open_;  // bit set
  int closed_ = 0;              // slots that are not swept yet
  size_t swept_ = 0;            // the shard to sweep next
  int64_t entries_ = 0, evicted_ = 0;
  int64_t storage_units_ = 0;

  // Blocks of [planes, classes, words], in chunks.
  std::vector<std::unique_ptr<uint64_t[]>> chunks_;
  std::vector<uint32_t> free_blocks_;
  uint32_t blocks_ = 0;

  // Used by match(): the entries of the prompt's pages, and bit sets per page of the slots that can
  // resume there and of those that have the last pages of a window.
  std::vector<const Entry*> path_;
  std::vector<uint64_t> resumable_, runs_;
  std::vector<uint64_t> set_;          // one bit set
  std::vector<int64_t> memory_pages_;  // [slots]
  std::vector<PrefixHolder> found_;
};

}  // namespace banyan
