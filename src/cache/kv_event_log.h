// The last events of a worker's cache, in a ring, for readers that come later or lost some.
//
// One thread adds, which allocates nothing; any thread may read.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "cache/kv_event.h"

namespace banyan {

class KvEventLog {
 public:
  static constexpr size_t kEventsDefault = size_t{1} << 16;

  // `epoch`: not 0, and different each time a worker starts.
  explicit KvEventLog(uint64_t epoch, size_t events = kEventsDefault)
      : epoch_(epoch), ring_(events) {}

  uint64_t epoch() const { return epoch_; }
  // The number of the next event; the first is 1.
  uint64_t next() const { return next_.load(std::memory_order_acquire); }

  void add(KvOperation operation, const KvUnit& unit, const PageKey& parent);
  // Copies at most `most` events, starting with number `from`. False: they are no longer kept, or
  // never existed.
  bool read(uint64_t from, size_t most, std::vector<KvEvent>& events) const;

 private:
  const uint64_t epoch_;
  mutable std::mutex mutex_;
  std::vector<KvEvent> ring_;  // event n at n % size
  std::atomic<uint64_t> next_ = 1;
};

}  // namespace banyan
