#include "engine/tiers/restores.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <ranges>
#include <utility>

#include "base/signed.h"
#include "engine/schedule/waiting_queue.h"

namespace banyan {
namespace {

// Bytes of one transfer that are being read at once, at least and at most: what the stores deliver
// during two steps, since more is requested between steps alone.
constexpr int64_t kReadingBytesMin = int64_t{1} << 28, kReadingBytesMax = int64_t{1} << 32;
// The sequence that a transfer was begun for waits for all of it.
constexpr int64_t kAllOfIt = INT64_MAX;
// How long a find or a load may take: a base, and a multiple of the expected time.
constexpr double kPatienceS = 0.05, kPatience = 1.5;
// What another engine computes is preferred to computing it here.
const LoadCost kNoCost(0, 1e18);
// The share of each class of units that such transfers may hold. It may take minutes; meanwhile a
// part of the memory stays for others.
constexpr double kComputingShare = 0.75;
// A store that was too slow is tried again after this long, as if it had not been measured.
constexpr int64_t kMeasureAgainNs = 60 * kNsPerS;

bool is_aside(const Sequence* s) {
  return s->restore.aside;
}

LayerCosts costs_of(const TierStore& store, const LoadCost& each) {
  LayerCosts costs(each, store.layers());
  for (int i = 0; i < store.layers(); ++i) {
    if (store.layer(i).computes()) costs.of(i) = kNoCost;
  }
  return costs;
}

}  // namespace

size_t Restores::KeyHash::operator()(const TierKey& key) const noexcept {
  size_t hash = 0;
  std::memcpy(&hash, key.page.bytes.data(), sizeof(hash));
  return hash + as_size(key.unit_class);
}

Restores::Restores(TierContext& context, const CacheStorageConfig& config,
                   const PrefillCost& prefill, const LoadCost& load)
    : context_(context),
      config_(config),
      best_effort_(config.prefetch_policy == "best_effort"),
      waits_for_ever_(config.prefetch_policy == "wait_complete"),
      prefill_(prefill),
      load_(costs_of(context.store, load)),
      guess_(load_) {}

// ---- Sequences ---------------------------------------------------------------------------------

bool Restores::offer(Sequence& s, const PrefixMatch& match, bool its_turn, int64_t now_ns,
                     FunctionRef<void()> ask) {
  if (s.restore.settled) return false;
  if (s.restore.transfer != 0) {
    bool aside = its_turn && !best_effort_;
    if (aside) wait_from(jobs_.at(s.restore.transfer), now_ns);
    s.restore.aside = aside;
    return aside;
  }
  const StateClasses& classes = context_.classes();
  std::span<const TokenId> tokens = s.reusable(classes.prompt_only);
  int64_t page = classes.page_size_tokens, whole = std::ssize(tokens) / page * page;
  if (whole - match.position() < config_.prefetch_tokens_min) return false;
  s.restore.settled = its_turn && best_effort_;
  if (s.restore.settled || context_.store.stats().health == TierHealth::kOff) return false;
  auto transfer = std::make_unique<Transfer>(context_, ++last_, s.name_space,
                                             std::span(s.tokens).first(as_size(whole + 1)), match,
                                             s.request.options.priority);
  if (Job* job = sharing(*transfer, match.position())) {
    attach(*job, s, match, job->transfer->in_common(*transfer));
    if (its_turn) wait_from(*job, now_ns);
    s.restore.aside = its_turn;
    return its_turn;
  }
  Job& job = jobs_[last_];
  job.transfer = std::move(transfer);
  job.length = s.length();
  job.pages = whole / page - match.deepest->end / page;
  job.until_ns = now_ns + wait_ns(job, load_.find_s());
  job.transfer->find();
  ask();
  if (job.transfer->stage() == Transfer::Stage::kFound) {
    RestorePlan all = plan_all(job, now_ns);
    if (all.end == 0) {
      count_too_dear(all);
      s.restore.settled = true;
      jobs_.erase(last_);
      return false;
    }
  }
  share(job);
  attach(job, s, match, kAllOfIt);
  s.restore.aside = its_turn;
  return its_turn;
}

// The first sequence steps aside for what has begun before. It may wait as long as the rest should
// take.
void Restores::wait_from(Job& job, int64_t now_ns) {
  if (job.transfer->stage() == Transfer::Stage::kFound) return;
  if (std::ranges::any_of(job.waiting, is_aside)) return;
  bool finds = job.transfer->stage() == Transfer::Stage::kFinding;
  double rest_s = finds ? load_.find_s() : load_.seconds(job.transfer->bytes_to_come(), {});
  job.until_ns = std::max(job.until_ns, now_ns + wait_ns(job, rest_s));
}

// One that loads enough of what the tree lacks, which is what follows `position`.
Restores::Job* Restores::sharing(const Transfer& transfer, int64_t position) {
  if (by_key_.empty()) return nullptr;
  uint64_t last = 0;
  for (const TierKey& key : transfer.keys()) {
    auto found = by_key_.find(key);
    if (found == by_key_.end() || found->second == last) continue;
    last = found->second;
    Job& job = jobs_.at(last);
    int64_t there = std::max(position, job.transfer->published());
    int64_t more = job.transfer->in_common(transfer) - there;
    if (more >= std::max<int64_t>(1, config_.prefetch_tokens_min)) return &job;
  }
  return nullptr;
}

void Restores::share(Job& job) {
  unshare(job);
  job.shared = job.transfer->keys();
  for (const TierKey& key : job.shared) by_key_.try_emplace(key, job.transfer->number());
}

void Restores::unshare(Job& job) {
  for (const TierKey& key : job.shared) {
    auto found = by_key_.find(key);
    bool mine = found != by_key_.end() && found->second == job.transfer->number();
    if (mine) by_key_.erase(found);
  }
  job.shared.clear();
}

void Restores::attach(Job& job, Sequence& s, const PrefixMatch& match, int64_t shared) {
  s.restore.transfer = job.transfer->number();
  s.restore.shared = shared;
  if (s.restore.end == 0) s.restore.begin = match.position();
  job.waiting.push_back(&s);
}

// Its share of the transfer is known when it is released.
void Restores::let_go(Sequence& s, const Job& job) {
  s.restore.transfer = 0;
  if (job.transfer->published() <= s.restore.end) return;
  s.restore.lease = job.transfer->lease(s.restore.shared);
  if (std::ranges::find(holders_, &s) == holders_.end()) holders_.push_back(&s);
  s.restore.end = job.transfer->published();
  for (size_t i = 0; i < s.restore.layers.size(); ++i) {
    s.restore.layers[i] += job.transfer->layer_tokens()[i];
  }
}

void Restores::return_to_queue(Sequence& s) {
  if (std::exchange(s.restore.aside, false)) ready_.push_back(&s);
}

void Restores::forget(Sequence& s) {
  std::erase(ready_, &s);
  s.restore.aside = false;
  s.restore.settled = true;
  if (auto found = jobs_.find(s.restore.transfer); found != jobs_.end()) {
    std::erase(found->second.waiting, &s);
    let_go(s, found->second);
    if (found->second.waiting.empty()) {
      unshare(found->second);  // no other sequence may join a transfer that stops
      found->second.transfer->stop();
    }
  }
  std::erase(holders_, &s);
  s.restore.lease.release();
}

// No sequence waits for the transfer any longer. `settled`: for which of them nothing else is
// loaded. The others may still try what the transfer did not cover.
void Restores::release(Job& job, Settled settled) {
  for (Sequence* s : job.waiting) {
    let_go(*s, job);
    bool owns = s->restore.shared == kAllOfIt;
    s->restore.settled = settled == Settled::kAll || (settled == Settled::kOwner && owns);
    return_to_queue(*s);
  }
  job.waiting.clear();
}

// Releases the sequences that wait for no more than has arrived.
void Restores::release_served(Job& job) {
  int64_t published = job.transfer->published();
  size_t waited = job.waiting.size();
  std::erase_if(job.waiting, [&](Sequence* s) {
    if (s->restore.shared > published) return false;
    let_go(*s, job);
    return_to_queue(*s);
    return true;
  });
  if (waited == 0 || !job.waiting.empty()) return;
  unshare(job);
  job.transfer->stop();
}

Sequence* Restores::take_ready() {
  if (ready_.empty()) return nullptr;
  Sequence* s = ready_.back();
  ready_.pop_back();
  return s;
}

// ---- Transfers ---------------------------------------------------------------------------------

void Restores::take(const TierDone& done, int64_t now_ns) {
  auto found = jobs_.find(done.id >> kTransferShift);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  Transfer& transfer = *job.transfer;
  if ((done.id & kFindId) == kFindId) {
    transfer.take_found(done);
    for (int i = 0; i < context_.store.layers(); ++i) {
      const TierWork& work = at(done.work, i);
      if (work.done && !computes(i)) load_.of(i).observe_latency(work.seconds);
    }
    plan_all(job, now_ns);
    return;
  }
  const TierWork& work = at(done.work, done.layer);
  if (done.outcome == TierOutcome::kDone && !computes(done.layer)) {
    load_.of(done.layer).observe_read(work.bytes, work.seconds);
    measured_ns_ = now_ns;
  }
  transfer.take_read(done);
}

int64_t Restores::wait_ns(const Job& job, double load_s) const {
  if (best_effort_ || waits_for_ever_) return INT64_MAX / 2;
  double base = config_.prefetch_timeout_s, more = config_.prefetch_timeout_per_ki_token_s;
  double s = base + more * job.transfer->tokens() / 1024;
  if (base == 0 && more == 0) s = kPatienceS + kPatience * load_s;
  return static_cast<int64_t>(s * kNsPerS);
}

int64_t Restores::reading_bytes_max(double since_s) {
  double bytes_per_s = 0;
  for (int i = 0; i < context_.store.layers(); ++i) {
    if (!computes(i)) bytes_per_s = std::max(bytes_per_s, load_.of(i).bytes_per_s());
  }
  constexpr auto kMin = static_cast<double>(kReadingBytesMin);
  constexpr auto kMax = static_cast<double>(kReadingBytesMax);
  return static_cast<int64_t>(std::clamp(2 * bytes_per_s * since_s, kMin, kMax));
}

LayerBytes Restores::bytes_ahead() const {
  LayerBytes bytes = {};
  for (const auto& [number, job] : jobs_) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] += job.transfer->bytes_to_come()[i];
  }
  return bytes;
}

