// Two stores as one: where finds, reads and writes go, and failures of one layer.
#include "tier/layered_store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "support/servers/redis_server.h"
#include "support/tier/fake_store.h"
#include "support/tier/tier_rig.h"

namespace banyan::layered_store_test {
namespace {

using test::FakeDisk;
using test::FakeFaults;
using test::FakeStore;
using test::RedisServer;
using test::TierRig;
using test::TierUnit;

// Two stores in memory as one.
class Pair {
 public:
  explicit Pair(const FakeFaults& local_faults = {}, const FakeFaults& shared_faults = {}) {
    local_disk->any_order = shared_disk->any_order = true;
    auto local = std::make_unique<FakeStore>(local_disk, local_faults, 1);
    auto shared = std::make_unique<FakeStore>(shared_disk, shared_faults, 2);
    local_ = local.get();
    shared_ = shared.get();
    store = make_layered_store(std::move(local), std::move(shared));
  }

  FakeStore& local() { return *local_; }
  FakeStore& shared() { return *shared_; }

  TierDone write(int64_t number, bool share) {
    TierUnit unit(states_, number, 0);
    unit.fill();
    TierJob job = unit.job(++last_id_);
    job.share = share;
    store->write(job);
    return wait();
  }
  // `right`: whether the bytes are those of the unit.
  TierDone read(int64_t number, bool* right = nullptr, int layer = 0) {
    TierUnit unit(states_, number, 0);
    unit.wipe();
    TierJob job = unit.job(++last_id_);
    job.layer = layer;
    store->read(job);
    TierDone done = wait();
    if (right != nullptr) *right = unit.right();
    return done;
  }
  TierDone find(const std::vector<int64_t>& numbers) {
    std::vector<TierKey> keys;
    for (int64_t number : numbers) keys.push_back(TierUnit(states_, number, 0).key());
    store->find({.id = ++last_id_, .keys = keys});
    return wait();
  }

  std::shared_ptr<FakeDisk> local_disk = std::make_shared<FakeDisk>();
  std::shared_ptr<FakeDisk> shared_disk = std::make_shared<FakeDisk>();
  std::unique_ptr<TierStore> store;

