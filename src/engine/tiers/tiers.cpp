#include "engine/tiers/tiers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/signed.h"

namespace banyan {
namespace {

constexpr std::chrono::milliseconds kWait(1);
// The store's own statistics may cost it something.
constexpr int64_t kLookEveryNs = kNsPerS / 2;

UnitCounts bytes_of_units(const StateClasses& classes, const UnitPieces& pieces) {
  UnitCounts bytes = {};
  for (int c = 0; c < classes.count; ++c) at(bytes, c) = pieces.bytes(c);
  return bytes;
}

}  // namespace

Tiers::Tiers(RadixTree& tree, TierSetup setup)
    : store_(std::move(setup.store)),
      now_ns_(std::move(setup.now_ns)),
      flush_s_(setup.config.flush_s),
      context_{.tree = tree,
               .store = *store_,
               .keys = NodeKeys(setup.states),
               .pieces = std::move(setup.pieces)},
      writer_(context_, setup.config),
      restores_(context_, setup.config, setup.prefill, setup.load) {
  context_.unit_bytes = bytes_of_units(tree.classes(), context_.pieces);
  context_.stats.layer_count = as_size(store_->layers());
  for (int i = 0; i < store_->layers(); ++i) context_.layer(i).backend = store_->layer(i).name();
}

Tiers::~Tiers() {
  restores_.stop();
  flush();
  while (writer_.writing() > 0 || !restores_.idle()) {
    store_->wait(kWait);
    take_done();
    restores_.advance(now_ns_(), nullptr);
    while (restores_.take_ready() != nullptr) continue;
  }
  store_->sync();
}

void Tiers::flush() {
  int64_t end_ns = now_ns_() + static_cast<int64_t>(flush_s_ * kNsPerS);
  writer_.queue_all();
  for (int64_t now = now_ns_(); now < end_ns && writer_.queued() && !writer_.pauses(now);
       now = now_ns_()) {
    writer_.advance(now, true);
    store_->sync();  // drops the limit on writing time while it waits
    store_->wait(kWait);
    take_done();
  }
  if (writer_.queued() && flush_s_ > 0 && now_ns_() >= end_ns) {
    spdlog::warn(
        "{} s were not enough to write all cached prefixes to the {} store; raise "
        "--hicache-flush-seconds to keep them over a restart",
        flush_s_, store_->name());
  }
}

void Tiers::take_done() {
  store_->take_done(done_);
  for (const TierDone& done : done_) {
    if (done.operation == TierOperation::kWrite) {
      writer_.take(done, now_ns_());
    } else {
      restores_.take(done, now_ns_());
    }
  }
}

void Tiers::advance(Restores::Room room) {
  int64_t now = now_ns_();
  take_done();
  restores_.advance(now, &room);
  if (!std::exchange(was_idle_, false)) writer_.works();
  writer_.advance(now, !restores_.reads());
}

bool Tiers::offer(Sequence& s, const PrefixMatch& match, bool its_turn) {
  return restores_.offer(s, match, its_turn, now_ns_(), [this] { take_done(); });
}

void Tiers::admitted(Sequence& s) {
  restores_.forget(s);
  int64_t loaded = std::min(s.restore.end, s.computed) - s.restore.begin;
  if (s.cached_tokens < 0) {
    s.restored_tokens = s.restore.end > 0 ? std::max<int64_t>(0, loaded) : 0;
    count_restored(s);
  }
  writer_.reused(*s.lease.node());
}

void Tiers::passes(RadixNode& node, bool passing) {
  node.passing = passing;
}

void Tiers::stays(RadixNode& node) {
  node.passing = false;
  writer_.gained(node);
}

void Tiers::forget(Sequence& s) {
  restores_.forget(s);
}

bool Tiers::give_way(bool alone, bool may_wait) {
  if (restores_.stop_newest()) return true;
  if ((!restores_.loading() || !may_wait) && restores_.release_newest()) return true;
  auto awaited = [&] { return restores_.loading() || (alone && writer_.keeps_units()); };
  if (!may_wait || !awaited()) return false;
  take_done();
  restores_.advance(now_ns_(), nullptr);
  if (awaited()) store_->wait(kWait);
  return true;
}

bool Tiers::idle() {
  was_idle_ = true;
  writer_.rest(now_ns_());
  if (restores_.idle()) return false;
  if (!restores_.may_begin()) store_->wait(kWait);
  return true;
}

void Tiers::clear() {
  store_->sync();  // or writes that are still queued would follow the clear
  ++context_.clears;
  store_->clear();
  writer_.forget_stored();
}

const CacheStorageStats& Tiers::stats() {
  CacheStorageStats& stats = context_.stats;
  stats.busy = writer_.busy() || !restores_.idle();
  int64_t now = now_ns_();
  if (stats.layers[0].health.empty() || now - looked_ns_ > kLookEveryNs) {
    looked_ns_ = now;
    for (int i = 0; i < store_->layers(); ++i) look_at(store_->layer(i), context_.layer(i));
  }
  return stats;
}

// A sequence may use less than was loaded for it. What the lower layers gave is then counted first.
void Tiers::count_restored(Sequence& s) {
  int64_t left = s.restored_tokens;
  for (int i = store_->layers() - 1; i >= 0; --i) {
    int64_t of_layer = std::min(left, at(s.restore.layers, i));
    if (i == 0) of_layer = left;
    context_.layer(i).restored_tokens += of_layer;
    if (store_->layer(i).computes()) s.prefilled_tokens += of_layer;
    left -= of_layer;
  }
  s.restored_tokens -= s.prefilled_tokens;
  context_.stats.restored_tokens += s.restored_tokens;
}

void Tiers::look_at(const TierStore& store, CacheLayerStats& stats) {
  TierStats now = store.stats();
  if (stats.health != name(now.health) && !now.trouble.empty()) {
    spdlog::warn("the {} store of cached prefixes is {}: {}", store.name(), name(now.health),
                 now.trouble);
  }
  stats.health = name(now.health);
  stats.units = now.units;
  stats.bytes = now.bytes;
  stats.capacity_bytes = now.capacity_bytes;
  stats.evicted_units = now.evicted_units;
}

void Tiers::add_held(UnitCounts& held) const {
  writer_.add_held(held);
  restores_.add_held(held);
}

}  // namespace banyan