int64_t Restores::promised_pages(const Sequence& s) const {
  int64_t pages = 0;
  for (const auto& [number, job] : jobs_) {
    if (job.transfer->stage() >= Transfer::Stage::kLoading || job.waiting.empty()) continue;
    if (WaitingQueue::is_ahead(*job.waiting.front(), s)) pages += job.pages;
  }
  return pages;
}

void Restores::add_coming(const Sequence& s, UnitCounts& coming) const {
  auto found = jobs_.find(s.restore.transfer);
  if (found != jobs_.end()) found->second.transfer->add_held(coming);
}

void Restores::advance(int64_t now_ns, const Room* room) {
  for (Sequence* s : holders_) {  // a lease does not hold snapshots: evict others first
    if (s->restore.lease.node() != nullptr) context_.tree.touch_snapshots(s->restore.lease.node());
  }
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    if (move_on(it->second, now_ns, room)) {
      ++it;
    } else {
      unshare(it->second);
      it = jobs_.erase(it);
    }
  }
}

// Whether sequences have waited too long for this stage of the transfer.
bool Restores::is_late(const Job& job, int64_t now_ns) {
  // The store of what another engine computes has limits of its own.
  if (now_ns <= job.until_ns || job.transfer->only_computes()) return false;
  return std::ranges::any_of(job.waiting, is_aside);
}