 private:
  TierDone wait() {
    std::vector<TierDone> done;
    for (int i = 0; i < 10000; ++i) {
      store->take_done(done);
      if (!done.empty()) {
        EXPECT_EQ(done.size(), 1u);
        EXPECT_EQ(done[0].id, last_id_);
        return done[0];
      }
      store->wait(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "job " << last_id_ << " did not end";
    return {};
  }

  TierStates states_ = test::tier_states();
  FakeStore *local_ = nullptr, *shared_ = nullptr;
  uint64_t last_id_ = 0;
};

using Found = std::vector<uint8_t>;

TEST(LayeredStore, SaysWhichLayerHasWhat) {
  Pair pair({.delay_max = 3}, {.delay_max = 3});
  pair.write(1, false);
  pair.write(2, true);
  pair.local_disk->records.erase(TierUnit(test::tier_states(), 2, 0).key());
  TierDone done = pair.find({1, 2, 3});
  EXPECT_EQ(done.found, (Found{1, 2, 0}));
  EXPECT_TRUE(done.work[0].done);
  EXPECT_TRUE(done.work[1].done);
  EXPECT_FALSE(pair.find({1, 1}).work[1].done) << "the shared store is asked for nothing";
  pair.shared().health = TierHealth::kOff;
  EXPECT_EQ(pair.find({1, 2, 3}).found, (Found{1, 0, 0}));
}

TEST(LayeredStore, ReadsBelowWhereTheFindSaysSo) {
  Pair pair;
  pair.write(1, true);
  bool right = false;
  TierDone done = pair.read(1, &right, 1);
  EXPECT_EQ(done.outcome, TierOutcome::kDone);
  EXPECT_TRUE(right && done.layer == 1 && done.unwritten);
  pair.shared_disk->records.clear();
  EXPECT_EQ(pair.read(1, nullptr, 1).outcome, TierOutcome::kAbsent) << "lost meanwhile";
  EXPECT_EQ(pair.local().reads, 0);
}

TEST(LayeredStore, WritesToOthersWhatIsWorthIt) {
  Pair pair;
  TierDone own = pair.write(1, false), both = pair.write(2, true);
  EXPECT_EQ(pair.local_disk->records.size(), 2u);
  EXPECT_EQ(pair.shared_disk->records.size(), 1u);
  EXPECT_EQ(own.work[1].bytes, 0);
  EXPECT_GT(both.work[0].bytes, 0);
  EXPECT_EQ(both.work[1].bytes, both.work[0].bytes);
}

TEST(LayeredStore, ReadsFallThrough) {
  Pair pair;
  for (int64_t number : {1, 2, 3}) pair.write(number, true);
  TierStates states = test::tier_states();
  pair.local_disk->records.erase(TierUnit(states, 1, 0).key());
  pair.local_disk->records[TierUnit(states, 2, 0).key()].damaged = true;
  for (int64_t number : {1, 2, 3}) {
    bool right = false;
    TierDone done = pair.read(number, &right);
    EXPECT_EQ(done.outcome, TierOutcome::kDone);
    EXPECT_TRUE(right) << number;
    EXPECT_EQ(done.layer, number == 3 ? 0 : 1);
    EXPECT_GT(done.work[static_cast<size_t>(done.layer)].bytes, 0);
  }
  pair.shared_disk->records.clear();
  EXPECT_EQ(pair.read(1).outcome, TierOutcome::kAbsent);
  EXPECT_EQ(pair.read(2).outcome, TierOutcome::kChecksum) << "more than that it is absent";
}

TEST(LayeredStore, OneThatFailsIsNoFailure) {
  Pair no_local({.fail = 1, .refuse = 1});
  EXPECT_EQ(no_local.write(1, true).outcome, TierOutcome::kDone);
  EXPECT_EQ(no_local.find({1, 2}).found, (Found{2, 0}));
  EXPECT_EQ(no_local.read(1).outcome, TierOutcome::kDone);
  Pair no_shared({}, {.fail = 1, .refuse = 1});
  EXPECT_EQ(no_shared.write(1, true).outcome, TierOutcome::kDone);
  EXPECT_EQ(no_shared.find({1, 2}).found, (Found{1, 0}));
  EXPECT_EQ(no_shared.read(1).outcome, TierOutcome::kDone);
  EXPECT_EQ(no_shared.shared().writes, 1);
  EXPECT_EQ(no_shared.write(2, true).outcome, TierOutcome::kDone);
  EXPECT_EQ(no_shared.shared().writes, 1) << "it is left alone for a while";
}

TEST(LayeredStore, IsOnWhileOneIs) {
  Pair pair;
  EXPECT_EQ(pair.store->stats().health, TierHealth::kOn);
  pair.local().health = TierHealth::kReadOnly;
  EXPECT_EQ(pair.store->stats().health, TierHealth::kOn);
  pair.shared().health = TierHealth::kOff;
  EXPECT_EQ(pair.store->stats().health, TierHealth::kReadOnly);
  EXPECT_EQ(pair.store->layers(), 2);
  EXPECT_EQ(pair.store->layer(1).stats().health, TierHealth::kOff);
}

TierConfig layers_config(const std::string& folder, const std::string& backend) {
  TierConfig config = test::disk_config(folder + "/own");
  config.backend = backend;
  config.shared_directory = folder + "/shared";
  return config;
}

TEST(LayeredStore, ADiskAboveAFileSystem) {
  test::TemporaryFolder folder;
  TierConfig config = layers_config(folder.path(), "disk,file");
  TierStates states = test::tier_states();
  TierRig first(config, states);
  EXPECT_EQ(first.store().name(), "disk,file");
  for (int64_t n = 0; n < 20; ++n) ASSERT_EQ(first.write(n, n % 2), TierOutcome::kDone);
  first.store().sync();
  config.directory = folder.path() + "/another";
  TierRig second(config, states);
  for (int64_t n = 0; n < 20; ++n) EXPECT_EQ(second.read(n, n % 2), TierOutcome::kDone) << n;
  EXPECT_EQ(second.read(20), TierOutcome::kAbsent);
  EXPECT_EQ(second.wrong(), 0);
}

TEST(LayeredStore, AServerThatIsStoppedLeavesTheDisk) {
  REQUIRE_REDIS();
  test::TemporaryFolder folder;
  RedisServer server;
  TierConfig config = layers_config(folder.path(), "disk,redis");
  config.url = server.url();
  config.timeout = std::chrono::milliseconds(300);
  TierRig rig(config, test::tier_states());
  for (int64_t n = 0; n < 10; ++n) ASSERT_EQ(rig.write(n), TierOutcome::kDone);
  server.signal(SIGSTOP);
  EXPECT_TRUE(rig.find(3));
  for (int64_t n = 0; n < 10; ++n) EXPECT_EQ(rig.read(n), TierOutcome::kDone);
  for (int64_t n = 10; n < 20; ++n) EXPECT_EQ(rig.write(n), TierOutcome::kDone);
  EXPECT_NE(rig.read(30), TierOutcome::kDone);
  server.signal(SIGCONT);
  EXPECT_EQ(rig.wrong(), 0);
}

TEST(LayeredStore, RefusesOrdersThatMakeNoSense) {
  test::TemporaryFolder folder;
  for (const char* backend : {"redis,disk", "disk,disk", "disk,", ",disk", "disk,file,redis", "",
                              "file,redis", "disk,tape"}) {
    auto store = make_store(layers_config(folder.path(), backend), test::tier_states());
    ASSERT_FALSE(store) << backend;
    EXPECT_EQ(store.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace banyan::layered_store_test
