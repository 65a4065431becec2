#include "tier/host_store.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/signed.h"
#include "tier/disk/slot_table.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class HostStore final : public TierStore {
 public:
  HostStore(const DeviceQueue& queue, const HostUnits& units, std::unique_ptr<TierStore> below);
  ~HostStore() override { drain(); }

  std::string_view name() const override { return "host"; }
  int layers() const override { return below_ == nullptr ? 1 : 1 + below_->layers(); }
  const TierStore& layer(int number) const override {
    return number == 0 ? *this : below_->layer(number - 1);
  }

  void begin_transfer(const TierPrompt& prompt) override {
    if (below_ != nullptr) below_->begin_transfer(prompt);
  }
  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override;
  void end_transfer(uint64_t transfer) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;
  void touch(std::span<const TierKey> keys) override;
  void sync() override;
  void clear() override;
  TierStats stats() const override;

 private:
  struct Slots {
    SlotTable table;
    std::vector<bool> below;  // per slot: the store below has it too
    HostBlock memory;
    size_t unit_bytes = 0;
  };
  // A unit on its way from the device, or one that has arrived and waits for those before it, so
  // that the store below gets ancestors first.
  struct Copy {
    TierJob job;
    std::vector<PrefixToken> tokens;  // the job's record's
    uint32_t slot = 0;
    bool here = false;
    uint64_t mark = 0;
    Clock::time_point begun;
  };
  // A job of the store below.
  struct Below {
    TierJob job;
    std::vector<PrefixToken> tokens;  // of a write's record
    std::vector<size_t> missing;      // of a find: indexes of the keys asked of the store below
    std::vector<uint8_t> found;
    uint32_t slot = 0;
    TierPiece piece;
  };

  Slots* slots_of(int unit_class);
  std::optional<uint32_t> find_slot(const TierKey& key);
  std::optional<uint32_t> take_slot(int unit_class);
  std::byte* row(const TierKey& key, uint32_t slot);
  void put(const TierRecord& record, uint32_t slot, bool below);
  bool below_has(int unit_class, uint32_t slot) {
    return below_ == nullptr || slots_of(unit_class)->below[slot];
  }
  void upload(const TierJob& job, uint32_t slot, TierDone& done);
  bool read_below(const TierJob& job);
  void write_below(const TierJob& job, std::vector<PrefixToken> tokens, uint32_t slot);
  Below& begin_below(const TierJob& job, uint32_t slot);
  // Handles what the device and the store below have finished.
  void advance();
  void take_below(TierDone& ended);
  void drain();

  const DeviceQueue& queue_;
  const StateClasses classes_;
  std::unique_ptr<TierStore> below_;
  PerClass<Slots> slots_;
  std::deque<Copy> copies_;      // in the queue's order
  std::deque<TierJob> waiting_;  // reads that wait for a slot
  std::unordered_map<uint64_t, Below> jobs_below_;
  std::vector<TierDone> done_, taken_;
  uint64_t last_below_ = 0, writes_ = 0;
  int64_t evicted_ = 0;
};

HostStore::HostStore(const DeviceQueue& queue, const HostUnits& units,
                     std::unique_ptr<TierStore> below)
    : queue_(queue), classes_(units.classes), below_(std::move(below)) {
  for (int c = 0; c < classes_.count; ++c) {
    if (units.bytes[c] == 0 || units.slots[c] == 0) continue;
    Slots& slots = slots_[c];
    slots.unit_bytes = as_size(units.bytes[c]);
    slots.memory = HostBlock(queue, slots.unit_bytes * as_size(units.slots[c]));
    slots.table.grow(units.slots[c], false);
    slots.below.resize(as_size(units.slots[c]));
  }
}

HostStore::Slots* HostStore::slots_of(int unit_class) {
  Slots& slots = at(slots_, unit_class);
  return slots.unit_bytes == 0 ? nullptr : &slots;
}

std::optional<uint32_t> HostStore::find_slot(const TierKey& key) {
  Slots* slots = slots_of(key.unit_class);
  return slots == nullptr ? std::nullopt : slots->table.find(key.page);
}

std::byte* HostStore::row(const TierKey& key, uint32_t slot) {
  Slots& slots = *slots_of(key.unit_class);
  return slots.memory.data() + slot * slots.unit_bytes;
}

// Units that are useless without an evicted page are dropped with it.
std::optional<uint32_t> HostStore::take_slot(int unit_class) {
  Slots* slots = slots_of(unit_class);
  if (slots == nullptr) return std::nullopt;
  if (auto slot = slots->table.take_free()) return slot;
  auto oldest = slots->table.oldest();
  if (!oldest) return std::nullopt;
  PageKey page = slots->table.entry(*oldest).key;
  slots->table.give_up(*oldest);
  ++evicted_;
  for (int c = 0; unit_class == kPathClass && c < classes_.count; ++c) {
    if (c == kPathClass) continue;
    auto slot = find_slot({page, c});
    if (!slot) continue;
    slots_of(c)->table.give_up(*slot);
    ++evicted_;
  }
  return slots->table.take_free();
}