// False if the transfer is over.
bool Restores::move_on(Job& job, int64_t now_ns, const Room* room) {
  Transfer& transfer = *job.transfer;
  if (transfer.stage() == Transfer::Stage::kFinding) {
    if (is_late(job, now_ns)) {
      ++context_.stats.misses[CacheStorageStats::kTimeout];
      release(job, Settled::kAll);
      unshare(job);
    }
    return true;
  }
  if (transfer.stage() == Transfer::Stage::kFound) {
    if (job.waiting.empty()) return false;
    if (room == nullptr) return true;
    Begun begun = begin(job, *room, now_ns);
    job.lacks_room = begun == Begun::kLater;
    if (job.lacks_room) return true;
    if (begun != Begun::kLoads) {
      release(job, begun == Begun::kAgain ? Settled::kNobody : Settled::kOwner);
      return false;
    }
  }
  transfer.publish();
  release_served(job);
  if (transfer.stage() == Transfer::Stage::kOver) {
    bool saved = transfer.published() > 0 && !job.waiting.empty() && !job.gave_way;
    if (saved) context_.stats.saved_s += job.saved_s;
    release(job, job.gave_way ? Settled::kNobody : Settled::kOwner);
    return false;
  }
  int64_t since_ns = now_ns - std::exchange(job.looked_ns, now_ns);
  if (transfer.is_starved()) job.until_ns += since_ns;  // the engine kept the store waiting
  if (is_late(job, now_ns)) {
    ++context_.stats.misses[CacheStorageStats::kTimeout];
    release(job, Settled::kAll);
    unshare(job);
    transfer.stop();
  }
  if (room == nullptr || std::exchange(job.read_later, false)) return true;
  transfer.submit(reading_bytes_max(static_cast<double>(since_ns) / kNsPerS));
  return true;
}

