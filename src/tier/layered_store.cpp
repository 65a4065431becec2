#include "tier/layered_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/signed.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLocal = 0, kShared = 1;
// How long a find with answers of the local store waits for those of the shared one.
constexpr auto kFindPatience = std::chrono::milliseconds(50);
constexpr int64_t kSharedWritingBytesMax = int64_t{1} << 25;
// How long no writes go to a shared store after one that failed.
constexpr auto kSharedPause = std::chrono::seconds(10);

class LayeredStore final : public TierStore {
 public:
  LayeredStore(std::unique_ptr<TierStore> local, std::unique_ptr<TierStore> shared)
      : stores_{std::move(local), std::move(shared)},
        name_(fmt::format("{},{}", stores_[kLocal]->name(), stores_[kShared]->name())) {}

  ~LayeredStore() override {
    std::vector<TierDone> done;
    for (take_done(done); !jobs_.empty(); take_done(done)) wait(std::chrono::milliseconds(1));
  }

  std::string_view name() const override { return name_; }
  int layers() const override { return 2; }
  const TierStore& layer(int number) const override { return *at(stores_, number); }

  void begin_transfer(const TierPrompt& prompt) override {
    for (auto& store : stores_) store->begin_transfer(prompt);
  }
  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void end_transfer(uint64_t transfer) override {
    for (auto& store : stores_) store->end_transfer(transfer);
  }
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;
  void touch(std::span<const TierKey> keys) override;
  void sync() override;
  void clear() override;
  TierStats stats() const override;

 private:
  struct Job {
    TierJob job = {};
    TierDone done = {};
    std::vector<TierKey> keys = {};    // kFind
    std::vector<size_t> missing = {};  // kFind: indexes of the keys asked of the shared store
    int waits_for = 0;                 // layers that have not answered
    bool answered = false;  // the caller has its TierDone, even if answers are still to come
    Clock::time_point until = Clock::time_point::max();
  };
  using Jobs = std::unordered_map<uint64_t, Job>;

  void take(int layer, TierDone& done, std::vector<TierDone>& ended);
  // Each returns whether the layers are done with the job.
  bool take_found(int layer, const TierDone& done, Job& job);
  bool take_read(int layer, const TierDone& done, Job& job);
  void take_written(int layer, const TierDone& done, Job& job);
  bool shares(const TierJob& job, int64_t bytes) const;
  void answer(Job& job, std::vector<TierDone>& ended);

  std::array<std::unique_ptr<TierStore>, 2> stores_;
  const std::string name_;
  Jobs jobs_;
  std::vector<TierDone> taken_;
  std::array<int64_t, 2> waiting_ = {};  // number of jobs in each store
  int64_t impatient_ = 0;                // finds with a time limit
  int64_t shared_writing_bytes_ = 0;
  Clock::time_point shared_next_ = {};
};

int64_t bytes_of(const TierJob& job) {
  int64_t bytes = 0;
  for (const TierPiece& piece : job.pieces) bytes += piece.bytes;
  return bytes;
}

void LayeredStore::find(const TierQuestion& question) {
  Job& job = jobs_[question.id];
  CHECK(job.waits_for == 0, "two jobs {}", question.id);
  job = {.job = {.transfer = question.transfer, .record = {}, .pieces = {}},
         .done = {.id = question.id, .operation = TierOperation::kFind},
         .keys = {question.keys.begin(), question.keys.end()},
         .waits_for = 1};
  ++waiting_[kLocal];
  stores_[kLocal]->find(question);
}

void LayeredStore::read(const TierJob& job) {
  TierDone nowhere{
      .id = job.id, .operation = TierOperation::kRead, .outcome = TierOutcome::kAbsent};
  jobs_[job.id] = {.job = job, .done = nowhere, .waits_for = 1};
  ++at(waiting_, job.layer);
  at(stores_, job.layer)->read(job);
}

bool LayeredStore::shares(const TierJob& job, int64_t bytes) const {
  return job.share && !stores_[kShared]->computes() && Clock::now() >= shared_next_ &&
         (shared_writing_bytes_ == 0 || shared_writing_bytes_ + bytes <= kSharedWritingBytesMax);
}

void LayeredStore::write(const TierJob& job) {
  int64_t bytes = bytes_of(job);
  bool share = shares(job, bytes);
  jobs_[job.id] = {
      .job = job,
      .done = {.id = job.id, .operation = TierOperation::kWrite, .outcome = TierOutcome::kRefused},
      .waits_for = share ? 2 : 1};
  ++waiting_[kLocal];
  stores_[kLocal]->write(job);
  if (!share) return;
  shared_writing_bytes_ += bytes;
  ++waiting_[kShared];
  stores_[kShared]->write(job);
}

