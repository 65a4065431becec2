#include "replay/replay.h"

#include <algorithm>
#include <chrono>
#include <queue>
#include <utility>

#include "base/check.h"
#include "base/signed.h"
#include "engine/tiers/tiers.h"
#include "replay/key_store.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

// A cold request finds at most 1 / kColdDivisor of its prompt.
constexpr int64_t kColdDivisor = 10;

class Replay {
 public:
  Replay(const Trace& trace, const ReplayConfig& config)
      : trace_(trace),
        config_(config),
        scheduler_(config.scheduler),
        arrivals_(trace.requests.size()),
        next_turn_(trace.requests.size(), -1) {
    if (config.storage_pages > 0) open_storage();
    for (size_t i = 0; i < trace.requests.size(); ++i) {
      int64_t after = trace.requests[i].after;
      if (after < 0) {
        coming_.push({arrival_s(i), i});
      } else {
        CHECK(std::exchange(at(next_turn_, after), i) < 0);
      }
    }
  }

  ReplayReport run(const std::function<void(int64_t)>& progress) {
    report_.requests = std::ssize(trace_.requests);
    report_.prompt_tokens = trace_.prompt_tokens();
    while (ended_ < report_.requests) {
      let_arrive();
      decide();
      if (plan_.spans.empty()) {
        if (scheduler_.tiers() != nullptr && scheduler_.tiers()->idle()) continue;
        CHECK(scheduler_.waiting() == 0 && !coming_.empty());
        now_s_ = coming_.top().first;
        continue;
      }
      note_admissions();
      step();
      if (progress) progress(ended_);
    }
    report_.cached_tokens = scheduler_.cached_tokens();
    if (scheduler_.tiers() != nullptr) {
      report_.restored_tokens = scheduler_.tiers()->stats().restored_tokens;
      report_.stored_tokens = store_->written() * config_.scheduler.classes.page_size_tokens;
    }
    report_.retracted = scheduler_.retracted();
    report_.end_s = now_s_;
    std::ranges::sort(report_.cold_wait_s);
    return std::move(report_);
  }

 private:
  struct Arrival {
    double time_s = 0;
    int64_t waiting = 0, admitted = 0, retracted = 0;  // at its arrival, for other requests
    bool is_admitted = false;
  };

  double arrival_s(size_t i) const { return trace_.requests[i].arrival_s / config_.speedup; }

  void open_storage();
  void let_arrive();
  void decide();
  void note_admissions();
  void step();
  void end(Sequence& s);

  const Trace& trace_;
  const ReplayConfig& config_;
  std::vector<std::byte> states_;  // stands for the state pools; nobody reads it
  KeyStore* store_ = nullptr;      // owned by the scheduler's tiers; null: no store
  Scheduler scheduler_;
  StepPlan plan_;
  ReplayReport report_;
  double now_s_ = 0;
  int64_t ended_ = 0;
  std::vector<Arrival> arrivals_;
  std::vector<int64_t> next_turn_;  // the request that follows this one; -1: none
  using Coming = std::pair<double, size_t>;
  std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
};

// The cost model makes loading always win: computing takes a second per token, loading no time.
void Replay::open_storage() {
  const StateClasses& classes = config_.scheduler.classes;
  for (int64_t units : config_.scheduler.units) {
    states_.resize(std::max(states_.size(), as_size(units)));
  }
  PerClass<std::vector<UnitPieces::Pool>> pools;
  for (int c = 0; c < classes.count; ++c) {
    at(pools, c) = {{.data = states_.data(), .unit_bytes = 1}};
  }
  auto store = std::make_unique<KeyStore>(config_.storage_pages);
  store_ = store.get();
  TierSetup setup{.store = std::move(store),
                  .states = StateDigest(Digest()),
                  .config = {.backend = "simulated",
                             .write_policy = config_.storage_write_policy,
                             .flush_s = 0,
                             .prefetch_policy = "wait_complete",
                             .prefetch_tokens_min = 1},
                  .pieces = UnitPieces(std::move(pools)),
                  .prefill = PrefillCost(1, 0, 1),
                  .load = LoadCost(0, 1e18),
                  .now_ns = [this] { return static_cast<int64_t>(now_s_ * 1e9); }};
  scheduler_.use(std::make_unique<Tiers>(scheduler_.tree(), std::move(setup)));
}

