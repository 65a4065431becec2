// A store in memory that fails in every way that a store may, by a seed. It is late and out of
// order, reports records that it lacks, hides some that it has, loses and damages records, tears
// reads and refuses writes. It accesses a job's memory when the job ends, not when it is submitted,
// so that a unit that is reused too early is noticed.
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
  std::set<TierKey> given;  // everything it was ever asked to write
  bool empty_path = false;  // the model's pages of the path hold nothing, and are not written
  bool any_order = false;   // it is not asked to write everything
};

// Probabilities of failures.
struct FakeFaults {
  double lie = 0, lose = 0, damage = 0, tear = 0, fail = 0, refuse = 0;
  int delay_max = 0;  // of a job, in calls of take_done() and wait()
};

class FakeStore final : public TierStore {
 public:
  FakeStore(std::shared_ptr<FakeDisk> disk, const FakeFaults& faults, uint64_t seed)
      : disk_(std::move(disk)), faults_(faults), seed_(seed) {}
  ~FakeStore() override;

  std::string_view name() const override { return computing ? "prefill" : "fake"; }
  bool computes() const override { return computing; }
  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void end_transfer(uint64_t transfer) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;
  void touch(std::span<const TierKey> keys) override;
  void sync() override {}
  void clear() override { disk_->records.clear(); }
  TierStats stats() const override;

  // Its own clock, which advances when it is read and during waits.
  int64_t now_ns() { return now_ns_ += 1000; }
  void pass_ns(int64_t ns) { now_ns_ += ns; }

  TierHealth health = TierHealth::kOn;
  bool computing = false;  // what it has counts as computed when it is read
  double s_per_mib = 0;    // what it says of its reads
  bool finds_at_once = false;
  int64_t reads = 0, writes = 0;
  std::vector<TierKey> touched;

 private:
  struct Job {
    TierDone done;
    TierRecord record;
    std::span<const TierPiece> pieces;
    uint64_t transfer = 0;  // of a read
    bool cut = false;       // nothing comes of it any more
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
