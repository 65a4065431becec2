// What a worker announces about its cache: which units of which prefixes come and go. Plain data;
// cache/kv_event_log.h keeps the last events, router/event_stream.h is their wire format.
#pragma once

#include <cstdint>

#include "cache/page_key.h"

namespace banyan {

enum class KvTier : uint8_t {
  kMemory,   // in the pools: usable as it is
  kStorage,  // in a store (engine/tiers): must be loaded first
};
inline constexpr int kKvTiers = 2;

enum class KvOperation : uint8_t {
  kStored = 1,
  kRemoved = 2,
  kCleared = 3,  // everything is gone; the unit means nothing
};

// A unit of a class (cache/state_classes.h): a page, a page of a window, the snapshot at its end.
struct KvUnit {
  PageKey page;
  uint8_t unit_class = 0;
  KvTier tier = KvTier::kMemory;
  bool operator==(const KvUnit&) const = default;
};

struct KvEvent {
  uint64_t sequence = 0;  // ascends by one
  KvOperation operation = KvOperation::kStored;
  KvUnit unit;
  PageKey parent;  // the page before, or the namespace's root
  bool operator==(const KvEvent&) const = default;
};

// How busy a worker is.
struct LoadReport {
  int64_t waiting_tokens = 0;  // prompt tokens still to be computed
  int64_t waiting = 0;         // requests that are not admitted yet
  int64_t running = 0;         // requests
  int64_t pages_free = 0;      // empty, or not held by a running request
  int64_t pages_total = 0;
  double prefill_tokens_s = 0;  // recent prompt tokens per second; 0: not known yet
  double step_ms = 0;           // recent time of steps that read no prompt; 0: not known yet
  uint64_t next_event = 0;      // sequence number of the next event; 0: not given
  bool operator==(const LoadReport&) const = default;
};

}  // namespace banyan
