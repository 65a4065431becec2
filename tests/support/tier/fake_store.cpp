#include "support/tier/fake_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace banyan::test {

FakeStore::~FakeStore() {
  CHECK(jobs_.empty(), "somebody left {} jobs behind", jobs_.size());
}

bool FakeStore::chance(double p) {
  return p > 0 && uniform(seed_, draws_++, 7) < p;
}

void FakeStore::add(Job job) {
  auto delay = static_cast<int64_t>((faults_.delay_max + 1) * uniform(seed_, draws_++, 8));
  bool at_once = finds_at_once && job.done.operation == TierOperation::kFind;
  job.due = ticks_ + (at_once ? 0 : delay);
  jobs_.push_back(std::move(job));
}

void FakeStore::find(const TierQuestion& question) {
  Job job{
      .done = {.id = question.id, .operation = TierOperation::kFind, .work = {{{.done = true}}}},
      .record = {},
      .pieces = {}};
  for (const TierKey& key : question.keys) {
    job.done.found.push_back(disk_->records.contains(key) != chance(faults_.lie));
  }
  if (chance(faults_.fail)) {
    job.done.found.clear();
    job.done.outcome = TierOutcome::kFailed;
  }
  add(std::move(job));
}

void FakeStore::read(const TierJob& job) {
  ++reads;
  add({.done = {.id = job.id, .operation = TierOperation::kRead},
       .record = job.record,
       .pieces = job.pieces,
       .transfer = job.transfer});
}

void FakeStore::end_transfer(uint64_t transfer) {
  for (Job& job : jobs_) {
    bool reads = job.done.operation == TierOperation::kRead && job.transfer == transfer;
    if (!reads || !computing) continue;
    job.cut = true;
    job.due = std::min(job.due, ticks_ + 1);
  }
}

// Ancestors first: a record is useless if its parent was never stored.
void FakeStore::write(const TierJob& job) {
  ++writes;
  const TierRecord& record = job.record;
  if (disk_->given.empty()) disk_->empty_path = record.key.unit_class != kPathClass;
  bool first = record.end == std::ssize(record.tokens) || disk_->empty_path;
  first |= disk_->any_order;
  CHECK(first || disk_->given.contains({record.parent, kPathClass}), "a page before its parent");
  CHECK(record.key.unit_class == kPathClass || disk_->empty_path || disk_->any_order ||
            disk_->given.contains({record.key.page, kPathClass}),
        "a unit of class {} before its page", record.key.unit_class);
  disk_->given.insert(record.key);
  add({.done = {.id = job.id, .operation = TierOperation::kWrite},
       .record = job.record,
       .pieces = job.pieces});
}

void FakeStore::read_now(Job& job) {
  auto found = disk_->records.find(job.record.key);
  if (found != disk_->records.end() && chance(faults_.lose)) {
    disk_->records.erase(found);
    found = disk_->records.end();
  }
  TierOutcome& outcome = job.done.outcome;
  if (found == disk_->records.end()) {
    outcome = TierOutcome::kAbsent;
    return;
  }
  const FakeDisk::Record& record = found->second;
  CHECK(record.parent == job.record.parent && record.end == job.record.end &&
            std::ranges::equal(record.tokens, job.record.tokens),
        "one key for two pages");
  bool torn = chance(faults_.tear);
  size_t from = 0, whole = torn ? record.bytes.size() / 2 : record.bytes.size();
  for (const TierPiece& piece : job.pieces) {
    for (size_t i = 0; i < piece.bytes; ++i, ++from) {
      piece.data[i] = from < whole ? record.bytes[from] : std::byte{0x7f};
    }
  }
  CHECK(from == record.bytes.size());
  job.done.work[0] = {.done = true, .bytes = static_cast<int64_t>(from)};
  if (s_per_mib > 0) job.done.work[0] = {.done = true, .bytes = 1 << 20, .seconds = s_per_mib};
  if (torn || record.damaged) outcome = TierOutcome::kChecksum;
  if (chance(faults_.fail)) outcome = chance(0.5) ? TierOutcome::kTimeout : TierOutcome::kFailed;
}

void FakeStore::write_now(Job& job) {
  if (chance(faults_.refuse)) {
    job.done.outcome = chance(0.5) ? TierOutcome::kRefused : TierOutcome::kFailed;
    return;
  }
  FakeDisk::Record record{.parent = job.record.parent,
                          .end = job.record.end,
                          .tokens = {job.record.tokens.begin(), job.record.tokens.end()},
                          .bytes = {}};
  for (const TierPiece& piece : job.pieces) {
    record.bytes.insert(record.bytes.end(), piece.data, piece.data + piece.bytes);
  }
  job.done.work[0] = {.done = true, .bytes = std::ssize(record.bytes)};
  if (chance(faults_.damage)) {  // a bit flips, which the checksum detects
    record.damaged = true;
    record.bytes[record.bytes.size() / 3] ^= std::byte{4};
  }
  if (!chance(faults_.lose)) disk_->records.insert_or_assign(job.record.key, std::move(record));
}

void FakeStore::carry_out(Job& job) {
  if (job.cut) {
    job.done.outcome = TierOutcome::kFailed;
    return;
  }
  if (job.done.operation == TierOperation::kRead) read_now(job);
  if (job.done.operation == TierOperation::kWrite) write_now(job);
}

void FakeStore::take_done(std::vector<TierDone>& done) {
  done.clear();
  ++ticks_;
  std::erase_if(jobs_, [&](Job& job) {
    if (job.due >= ticks_) return false;
    carry_out(job);
    done.push_back(std::move(job.done));
    return true;
  });
  if (chance(0.5)) std::ranges::reverse(done);
}

void FakeStore::wait(std::chrono::nanoseconds limit) {
  ++ticks_;
  now_ns_ += limit.count();
}

void FakeStore::touch(std::span<const TierKey> keys) {
  touched.assign(keys.begin(), keys.end());
}

TierStats FakeStore::stats() const {
  TierStats stats{.health = health};
  for (const auto& [key, record] : disk_->records) {
    auto c = static_cast<size_t>(key.unit_class);
    ++stats.units[c];
    stats.bytes[c] += std::ssize(record.bytes);
  }
  return stats;
}

}  // namespace banyan::test
