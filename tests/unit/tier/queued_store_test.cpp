// What stores with threads of their own have in common.
#include "tier/queued_store.h"

#include <gtest/gtest.h>

#include <latch>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

namespace banyan::queued_store_test {
namespace {

// Each read waits until `at_a_time` of them do, and sleeps.
class SlowStore final : public QueuedStore {
 public:
  SlowStore(int workers, int at_a_time) : QueuedStore(workers, 1, 1), together_(at_a_time) {
    start();
  }
  ~SlowStore() override { stop(); }

  std::string_view name() const override { return "slow"; }
  void touch(std::span<const TierKey>) override {}
  void sync() override { drain(); }
  void clear() override {}
  TierStats stats() const override { return {}; }

 private:
  Ended find_now(int, std::span<const TierKey> keys, std::vector<uint8_t>& found) override {
    found.assign(keys.size(), 1);
    return {};
  }
  Ended read_now(int, const TierJob&) override {
    together_.arrive_and_wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {.bytes = 1 << 20};
  }
  Ended write_now(int, const TierJob&) override { return {}; }
  Clock::time_point idle(int) override { return Clock::now() + std::chrono::hours(1); }

  std::latch together_;
};

// A rate that counted every read's own time would be a quarter of the device's.
TEST(QueuedStore, DividesTheTimeAmongReadsOfTheSameTime) {
  constexpr int kReads = 4;
  SlowStore store(kReads, kReads);
  auto begin = std::chrono::steady_clock::now();
  for (uint64_t id = 0; id < kReads; ++id) store.read({.id = id, .record = {}, .pieces = {}});
  double sum_s = 0;
  std::vector<TierDone> done;
  for (int ended = 0; ended < kReads; ended += static_cast<int>(done.size())) {
    store.wait(std::chrono::seconds(1));
    store.take_done(done);
    for (const TierDone& one : done) sum_s += one.work[0].seconds;
  }
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(sum_s, 0.02);
  EXPECT_LE(sum_s, passed.count());
}

}  // namespace
}  // namespace banyan::queued_store_test
