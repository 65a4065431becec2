// Stores units of the state pools outside memory: on a local disk, a shared file system, or a
// server with Redis' protocol. A store deals with keys, bytes and deadlines; it has no notion of
// trees, sequences or pools.
//
// A record is one unit (a page, a window's page, a snapshot) as its pools hold it. find() is a
// hint; only a read whose record and bytes were verified ends with kDone. Any failure is a miss
// with its reason, or a write that was not made. No call fails, and only sync() and clear() wait
// for the device.
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

// One unit of a prefix: for classes of pages, the page that `page` names; for slots, the state at
// its end.
struct TierKey {
  PageKey page;
  int unit_class = kPathClass;
  auto operator<=>(const TierKey&) const = default;
};

// The identity of a record, which a read compares before it accepts the bytes.
struct TierRecord {
  TierKey key;
  PageKey parent;                            // of the preceding page
  int64_t end = 0;                           // position after the page's last token
  std::span<const PrefixToken> tokens = {};  // of the page
};

// A part of a unit in its pool; a record's bytes are the pieces in order.
struct TierPiece {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

// A prompt that records are to be found and read for, all under one number. For a store that
// computes what it is asked for; others ignore it.
struct TierPrompt {
  uint64_t transfer = 0;  // chosen by the caller
  const PrefixNamespace& name_space;
  std::span<const PrefixToken> tokens;  // whole pages, and the token after them
  std::span<const PageKey> pages;
  int64_t base = 0;  // where memory can resume
  int priority = 0;  // of the request
};

struct TierQuestion {
  uint64_t id = 0;  // chosen by the caller
  uint64_t transfer = 0;
  std::span<const TierKey> keys;
};

// A read or a write. What the spans point to must not change until the job's TierDone was taken.
struct TierJob {
  uint64_t id = 0;        // chosen by the caller
  uint64_t transfer = 0;  // of a read
  TierRecord record;
  std::span<const TierPiece> pieces;
  int layer = 0;      // of a read: those above it lack the record, as find() said
  bool share = true;  // a write: also goes to a store that machines share
};

enum class TierOutcome : uint8_t {
  kDone,
  kAbsent,    // no such record, or it was evicted between find() and the read
  kChecksum,  // the bytes are not those that were written
  kIdentity,  // a record of something else
  kTimeout,
  kFailed,   // the device or the server failed
  kRefused,  // a write that was not attempted: no room, budget spent, read-only
};
std::string_view name(TierOutcome outcome);

enum class TierOperation : uint8_t { kFind, kRead, kWrite };

// A store may combine several, asked in order: its layers.
inline constexpr int kTierLayersMax = 3;

// A job's work in one layer.
struct TierWork {
  bool done = false;  // the layer took part in it
  int64_t bytes = 0;  // that were moved
  // In the layer, without waiting in its queue. What several did at a time is divided among them.
  double seconds = 0;
};

struct TierDone {
  uint64_t id = 0;
  TierOperation operation = TierOperation::kFind;
  TierOutcome outcome = TierOutcome::kDone;
  std::vector<uint8_t> found = {};  // kFind: for each key, 0 or its layer + 1
  int layer = 0;                    // kRead: where the bytes came from
  bool unwritten = false;           // kRead: an upper layer lacks them and would accept a write
  std::array<TierWork, kTierLayersMax> work = {};
};

enum class TierHealth : uint8_t { kOn, kReadOnly, kOff };
std::string_view name(TierHealth health);

struct TierStats {
  TierHealth health = TierHealth::kOn;
  std::string trouble = "";           // the reason if it is not on
  UnitCounts units = {}, bytes = {};  // per class, as far as the store knows
  int64_t capacity_bytes = 0;         // 0: decided by the server
  int64_t evicted_units = 0;
};

class TierStore {
 public:
  virtual ~TierStore() = default;
  virtual std::string_view name() const = 0;  // "disk", "file", "redis"
  virtual int layers() const { return 1; }
  virtual const TierStore& layer(int) const { return *this; }

  // Whether another engine computes its records when they are read. They are preferred to computing
  // them here, however long that takes: it spares this engine's other sequences the work. The store
  // limits the time.
  virtual bool computes() const { return false; }

  // Precedes a transfer's finds and reads. The spans are valid during the call.
  virtual void begin_transfer(const TierPrompt&) {}
  // Each job ends in one TierDone. A find that can be answered from memory ends at once.
  virtual void find(const TierQuestion& question) = 0;
  virtual void read(const TierJob& job) = 0;
  virtual void write(const TierJob& job) = 0;
  // Nothing more is read for the transfer, and its reads in progress may fail.
  virtual void end_transfer(uint64_t /*transfer*/) {}
  // Moves finished jobs to `done`, which is cleared first.
  virtual void take_done(std::vector<TierDone>& done) = 0;
  // Returns when a job has finished, or after `limit`.
  virtual void wait(std::chrono::nanoseconds limit) = 0;

  // Marks these as used, the last of them most recently. Pass a path from its leaf to its root, so
  // that a record is evicted before those it depends on.
  virtual void touch(std::span<const TierKey> keys) = 0;
  // Waits for the requested writes, as fast as the device accepts them, and then until they survive
  // a power failure.
  virtual void sync() = 0;
  // Removes every record of this digest.
  virtual void clear() = 0;
  virtual TierStats stats() const = 0;
};

}  // namespace banyan
