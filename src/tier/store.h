// Where units of the state pools are kept outside of memory: on a local disk, on a shared file
// system, on a server that speaks Redis' protocol. A store knows keys, bytes and deadlines, and
// nothing of trees, sequences or pools.
//
// A record is one unit (a page, a window's page, a snapshot) as its pools hold it. Stores never say
// more than they know: find() is a hint, and only a read whose record and bytes were verified ends
// with kDone. Whatever goes wrong is a miss with its reason, or a write that was not made; no call
// fails, and none but sync() and clear() waits for the device.
//
// One thread calls; the work is done on threads of the store. A store belongs to one StateDigest
// and one rank, so all its records of a class have one size.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cache/page_key.h"
#include "cache/prefix_key.h"
#include "cache/state_classes.h"

namespace banyan {

// One unit of a prefix: of pages, the page that `page` names; of slots, the state at its end.
struct TierKey {
  PageKey page;
  int unit_class = kPathClass;
  auto operator<=>(const TierKey&) const = default;
};

// What a record says of itself, and what a read compares before it believes the bytes.
struct TierRecord {
  TierKey key;
  PageKey parent;                            // of the page before
  int64_t end = 0;                           // position after the page's last token
  std::span<const PrefixToken> tokens = {};  // of the page
};

// A piece of a unit in its pool: a record's bytes are the pieces in order.
struct TierPiece {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// A read or a write. What the spans point to stays as it is until the job's TierDone was taken.
struct TierJob {
  uint64_t id = 0;  // the caller's, of its choice
  TierRecord record;
  std::span<const TierPiece> pieces;
  bool share = true;  // a write: worth the way to a store that machines share
};

enum class TierOutcome : uint8_t {
  kDone,
  kAbsent,    // no such record, or it went between find() and the read
  kChecksum,  // bytes that are not those that were written
  kIdentity,  // a record of something else
  kTimeout,
  kFailed,   // the device or the server said no
  kRefused,  // a write that was not tried: no room, budget spent, read-only
};
std::string_view name(TierOutcome outcome);

enum class TierOperation : uint8_t { kFind, kRead, kWrite };

// A store may be several, asked in order: its layers.
inline constexpr int kTierLayersMax = 3;

// What a job took of one layer.
struct TierWork {
  bool done = false;   // the layer had a part in it
  int64_t bytes = 0;   // that went over the device
  double seconds = 0;  // in the layer, its queue not counted
};

struct TierDone {
  uint64_t id = 0;
  TierOperation operation = TierOperation::kFind;
  TierOutcome outcome = TierOutcome::kDone;
  std::vector<uint8_t> found = {};  // kFind: of each key, 0 or the number of its layer plus 1
  int layer = 0;                    // kRead: that the bytes came from
  bool unwritten = false;           // kRead: a layer above lacks them, and would take a write
  std::array<TierWork, kTierLayersMax> work = {};
};

enum class TierHealth : uint8_t { kOn, kReadOnly, kOff };
std::string_view name(TierHealth health);

struct TierStats {
  TierHealth health = TierHealth::kOn;
  std::string trouble = "";           // why it is not on
  UnitCounts units = {}, bytes = {};  // per class, as far as the store knows
  int64_t capacity_bytes = 0;         // 0: the server's business
  int64_t evicted_units = 0;
};

class TierStore {
 public:
  virtual ~TierStore() = default;
  virtual std::string_view name() const = 0;  // "disk", "file", "redis"
  virtual int layers() const { return 1; }
  virtual const TierStore& layer(int) const { return *this; }

  // Each ends in one TierDone. A find of keys that memory knows about ends at once.
  virtual void find(uint64_t id, std::span<const TierKey> keys) = 0;
  virtual void read(const TierJob& job) = 0;
  virtual void write(const TierJob& job) = 0;
  // Moves what has ended to `done`, which is cleared first.
  virtual void take_done(std::vector<TierDone>& done) = 0;
  // Returns when something has ended, at the latest after `limit`.
  virtual void wait(std::chrono::nanoseconds limit) = 0;

  // These were used, the last of them most recently: a path from its leaf to its root, so that
  // whatever is evicted first has nothing that depends on it.
  virtual void touch(std::span<const TierKey> keys) = 0;
  // Waits for the writes that were asked for, as fast as the device takes them, and then until what
  // is written survives the machine's loss of power.
  virtual void sync() = 0;
  // Forgets every record of this digest.
  virtual void clear() = 0;
  virtual TierStats stats() const = 0;
};

}  // namespace banyan
