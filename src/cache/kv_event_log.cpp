#include "cache/kv_event_log.h"

#include <algorithm>

namespace banyan {

void KvEventLog::add(KvOperation operation, const KvUnit& unit, const PageKey& parent) {
  std::lock_guard lock(mutex_);
  uint64_t sequence = next_.load(std::memory_order_relaxed);
  ring_[sequence % ring_.size()] = {
      .sequence = sequence, .operation = operation, .unit = unit, .parent = parent};
  next_.store(sequence + 1, std::memory_order_release);
}

bool KvEventLog::read(uint64_t from, size_t most, std::vector<KvEvent>& events) const {
  events.clear();
  std::lock_guard lock(mutex_);
  uint64_t end = next_.load(std::memory_order_relaxed);
  if (from < 1 || from > end || end - from > ring_.size()) return false;
  for (uint64_t n = from; n < std::min(end, from + most); ++n) {
    events.push_back(ring_[n % ring_.size()]);
  }
  return true;
}

}  // namespace banyan