RestorePlan Restores::plan(const Job& job, const UnitCounts& room, int64_t now_ns) const {
  auto plan_with = [&](const LayerCosts& costs) {
    return job.transfer->plan(job.length, config_.prefetch_tokens_min, bytes_ahead(), room, costs,
                              prefill_);
  };
  RestorePlan plan = plan_with(load_);
  return plan.too_dear && now_ns - measured_ns_ > kMeasureAgainNs ? plan_with(guess_) : plan;
}

// With as much room as it may ever have.
RestorePlan Restores::plan_all(Job& job, int64_t now_ns) const {
  RestorePlan all = plan(job, share_of_units(1), now_ns);
  if (computes(all)) all = plan(job, share_of_units(kComputingShare), now_ns);
  job.pages = job.transfer->missing_pages(all.end);
  return all;
}

void Restores::count_too_dear(const RestorePlan& plan) {
  context_.stats.misses[CacheStorageStats::kCheaperToCompute] += plan.too_dear ? 1 : 0;
}

Restores::Begun Restores::begin(Job& job, const Room& room_of, int64_t now_ns) {
  TierRoom room = room_for(job, room_of());
  auto grown = [&](int c) { return at(room.units, c) > at(job.tried, c); };
  auto classes = std::views::iota(0, context_.classes().count);
  if (job.lacks_room && room.grows && std::ranges::none_of(classes, grown)) return Begun::kLater;
  job.tried = room.units;
  RestorePlan all = plan_all(job, now_ns);
  count_too_dear(all);
  if (all.end == 0) return job.transfer->outdated() ? Begun::kAgain : Begun::kNothing;
  if (computes(all)) {
    job.tried = {};  // what is left of the share grows, too
    UnitCounts left = computing_left(job);
    for (int c : classes) at(room.units, c) = std::min(at(room.units, c), at(left, c));
    job.pages = std::min(job.pages, at(left, kPathClass));  // others may have the rest
  }
  RestorePlan plan = this->plan(job, room.units, now_ns);
  if (plan.end < all.end && room.grows) return Begun::kLater;
  if (plan.end == 0) return Begun::kNothing;
  job.until_ns = now_ns + wait_ns(job, plan.load_s);
  job.looked_ns = now_ns;
  job.read_later = room.read_later;
  if (!job.transfer->begin(plan.end)) return room.grows ? Begun::kAgain : Begun::kNothing;
  if (!computes(plan)) measured_ns_ = now_ns;  // or will be soon
  job.saved_s = job.transfer->computes() ? 0 : plan.saved_s;
  share(job);
  return Begun::kLoads;
}

