#include "engine/tiers/restores.h"

#include <algorithm>
#include <cstring>
#include <ranges>
#include <utility>

#include "base/signed.h"

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
// The share of each class of units that such transfers may hold.
constexpr double kComputingShare = 0.75;

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
      load_(load, context.store.layers()) {
  for (int i = 0; i < context.store.layers(); ++i) {
    if (computes(i)) load_.of(i) = kNoCost;
  }
}

// ---- Sequences ---------------------------------------------------------------------------------

bool Restores::offer(Sequence& s, const PrefixMatch& match, bool its_turn, int64_t now_ns,
                     FunctionRef<void()> ask) {
  if (s.restore.settled) return false;
  if (s.restore.transfer != 0) {
    s.restore.aside = its_turn && !best_effort_;
    return s.restore.aside;
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
  if (Job* job = sharing(*transfer)) {
    attach(*job, s, match, job->transfer->in_common(*transfer));
    s.restore.aside = its_turn;
    return its_turn;
  }
  Job& job = jobs_[last_];
  job.transfer = std::move(transfer);
  job.length = s.length();
  job.until_ns = now_ns + wait_ns(job, load_.find_s());
  job.transfer->find();
  ask();
  if (job.transfer->stage() == Transfer::Stage::kFound) {
    --found_;
    UnitCounts endless;
    endless.fill(INT64_MAX);
    RestorePlan plan = job.transfer->plan(job.length, config_.prefetch_tokens_min, bytes_ahead(),
                                          endless, load_, prefill_);
    if (plan.end == 0) {
      context_.stats.misses[CacheStorageStats::kCheaperToCompute] += plan.too_dear ? 1 : 0;
      s.restore.settled = true;
      jobs_.erase(last_);
      return false;
    }
    ++found_;
    job.pages = std::max<int64_t>(0, plan.end / page - match.deepest->end / page);
  }
  share(job);
  attach(job, s, match, kAllOfIt);
  s.restore.aside = its_turn;
  return its_turn;
}

Restores::Job* Restores::sharing(const Transfer& transfer) {
  if (by_key_.empty()) return nullptr;
  for (const TierKey& key : transfer.keys()) {
    auto found = by_key_.find(key);
    if (found == by_key_.end()) continue;
    Job& job = jobs_.at(found->second);
    if (job.transfer->in_common(transfer) > job.transfer->published()) return &job;
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
  s.restore.end = job.transfer->published();
  for (size_t i = 0; i < s.restore.layers.size(); ++i) {
    s.restore.layers[i] += job.transfer->layer_tokens()[i];
  }
}

void Restores::forget(Sequence& s) {
  std::erase(ready_, &s);
  s.restore.aside = false;
  s.restore.settled = true;
  auto found = jobs_.find(s.restore.transfer);
  if (found == jobs_.end()) return;
  std::erase(found->second.waiting, &s);
  let_go(s, found->second);
  if (found->second.waiting.empty()) {
    unshare(found->second);  // no other sequence may join a transfer that stops
    found->second.transfer->stop();
  }
}

// No sequence waits for the transfer any longer. `settled`: nothing else is loaded for those that
// did. Others may still try what the transfer did not cover.
void Restores::release(Job& job, bool settled) {
  for (Sequence* s : job.waiting) {
    let_go(*s, job);
    s->restore.settled = settled || s->restore.shared == kAllOfIt;
    if (std::exchange(s->restore.aside, false)) ready_.push_back(s);
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
    if (std::exchange(s->restore.aside, false)) ready_.push_back(s);
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

void Restores::take(const TierDone& done) {
  auto found = jobs_.find(done.id >> kTransferShift);
  if (found == jobs_.end()) return;
  Transfer& transfer = *found->second.transfer;
  if ((done.id & kFindId) == kFindId) {
    transfer.take_found(done);
    for (int i = 0; i < context_.store.layers(); ++i) {
      const TierWork& work = at(done.work, i);
      if (work.done && !computes(i)) load_.of(i).observe_latency(work.seconds);
    }
    ++found_;
    return;
  }
  const TierWork& work = at(done.work, done.layer);
  if (done.outcome == TierOutcome::kDone && !computes(done.layer)) {
    load_.of(done.layer).observe_read(work.bytes, work.seconds);
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
  if (found_ == 0) return 0;
  for (const auto& [number, job] : jobs_) {
    bool others = number != s.restore.transfer;
    if (others && job.transfer->stage() == Transfer::Stage::kFound) pages += job.pages;
  }
  return pages;
}

void Restores::add_coming(const Sequence& s, UnitCounts& coming) const {
  auto found = jobs_.find(s.restore.transfer);
  if (found != jobs_.end()) found->second.transfer->add_held(coming);
}

void Restores::advance(int64_t now_ns, const Room* room) {
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
  return std::ranges::any_of(job.waiting, [](const Sequence* s) { return s->restore.aside; });
}

// False if the transfer is over.
bool Restores::move_on(Job& job, int64_t now_ns, const Room* room) {
  Transfer& transfer = *job.transfer;
  if (transfer.stage() == Transfer::Stage::kFinding) {
    if (is_late(job, now_ns)) {
      ++context_.stats.misses[CacheStorageStats::kTimeout];
      release(job, true);
      unshare(job);
    }
    return true;
  }
  if (transfer.stage() == Transfer::Stage::kFound) {
    if (!job.waiting.empty() && room == nullptr) return true;
    --found_;
    if (job.waiting.empty() || !begin(job, *room, now_ns)) {
      release(job, false);
      return false;
    }
  }
  transfer.publish();
  release_served(job);
  if (transfer.stage() == Transfer::Stage::kOver) {
    if (transfer.published() > 0 && !job.waiting.empty()) context_.stats.saved_s += job.saved_s;
    release(job, false);
    return false;
  }
  int64_t since_ns = now_ns - std::exchange(job.looked_ns, now_ns);
  if (transfer.is_starved()) job.until_ns += since_ns;  // the engine kept the store waiting
  if (is_late(job, now_ns)) {
    ++context_.stats.misses[CacheStorageStats::kTimeout];
    release(job, true);
    unshare(job);
    transfer.stop();
  }
  if (room != nullptr) transfer.submit(reading_bytes_max(static_cast<double>(since_ns) / kNsPerS));
  return true;
}

bool Restores::begin(Job& job, const Room& room, int64_t now_ns) {
  RestorePlan plan = job.transfer->plan(job.length, config_.prefetch_tokens_min, bytes_ahead(),
                                        room_for(job, room()), load_, prefill_);
  if (plan.end == 0) return false;
  job.until_ns = now_ns + wait_ns(job, plan.load_s);
  job.looked_ns = now_ns;
  bool complete = job.transfer->begin(plan.end);
  job.saved_s = job.transfer->computes() ? 0 : plan.saved_s;
  share(job);
  return complete;
}

// What another engine computes may take minutes. Meanwhile a part of the memory stays for others.
UnitCounts Restores::room_for(const Job& job, UnitCounts room) const {
  bool any = false;
  for (int i = 0; i < context_.store.layers(); ++i) any |= computes(i);
  if (!any) return room;
  UnitCounts held = {};
  for (const auto& [number, other] : jobs_) {
    if (&other != &job && other.transfer->computes()) other.transfer->add_held(held);
  }
  for (int c = 0; c < context_.classes().count; ++c) {
    auto most = static_cast<int64_t>(kComputingShare * context_.tree.use(c).total);
    at(room, c) = std::clamp<int64_t>(most - at(held, c), 0, at(room, c));
  }
  return room;
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

bool Restores::somebody_waits() const {
  auto waits = [](const Sequence* s) { return s->restore.aside; };
  return !ready_.empty() || std::ranges::any_of(jobs_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.waiting, waits);
  });
}

void Restores::stop() {
  for (auto& [number, job] : jobs_) {
    if (job.transfer->stage() == Transfer::Stage::kLoading) unshare(job);
    job.transfer->stop();
  }
}

void Restores::stop_newest() {
  for (auto& [number, job] : jobs_ | std::views::reverse) {
    if (job.transfer->stage() != Transfer::Stage::kLoading) continue;
    unshare(job);
    return job.transfer->stop();
  }
}

void Restores::add_held(UnitCounts& held) const {
  for (const auto& [number, job] : jobs_) job.transfer->add_held(held);
}

}  // namespace banyan