void HostStore::put(const TierRecord& record, uint32_t slot, bool below) {
  slots_of(record.key.unit_class)->below[slot] = below;
  (void)slots_of(record.key.unit_class)
      ->table.put({.key = record.key.page,
                   .parent = record.parent,
                   .end = record.end,
                   .slot = slot,
                   .used_s = 0,
                   .write_number = ++writes_,
                   .live = true});
}

void HostStore::find(const TierQuestion& question) {
  std::span<const TierKey> keys = question.keys;
  TierDone done{.id = question.id, .operation = TierOperation::kFind, .work = {{{.done = true}}}};
  std::vector<size_t> missing;
  std::vector<TierKey> asked;
  for (size_t i = 0; i < keys.size(); ++i) {
    done.found.push_back(find_slot(keys[i]) ? 1 : 0);
    if (done.found.back() != 0) continue;
    missing.push_back(i);
    asked.push_back(keys[i]);
  }
  if (missing.empty() || below_ == nullptr) return done_.push_back(std::move(done));
  TierJob job{.id = question.id, .record = {}, .pieces = {}};
  Below& below = begin_below(job, 0);
  below.missing = std::move(missing);
  below.found = std::move(done.found);
  below_->find({.id = last_below_, .transfer = question.transfer, .keys = asked});
}

// Copies into the device's rows given by `pieces`.
void HostStore::upload(const TierJob& job, uint32_t slot, TierDone& done) {
  Clock::time_point begin = Clock::now();
  const std::byte* from = row(job.record.key, slot);
  for (const TierPiece& piece : job.pieces) {
    queue_.upload(piece.data, from, piece.bytes);
    from += piece.bytes;
  }
  int64_t bytes = slots_of(job.record.key.unit_class)->unit_bytes;
  done.work[0] = {.done = true, .bytes = bytes, .seconds = seconds_since(begin)};
}

void HostStore::read(const TierJob& job) {
  TierDone done{.id = job.id, .operation = TierOperation::kRead};
  if (auto slot = find_slot(job.record.key)) {
    upload(job, *slot, done);
    done.unwritten = !below_has(job.record.key.unit_class, *slot);
    slots_of(job.record.key.unit_class)->table.touch(*slot, 0);
  } else if (below_ == nullptr) {
    done.outcome = TierOutcome::kAbsent;
  } else {
    if (!waiting_.empty() || !read_below(job)) waiting_.push_back(job);
    return;
  }
  done_.push_back(std::move(done));
}

void HostStore::end_transfer(uint64_t transfer) {
  if (below_ != nullptr) below_->end_transfer(transfer);
}

HostStore::Below& HostStore::begin_below(const TierJob& job, uint32_t slot) {
  Below& below = jobs_below_[++last_below_];
  below.job = job;
  below.slot = slot;
  if (Slots* slots = slots_of(job.record.key.unit_class)) {
    below.piece = {.data = row(job.record.key, slot), .bytes = slots->unit_bytes};
  }
  return below;
}

// False if no slot is free.
bool HostStore::read_below(const TierJob& job) {
  auto slot = take_slot(job.record.key.unit_class);
  if (!slot) return false;
  Below& below = begin_below(job, *slot);
  below_->read({.id = last_below_,
                .transfer = job.transfer,
                .record = job.record,
                .pieces = {&below.piece, 1},
                .layer = std::max(0, job.layer - 1)});
  return true;
}

// From now on the record belongs to this store; the slot is pinned until it is written.
void HostStore::write_below(const TierJob& job, std::vector<PrefixToken> tokens, uint32_t slot) {
  slots_of(job.record.key.unit_class)->table.pin(slot);
  Below& below = begin_below(job, slot);
  below.tokens = std::move(tokens);
  TierRecord record = job.record;
  record.tokens = below.tokens;
  below_->write(
      {.id = last_below_, .record = record, .pieces = {&below.piece, 1}, .share = job.share});
}

void HostStore::write(const TierJob& job) {
  TierDone done{.id = job.id, .operation = TierOperation::kWrite, .work = {{{.done = true}}}};
  std::vector<PrefixToken> tokens(job.record.tokens.begin(), job.record.tokens.end());
  auto slot = find_slot(job.record.key);
  bool here = slot.has_value();
  if (here) {
    SlotTable& table = slots_of(job.record.key.unit_class)->table;
    table.touch(*slot, 0);
    done_.push_back(std::move(done));
    if (below_ == nullptr) return;
    table.pin(*slot);
  } else if (slot = take_slot(job.record.key.unit_class); !slot) {
    done.outcome = TierOutcome::kRefused;
    return done_.push_back(std::move(done));
  }
  Copy& copy = copies_.emplace_back();
  copy.job = job;
  copy.tokens = std::move(tokens);
  copy.slot = *slot;
  copy.here = here;
  copy.begun = Clock::now();
  copy.mark = queue_.mark();
  if (here) return;
  std::byte* to = row(job.record.key, *slot);
  for (const TierPiece& piece : job.pieces) {
    queue_.download(to, piece.data, piece.bytes);
    to += piece.bytes;
  }
  copy.mark = queue_.mark();
}