void Replay::let_arrive() {
  while (!coming_.empty() && coming_.top().first <= now_s_) {
    auto [time_s, i] = coming_.top();
    coming_.pop();
    const TraceRequest& request = trace_.requests[i];
    auto s = std::make_unique<Sequence>();
    s->id = i;
    s->request.options.priority = -narrow<int>(i);
    s->prompt_tokens = request.prompt_tokens;
    s->tokens_max = request.tokens();
    s->tokens = trace_.prompt_of(request);
    arrivals_[i] = {time_s, scheduler_.waiting(), scheduler_.admitted(), scheduler_.retracted()};
    scheduler_.enqueue(std::move(s));
  }
}

void Replay::decide() {
  int64_t waiting = scheduler_.waiting(), admitted = scheduler_.admitted();
  Clock::time_point begin = Clock::now();
  scheduler_.plan(plan_);
  double time_s = std::chrono::duration<double>(Clock::now() - begin).count();
  if (!plan_.spans.empty())
    report_.decisions.push_back({waiting, scheduler_.admitted() - admitted, time_s});
}

void Replay::note_admissions() {
  for (const PlannedSpan& span : plan_.spans) {
    const Sequence& s = *span.sequence;
    Arrival& arrival = arrivals_[s.id];
    if (std::exchange(arrival.is_admitted, true)) continue;
    report_.order.push_back(s.id);
    bool cold = s.cached_tokens * kColdDivisor <= s.prompt_tokens;
    if (cold) report_.cold_wait_s.push_back(now_s_ - arrival.time_s);
    if (s.followed) continue;
    int64_t ahead = arrival.waiting + scheduler_.retracted() - arrival.retracted;
    double bound = (ahead + 1) * config_.scheduler.aging_period;
    double met = s.admission - arrival.admitted;
    report_.worst_wait_ratio = std::max(report_.worst_wait_ratio, met / bound);
  }
}

void Replay::step() {
  int64_t rows = 0;
  for (const PlannedSpan& span : plan_.spans) rows += span.count;
  now_s_ += config_.step_s + config_.row_s * rows;
  report_.computed_rows += rows;
  ++report_.steps;
  scheduler_.commit(plan_);
  if (config_.check) scheduler_.check();
  for (const PlannedSpan& span : plan_.spans) {
    Sequence& s = *span.sequence;
    if (s.pending() > 0) continue;
    if (s.length() < s.tokens_max) s.tokens.push_back(trace_.requests[s.id].output);
    if (s.length() == s.tokens_max) end(s);
  }
}

void Replay::end(Sequence& s) {
  int64_t next = next_turn_[s.id];
  scheduler_.remove(&s);
  ++ended_;
  if (next < 0) return;
  auto i = as_size(next);
  coming_.push({std::max(now_s_, arrival_s(i)), i});
}

}  // namespace

ReplayReport replay(const Trace& trace, const ReplayConfig& config,
                    const std::function<void(int64_t)>& progress) {
  return Replay(trace, config).run(progress);
}

ReplayConfig one_at_a_time(ReplayConfig config) {
  config.scheduler.policy = SchedulePolicy::kFcfs;
  config.scheduler.running_max = 1;
  // Each request ends before the next arrives.
  config.step_s = config.row_s = 0;
  return config;
}

int64_t pages_for_all(const Trace& trace, int64_t page_size_tokens) {
  int64_t pages = 0;
  for (const TraceRequest& request : trace.requests) {
    pages += (request.tokens() + page_size_tokens - 1) / page_size_tokens;
  }
  return pages;
}

}  // namespace banyan