void LayeredStore::take_done(std::vector<TierDone>& done) {
  done.clear();
  for (int layer : {kLocal, kShared}) {
    at(stores_, layer)->take_done(taken_);
    for (TierDone& each : taken_) take(layer, each, done);
  }
  if (impatient_ == 0) return;
  Clock::time_point now = Clock::now();
  for (auto& [id, job] : jobs_) {
    if (job.until < now) answer(job, done);
  }
}

void LayeredStore::take(int layer, TierDone& done, std::vector<TierDone>& ended) {
  auto found = jobs_.find(done.id);
  CHECK(found != jobs_.end(), "an answer to nothing");
  Job& job = found->second;
  --at(waiting_, layer);
  at(job.done.work, layer) = done.work[0];
  bool over = true;
  switch (done.operation) {
    case TierOperation::kFind:
      over = take_found(layer, done, job);
      break;
    case TierOperation::kRead:
      over = take_read(layer, done, job);
      break;
    case TierOperation::kWrite:
      take_written(layer, done, job);
      over = --job.waits_for == 0;
      break;
  }
  if (!over) return;
  answer(job, ended);
  jobs_.erase(found);
}

void LayeredStore::answer(Job& job, std::vector<TierDone>& ended) {
  if (std::exchange(job.answered, true)) return;
  if (std::exchange(job.until, Clock::time_point::max()) != Clock::time_point::max()) --impatient_;
  ended.push_back(std::move(job.done));
}

// A store that cannot answer has nothing.
bool LayeredStore::take_found(int layer, const TierDone& done, Job& job) {
  if (layer == kShared) {
    if (job.answered || done.outcome != TierOutcome::kDone) return true;
    for (size_t i = 0; i < std::min(done.found.size(), job.missing.size()); ++i) {
      if (done.found[i] != 0) job.done.found[job.missing[i]] = 1 + kShared;
    }
    return true;
  }
  job.done.found = done.found;
  job.done.found.resize(job.keys.size(), 0);
  std::vector<TierKey> missing;
  for (size_t i = 0; i < job.keys.size(); ++i) {
    if (job.done.found[i] != 0) continue;
    job.missing.push_back(i);
    missing.push_back(job.keys[i]);
  }
  if (missing.empty() || stores_[kShared]->stats().health == TierHealth::kOff) return true;
  if (missing.size() < job.keys.size()) {
    job.until = Clock::now() + kFindPatience;
    ++impatient_;
  }
  ++waiting_[kShared];
  stores_[kShared]->find({.id = job.done.id, .transfer = job.job.transfer, .keys = missing});
  return false;
}

bool LayeredStore::take_read(int layer, const TierDone& done, Job& job) {
  // Of two misses, the more informative one.
  bool more = layer == kLocal || done.outcome != TierOutcome::kAbsent;
  if (more) job.done.outcome = done.outcome;
  job.done.layer = layer;
  job.done.unwritten = layer == kShared;
  if (done.outcome == TierOutcome::kDone || layer == kShared) return true;
  if (stores_[kShared]->stats().health == TierHealth::kOff) return true;
  ++waiting_[kShared];
  stores_[kShared]->read(job.job);
  return false;
}

// Written if either of them has it.
void LayeredStore::take_written(int layer, const TierDone& done, Job& job) {
  if (job.done.outcome != TierOutcome::kDone) job.done.outcome = done.outcome;
  if (layer != kShared) return;
  shared_writing_bytes_ -= bytes_of(job.job);
  if (done.outcome != TierOutcome::kDone) shared_next_ = Clock::now() + kSharedPause;
}

void LayeredStore::wait(std::chrono::nanoseconds limit) {
  stores_[waiting_[kLocal] > 0 || waiting_[kShared] == 0 ? kLocal : kShared]->wait(limit);
}

void LayeredStore::touch(std::span<const TierKey> keys) {
  for (auto& store : stores_) store->touch(keys);
}

// Does not wait for a shared store that is still being written to: if it hangs, the local store
// would have no time left to write at shutdown.
void LayeredStore::sync() {
  stores_[kLocal]->sync();
  if (shared_writing_bytes_ == 0) stores_[kShared]->sync();
}

void LayeredStore::clear() {
  for (auto& store : stores_) {
    store->sync();  // or writes that are still queued would follow the clear
    store->clear();
  }
}

TierStats LayeredStore::stats() const {
  TierStats local = stores_[kLocal]->stats();
  if (local.health == TierHealth::kOn) return local;
  TierStats shared = stores_[kShared]->stats();
  return shared.health < local.health ? shared : local;
}

}  // namespace

std::unique_ptr<TierStore> make_layered_store(std::unique_ptr<TierStore> local,
                                              std::unique_ptr<TierStore> shared) {
  return std::make_unique<LayeredStore>(std::move(local), std::move(shared));
}

}  // namespace banyan
