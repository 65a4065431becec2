// A store of prefixes without their bytes, for replays: it keeps keys, least recently used first
// out, and every operation ends at once. One thread.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "tier/store.h"

namespace banyan {

class KeyStore final : public TierStore {
 public:
  // `units_max`: how many units it keeps, over all classes.
  explicit KeyStore(int64_t units_max) : units_max_(units_max) {}

  std::string_view name() const override { return "simulated"; }
  int64_t written() const { return written_; }  // units so far

  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds) override {}
  void touch(std::span<const TierKey> keys) override;
  void sync() override {}
  void clear() override;
  TierStats stats() const override;

 private:
  struct KeyHash {
    size_t operator()(const TierKey& key) const noexcept;
  };
  using Order = std::list<TierKey>;

  const int64_t units_max_;
  Order by_use_;  // the least recently used first
  std::unordered_map<TierKey, Order::iterator, KeyHash> units_;
  std::vector<TierDone> done_;
  int64_t written_ = 0, evicted_ = 0;
};

}  // namespace banyan
