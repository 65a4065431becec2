// What a worker tells others of its cache: which units of which prefixes come and go. Plain data;
// cache/kv_event_log.h keeps the last of them, router/event_stream.h puts them on the wire.
#pragma once

#include <cstdint>

#include "cache/page_key.h"

namespace banyan {

enum class KvTier : uint8_t {
  kMemory,   // in the pools: used as it is
  kStorage,  // below them (engine/tiers): loaded first
};
inline constexpr int kKvTiers = 2;

enum class KvOperation : uint8_t {
  kStored = 1,
  kRemoved = 2,
  kCleared = 3,  // nothing is left; the unit means nothing
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
  int64_t waiting_tokens = 0;  // of prompts, to be computed yet
  int64_t waiting = 0;         // requests that were not admitted yet
  int64_t running = 0;         // requests
  int64_t pages_free = 0;      // empty, or held for no running request
  int64_t pages_total = 0;
  double prefill_tokens_s = 0;  // tokens of prompts in a second, lately; 0: not known yet
  double step_ms = 0;           // of steps that read no prompt, lately; 0: not known yet
  uint64_t next_event = 0;      // the sequence number that the next event will have; 0: not said
  bool operator==(const LoadReport&) const = default;
};

}  // namespace banyan
