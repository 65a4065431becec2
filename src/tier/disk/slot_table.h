// Which record is in which slot of a class, in order of use. In memory only; the caller holds a
// lock.
//
// A slot is free, live, being written, or unknown: its contents have not been read yet, or could
// not be. Reads pin a live slot; if it is given up meanwhile, it becomes free with its last pin.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "tier/disk/index_file.h"

namespace banyan {

class SlotTable {
 public:
  // Adds slots [size(), slots), all free or all unknown.
  void grow(int64_t slots, bool unknown);
  int64_t size() const { return std::ssize(slots_); }
  int64_t live() const { return std::ssize(by_key_); }
  int64_t unknown() const { return unknown_; }

  std::optional<uint32_t> find(const PageKey& key) const;
  // The index entry of the slot; `live` says whether it has a record.
  IndexEntry entry(uint32_t slot) const;

  // Makes it the last to be evicted.
  void touch(uint32_t slot, uint32_t used_s);
  // Slots whose last use is not in their index entries yet; the call clears the list.
  std::vector<uint32_t> take_touched();

  void pin(uint32_t slot);
  void unpin(uint32_t slot);

  // Takes a free slot, which is then being written; nothing if none is free.
  std::optional<uint32_t> take_free();
  // The least recently used slot that is not being read.
  std::optional<uint32_t> oldest() const;
  // Frees a live, unknown or written slot.
  void give_up(uint32_t slot);
  // Makes a live slot that could not be read unknown: its contents may be intact.
  void set_aside(uint32_t slot);
  // Makes a slot that was being written or unknown live, and the last used. If the key has another
  // slot, the newer record stays; false if that is the other one.
  bool put(const IndexEntry& entry);
  // The first unknown slot from `slot` on that is not being read.
  std::optional<uint32_t> next_unknown(uint32_t slot) const;
  // The next record number.
  uint64_t take_write_number() { return ++write_number_; }

 private:
  enum class State : uint8_t { kFree, kWriting, kLive, kUnknown };
  static constexpr uint32_t kNone = ~0u;

  struct Slot {
    PageKey key, parent;
    int64_t end = 0;
    uint64_t write_number = 0;
    uint32_t used_s = 0;
    uint32_t older = kNone, younger = kNone;
    uint16_t pins = 0;
    State state = State::kFree;
    bool given_up = false;  // it becomes free with its last pin
    bool touched = false;
  };
  struct HashKey {
    size_t operator()(const PageKey& key) const noexcept;
  };

  void link(uint32_t slot);
  void unlink(uint32_t slot);

  std::vector<Slot> slots_;
  std::vector<uint32_t> free_, touched_;
  std::unordered_map<PageKey, uint32_t, HashKey> by_key_;
  uint32_t oldest_ = kNone, youngest_ = kNone;
  int64_t unknown_ = 0;
  uint64_t write_number_ = 0;
};

}  // namespace banyan