void HostStore::advance() {
  while (!copies_.empty() && queue_.reached(copies_.front().mark)) {
    Copy copy = std::move(copies_.front());
    copies_.pop_front();
    if (copy.here) {
      write_below(copy.job, std::move(copy.tokens), copy.slot);
      slots_of(copy.job.record.key.unit_class)->table.unpin(copy.slot);
      continue;
    }
    put(copy.job.record, copy.slot, false);
    int64_t bytes = slots_of(copy.job.record.key.unit_class)->unit_bytes;
    TierDone done{.id = copy.job.id, .operation = TierOperation::kWrite};
    done.work[0] = {.done = true, .bytes = bytes, .seconds = seconds_since(copy.begun)};
    done_.push_back(std::move(done));
    auto slot = find_slot(copy.job.record.key);
    if (below_ != nullptr && slot) write_below(copy.job, std::move(copy.tokens), *slot);
  }
  if (below_ == nullptr) return;
  below_->take_done(taken_);
  for (TierDone& ended : taken_) take_below(ended);
  while (!waiting_.empty() && read_below(waiting_.front())) waiting_.pop_front();
}

// Its work is reported for the layers below this one.
void HostStore::take_below(TierDone& ended) {
  auto found = jobs_below_.find(ended.id);
  CHECK(found != jobs_below_.end(), "an answer to nothing");
  Below below = std::move(found->second);
  jobs_below_.erase(found);
  TierDone done{.id = below.job.id, .operation = ended.operation, .outcome = ended.outcome};
  std::copy_n(ended.work.begin(), ended.work.size() - 1, done.work.begin() + 1);
  if (ended.operation == TierOperation::kWrite) {
    Slots& slots = *slots_of(below.job.record.key.unit_class);
    if (ended.outcome == TierOutcome::kDone) slots.below[below.slot] = true;
    slots.table.unpin(below.slot);
    return;
  }
  if (ended.operation == TierOperation::kFind) {
    done.found = std::move(below.found);
    bool knows = ended.outcome == TierOutcome::kDone && ended.found.size() == below.missing.size();
    for (size_t i = 0; knows && i < below.missing.size(); ++i) {
      if (ended.found[i] != 0) done.found[below.missing[i]] = narrow<uint8_t>(ended.found[i] + 1);
    }
    done.outcome = TierOutcome::kDone;
    done.work[0].done = true;
    return done_.push_back(std::move(done));
  }
  done.layer = ended.layer + 1;
  done.unwritten = ended.unwritten;
  if (ended.outcome == TierOutcome::kDone) {
    TierDone copied;
    upload(below.job, below.slot, copied);
    put(below.job.record, below.slot, !ended.unwritten);
  } else {
    slots_of(below.job.record.key.unit_class)->table.give_up(below.slot);
  }
  done_.push_back(std::move(done));
}

void HostStore::take_done(std::vector<TierDone>& done) {
  advance();
  done.clear();
  std::swap(done, done_);
}

// There is nothing else to do, so waiting for copies costs nothing.
void HostStore::wait(std::chrono::nanoseconds limit) {
  if (!done_.empty()) return;
  if (!copies_.empty()) return queue_.synchronise();
  if (below_ != nullptr) below_->wait(limit);
}

void HostStore::touch(std::span<const TierKey> keys) {
  for (const TierKey& key : keys) {
    if (auto slot = find_slot(key)) slots_of(key.unit_class)->table.touch(*slot, 0);
  }
  if (below_ != nullptr) below_->touch(keys);
}

void HostStore::sync() {
  if (!copies_.empty()) queue_.synchronise();
  advance();
  if (below_ != nullptr) below_->sync();
}

void HostStore::drain() {
  for (advance(); !copies_.empty() || !jobs_below_.empty(); advance()) {
    if (!copies_.empty()) queue_.synchronise();
    if (below_ != nullptr) below_->wait(std::chrono::milliseconds(1));
  }
}

void HostStore::clear() {
  drain();
  for (Slots& slots : slots_) {
    int64_t count = slots.table.size();
    slots.table = {};
    slots.table.grow(count, false);
  }
  if (below_ != nullptr) below_->clear();
}

TierStats HostStore::stats() const {
  TierStats stats{.health = TierHealth::kOn, .evicted_units = evicted_};
  for (size_t c = 0; c < slots_.size(); ++c) {
    int64_t bytes = slots_[c].unit_bytes;
    stats.units[c] = slots_[c].table.live();
    stats.bytes[c] = stats.units[c] * bytes;
    stats.capacity_bytes += slots_[c].table.size() * bytes;
  }
  return stats;
}

}  // namespace

std::unique_ptr<TierStore> make_host_store(const DeviceQueue& queue, const HostUnits& units,
                                           std::unique_ptr<TierStore> below) {
  return std::make_unique<HostStore>(queue, units, std::move(below));
}

}  // namespace banyan
