#include "replay/key_store.h"

#include <cstring>
#include <utility>

#include "base/signed.h"

namespace banyan {

// A page's key is a digest already.
size_t KeyStore::KeyHash::operator()(const TierKey& key) const noexcept {
  size_t hash = 0;
  std::memcpy(&hash, key.page.bytes.data(), sizeof hash);
  return hash ^ as_size(key.unit_class);
}

void KeyStore::find(const TierQuestion& question) {
  TierDone done{.id = question.id, .operation = TierOperation::kFind, .work = {{{.done = true}}}};
  for (const TierKey& key : question.keys) done.found.push_back(units_.contains(key));
  done_.push_back(std::move(done));
}

void KeyStore::read(const TierJob& job) {
  bool found = units_.contains(job.record.key);
  done_.push_back({.id = job.id,
                   .operation = TierOperation::kRead,
                   .outcome = found ? TierOutcome::kDone : TierOutcome::kAbsent});
}

void KeyStore::write(const TierJob& job) {
  done_.push_back({.id = job.id, .operation = TierOperation::kWrite});
  if (auto found = units_.find(job.record.key); found != units_.end()) {
    by_use_.splice(by_use_.end(), by_use_, found->second);
    return;
  }
  ++written_;
  units_[job.record.key] = by_use_.insert(by_use_.end(), job.record.key);
  if (std::ssize(units_) <= units_max_) return;
  units_.erase(by_use_.front());
  by_use_.pop_front();
  ++evicted_;
}

void KeyStore::take_done(std::vector<TierDone>& done) {
  done.clear();
  std::swap(done, done_);
}

void KeyStore::touch(std::span<const TierKey> keys) {
  for (const TierKey& key : keys) {
    auto found = units_.find(key);
    if (found != units_.end()) by_use_.splice(by_use_.end(), by_use_, found->second);
  }
}

void KeyStore::clear() {
  units_.clear();
  by_use_.clear();
}

TierStats KeyStore::stats() const {
  return {.health = TierHealth::kOn, .evicted_units = evicted_};
}

}  // namespace banyan
