// A store in memory that goes wrong in every way that a store may, by a seed: it is late and out of
// order, tells of records that it lacks and keeps silent about some that it has, loses and damages
// records, tears reads, refuses writes. What it reads or writes it looks at when the job ends, not
// when it was given, so that a unit that was used for something else meanwhile shows.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "tier/store.h"

namespace banyan::test {

// What survives the store.
struct FakeDisk {
  struct Record {
    PageKey parent;
    int64_t end = 0;
    std::vector<PrefixToken> tokens;
    std::vector<std::byte> bytes;
    bool damaged = false;
  };
  std::map<TierKey, Record> records;
  std::set<TierKey> given;  // all that it ever was to write
  bool empty_path = false;  // the model's pages of the path hold nothing, and are not written
  bool any_order = false;   // it is not given all that is written
};

// How often what goes wrong, of one.
struct FakeFaults {
  double lie = 0, lose = 0, damage = 0, tear = 0, fail = 0, refuse = 0;
  int delay_max = 0;  // of a job, in calls of take_done() and wait()
};

class FakeStore final : public TierStore {
 public:
  FakeStore(std::shared_ptr<FakeDisk> disk, const FakeFaults& faults, uint64_t seed)
      : disk_(std::move(disk)), faults_(faults), seed_(seed) {}
  ~FakeStore() override;

  std::string_view name() const override { return "fake"; }
  void find(uint64_t id, std::span<const TierKey> keys) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;
  void touch(std::span<const TierKey> keys) override;
  void sync() override {}
  void clear() override { disk_->records.clear(); }
  TierStats stats() const override;

  // Its own time, which passes when somebody asks for it or waits.
  int64_t now_ns() { return now_ns_ += 1000; }
  void pass_ns(int64_t ns) { now_ns_ += ns; }

  TierHealth health = TierHealth::kOn;
  int64_t reads = 0, writes = 0;
  std::vector<TierKey> touched;

 private:
  struct Job {
    TierDone done;
    TierRecord record;
    std::span<const TierPiece> pieces;
    int64_t due = 0;
  };

  bool chance(double p);
  void add(Job job);
  void carry_out(Job& job);
  void read_now(Job& job);
  void write_now(Job& job);

  std::shared_ptr<FakeDisk> disk_;
  const FakeFaults faults_;
  const uint64_t seed_;
  uint64_t draws_ = 0;
  int64_t ticks_ = 0, now_ns_ = 0;
  std::vector<Job> jobs_;
};

}  // namespace banyan::test