// Without what those have that will be admitted soon, and what transfers that lacked room before
// will take.
TierRoom Restores::room_for(const Job& job, TierRoom room) const {
  int64_t returned = std::ranges::count_if(holders_, std::not_fn(is_aside));
  room.grows |= returned > 0;
  for (const auto& [number, other] : jobs_) {
    if (&other == &job) continue;
    room.grows |= other.transfer->stage() == Transfer::Stage::kLoading;
    bool before = other.lacks_room && number < job.transfer->number();
    if (before) at(room.units, kPathClass) -= other.pages;
  }
  for (int c = 0; c < context_.classes().count; ++c) {
    bool slots = !context_.classes()[c].paged();  // which a lease does not hold
    at(room.units, c) = std::max<int64_t>(0, at(room.units, c) - (slots ? returned : 0));
  }
  return room;
}

// What others leave of the units that may be held for what another engine computes.
UnitCounts Restores::computing_left(const Job& job) const {
  UnitCounts left = share_of_units(kComputingShare), held = {};
  for (const auto& [number, other] : jobs_) {
    if (&other != &job && other.transfer->computes()) other.transfer->add_held(held);
  }
  for (int c = 0; c < context_.classes().count; ++c) {
    at(left, c) = std::max<int64_t>(0, at(left, c) - at(held, c));
  }
  return left;
}

UnitCounts Restores::share_of_units(double share) const {
  UnitCounts units = {};
  for (int c = 0; c < context_.classes().count; ++c) {
    at(units, c) = static_cast<int64_t>(share * static_cast<double>(context_.tree.use(c).total));
  }
  return units;
}

bool Restores::computes(const RestorePlan& plan) const {
  for (int i = 0; i < context_.store.layers(); ++i) {
    if (computes(i) && at(plan.bytes, i) > 0) return true;
  }
  return false;
}

bool Restores::loading() const {
  return std::ranges::any_of(jobs_, [](const auto& entry) {
    return entry.second.transfer->stage() == Transfer::Stage::kLoading;
  });
}

bool Restores::reads() const {
  return std::ranges::any_of(jobs_, [](const auto& entry) {
    const Transfer& transfer = *entry.second.transfer;
    return transfer.stage() == Transfer::Stage::kLoading && !transfer.only_computes();
  });
}

int64_t Restores::aside() const {
  int64_t count = std::ssize(ready_);
  for (const auto& [number, job] : jobs_) count += std::ranges::count_if(job.waiting, is_aside);
  return count;
}

bool Restores::may_begin() const {
  return !ready_.empty() || std::ranges::any_of(jobs_, [](const auto& entry) {
    return entry.second.transfer->stage() == Transfer::Stage::kFound && !entry.second.lacks_room;
  });
}

bool Restores::others_load(const Sequence& s) const {
  return std::ranges::any_of(jobs_, [&](const auto& entry) {
    return entry.first != s.restore.transfer && !entry.second.lacks_room;
  });
}

void Restores::stop() {
  for (auto& [number, job] : jobs_) {
    if (job.transfer->stage() == Transfer::Stage::kLoading) unshare(job);
    job.transfer->stop();
  }
}

bool Restores::stop_newest() {
  for (auto& [number, job] : jobs_ | std::views::reverse) {
    if (job.transfer->stage() != Transfer::Stage::kLoading) continue;
    unshare(job);
    job.gave_way = true;
    return job.transfer->stop();
  }
  return false;
}

bool Restores::release_newest() {
  if (holders_.empty()) return false;
  Sequence::Restore& restore = holders_.back()->restore;
  restore.lease.release();
  restore.end = 0;
  restore.layers = {};
  restore.settled = false;
  holders_.pop_back();
  return true;
}

void Restores::add_held(UnitCounts& held) const {
  for (const auto& [number, job] : jobs_) job.transfer->add_held(held);
}

}  // namespace banyan
