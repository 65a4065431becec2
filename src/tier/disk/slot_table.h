// Which slot of a class has which record, and in which order they were used. Memory alone; whoever
// has it holds a lock.
//
// A slot is free, live, being written, or unknown: nobody has read yet what is in it, or could
// not. Reads pin a live slot; one that is given up meanwhile becomes free with its last pin.
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
  // Slots [size(), slots) are added, all free or all unknown.
  void grow(int64_t slots, bool unknown);
  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  int64_t live() const { return static_cast<int64_t>(by_key_.size()); }
  int64_t unknown() const { return unknown_; }

  std::optional<uint32_t> find(const PageKey& key) const;
  // As it is written; `live` says whether it is.
  IndexEntry entry(uint32_t slot) const;

  // Becomes the last to go.
  void touch(uint32_t slot, uint32_t used_s);
  // Slots whose entries on the disk do not say when they were used last; cleared with the call.
  std::vector<uint32_t> take_touched();

  void pin(uint32_t slot);
  void unpin(uint32_t slot);

  // A free slot, which is being written from now on; none: nothing is free.
  std::optional<uint32_t> take_free();
  // The one whose use is longest ago and that nobody reads.
  std::optional<uint32_t> oldest() const;
  // Of a live, unknown or written one.
  void give_up(uint32_t slot);
  // A live one that could not be read becomes unknown: what is in it may be sound.
  void set_aside(uint32_t slot);
  // A slot that was being written or unknown is live now, and used last. Where the key has another
  // slot, the younger record stays; false: that is the other.
  bool put(const IndexEntry& entry);
  // The first unknown slot from `slot` on that nobody reads.
  std::optional<uint32_t> next_unknown(uint32_t slot) const;
  // The next number of a record.
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
    bool given_up = false;  // with its last pin it is free
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
