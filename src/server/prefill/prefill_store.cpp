#include "server/prefill/prefill_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"
#include "server/prefill/prefill_run.h"

namespace banyan {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

// How long workers may take to answer for the first time before that is called trouble.
constexpr auto kGreeting = std::chrono::seconds(3);
constexpr auto kComplaintInterval = std::chrono::seconds(10);

RouteConfig route_of(RouteConfig route, const TierStates& states) {
  route.state_digest = states.digest.value().hex();
  route.migrations_max = 0;   // prefill_run.h does that, as it has states to fetch again
  route.queue_timeout_s = 1;  // to wait longer is no better than to compute the prompt
  return route;
}

class PrefillStore final : public TierStore {
 public:
  PrefillStore(const PrefillConfig& config, const TierStates& states)
      : tokens_min_(config.tokens_min), states_(states) {}
  ~PrefillStore() override;

  Status start(const RouteConfig& route);

  std::string_view name() const override { return "prefill"; }
  bool computes() const override { return true; }
  void begin_transfer(const TierPrompt& prompt) override;
  void find(const TierQuestion& question) override;
  void read(const TierJob& job) override;
  void write(const TierJob& job) override {
    finish({.id = job.id, .operation = TierOperation::kWrite, .outcome = TierOutcome::kRefused});
  }
  void end_transfer(uint64_t transfer) override;
  void take_done(std::vector<TierDone>& done) override;
  void wait(std::chrono::nanoseconds limit) override;
  void touch(std::span<const TierKey>) override {}
  void sync() override {}
  void clear() override {}
  TierStats stats() const override;

 private:
  // A transfer, on the caller's thread.
  struct Asked {
    std::shared_ptr<const PrefillPrompt> prompt;
    int64_t base = 0, end = 0;
    bool runs = false;
  };

  void finish(TierDone done);
  bool is_worth_it(const Asked& asked, std::span<const TierKey> keys) const;
  void run();
  void read_now(uint64_t transfer, const TierJob& job);
  void tick();
  void look_at_workers();
  std::string trouble_of_workers() const;
  void complain(const std::string& why);

  const int64_t tokens_min_;
  const TierStates states_;
  std::unordered_map<uint64_t, Asked> asked_;

  // Of the thread.
  asio::io_context io_{1};
  asio::steady_timer timer_{io_};
  std::unique_ptr<RemoteGenerator> workers_;
  std::unique_ptr<PrefillContext> context_;
  std::unordered_map<uint64_t, std::shared_ptr<PrefillRun>> runs_;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point complained_ = {};
  std::string told_ = "nothing yet";  // the last trouble that the log has
  bool stopping_ = false;

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<TierDone> done_;
  TierHealth health_ = TierHealth::kOff;
  std::thread thread_;
};

Status PrefillStore::start(const RouteConfig& route) {
  workers_ = TRY(RemoteGenerator::open(io_, route_of(route, states_), [](const StepReport&) {}));
  context_ = std::make_unique<PrefillContext>(
      PrefillContext{.workers = *workers_,
                     .states = states_,
                     .finish = [this](TierDone done) { finish(std::move(done)); },
                     .failed = [this](const std::string& why) { complain(why); }});
  asio::post(io_, [this] { tick(); });
  thread_ = std::thread([this] { run(); });
  return {};
}

PrefillStore::~PrefillStore() {
  if (!thread_.joinable()) return;
  asio::post(io_, [this] {
    stopping_ = true;
    for (auto& [transfer, run] : runs_) run->close();
    runs_.clear();
    timer_.cancel();
    workers_->stop();
    // Connections that are idle would keep the thread waiting.
    asio::post(io_, [this] { io_.stop(); });
  });
  thread_.join();
}

// ---- The caller's thread ------------------------------------------------------------------------

void PrefillStore::begin_transfer(const TierPrompt& prompt) {
  const StateClasses& classes = states_.classes;
  int64_t whole = std::ssize(prompt.tokens) - 1;
  Asked asked{.base = prompt.base,
              .end = whole / classes.resume_alignment_tokens * classes.resume_alignment_tokens};
  if (asked.end - asked.base < tokens_min_) return;
  auto copy = std::make_shared<PrefillPrompt>(
      PrefillPrompt{.name_space = prompt.name_space, .priority = prompt.priority});
  // With the token after the end, the worker has a snapshot at the end.
  copy->tokens.assign(prompt.tokens.begin(), prompt.tokens.begin() + asked.end + 1);
  for (int32_t page = 0; (page + 1) * classes.page_size_tokens <= asked.end; ++page) {
    copy->pages.emplace(at(prompt.pages, page), page);
  }
  asked.prompt = std::move(copy);
  asked_[prompt.transfer] = std::move(asked);
}

// Whether enough is missing: pages, or positions to compute again because snapshots are gone. A
// store above this one has asked only for what it lacks.
bool PrefillStore::is_worth_it(const Asked& asked, std::span<const TierKey> keys) const {
  const StateClasses& classes = states_.classes;
  bool windows_only = at(states_.unit_bytes, kPathClass) == 0 && !classes.needs_snapshots();
  if (windows_only) return asked.end - asked.base >= tokens_min_;
  int64_t size = classes.page_size_tokens, pages = 0, alignment = classes.resume_alignment_tokens;
  std::set<int64_t> without;  // positions whose snapshot is missing
  for (const TierKey& key : keys) {
    auto page = asked.prompt->pages.find(key.page);
    if (page == asked.prompt->pages.end()) continue;
    if (key.unit_class == kPathClass) ++pages;
    if (!classes[key.unit_class].paged()) without.insert((page->second + 1) * size);
  }
  int64_t resumable = asked.end;
  while (resumable > asked.base && without.contains(resumable)) resumable -= alignment;
  return std::max(pages * size, asked.end - std::max(resumable, asked.base)) >= tokens_min_;
}

void PrefillStore::find(const TierQuestion& question) {
  TierDone done{.id = question.id, .operation = TierOperation::kFind, .work = {{{.done = true}}}};
  done.found.assign(question.keys.size(), 0);
  auto asked = asked_.find(question.transfer);
  if (asked != asked_.end() && stats().health != TierHealth::kOff &&
      is_worth_it(asked->second, question.keys)) {
    const Asked& of = asked->second;
    for (size_t i = 0; i < question.keys.size(); ++i) {
      auto page = of.prompt->pages.find(question.keys[i].page);
      if (page == of.prompt->pages.end()) continue;
      const UnitClass& c = states_.classes[question.keys[i].unit_class];
      int64_t end = (page->second + 1) * states_.classes.page_size_tokens;
      done.found[i] = c.paged() ? end > c.reach_begin(of.end) : end == of.end;
    }
  }
  finish(std::move(done));
}

void PrefillStore::read(const TierJob& job) {
  auto asked = asked_.find(job.transfer);
  if (asked == asked_.end()) {
    return finish(
        {.id = job.id, .operation = TierOperation::kRead, .outcome = TierOutcome::kAbsent});
  }
  if (!std::exchange(asked->second.runs, true)) {
    asio::post(io_, [this, transfer = job.transfer, prompt = asked->second.prompt] {
      if (stopping_) return;
      auto run = std::make_shared<PrefillRun>(*context_, prompt);
      runs_[transfer] = run;
      run->start();
    });
  }
  asio::post(io_, [this, job] { read_now(job.transfer, job); });
}

void PrefillStore::end_transfer(uint64_t transfer) {
  auto asked = asked_.find(transfer);
  if (asked == asked_.end()) return;
  bool runs = asked->second.runs;
  asked_.erase(asked);
  if (!runs) return;
  asio::post(io_, [this, transfer] {
    auto run = runs_.find(transfer);
    if (run == runs_.end()) return;
    run->second->close();
    runs_.erase(run);
  });
}

void PrefillStore::take_done(std::vector<TierDone>& done) {
  done.clear();
  std::lock_guard lock(mutex_);
  std::swap(done, done_);
}

void PrefillStore::wait(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, limit, [this] { return !done_.empty(); });
}

TierStats PrefillStore::stats() const {
  std::lock_guard lock(mutex_);
  return {.health = health_};
}

// ---- Either thread ------------------------------------------------------------------------------

void PrefillStore::finish(TierDone done) {
  {
    std::lock_guard lock(mutex_);
    done_.push_back(std::move(done));
  }
  ended_.notify_all();
}

// ---- The store's thread -------------------------------------------------------------------------

void PrefillStore::run() {
  while (true) {
    try {
      io_.run();
      return;
    } catch (const std::exception& e) {  // a handler ran out of memory; the others continue
      spdlog::error("unhandled exception in the thread of prefill workers (continuing): {}",
                    e.what());
    }
  }
}

void PrefillStore::read_now(uint64_t transfer, const TierJob& job) {
  auto run = runs_.find(transfer);
  if (run != runs_.end()) return run->second->read(job);
  finish({.id = job.id, .operation = TierOperation::kRead, .outcome = TierOutcome::kFailed});
}

void PrefillStore::tick() {
  if (stopping_) return;
  look_at_workers();
  for (auto& [transfer, run] : runs_) run->tick();
  timer_.expires_after(PrefillRun::kTick);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void PrefillStore::look_at_workers() {
  std::string trouble = trouble_of_workers();
  {
    std::lock_guard lock(mutex_);
    health_ = trouble.empty() ? TierHealth::kReadOnly : TierHealth::kOff;
  }
  bool greeting = !trouble.empty() && Clock::now() - begun_ < kGreeting;
  if (greeting || trouble == told_) return;
  told_ = trouble;
  if (trouble.empty()) return spdlog::info("prefill workers compute long prompts");
  spdlog::warn("all prompts are computed here: {}", trouble);
}

// Empty: one of them can be given a prompt.
std::string PrefillStore::trouble_of_workers() const {
  std::string digest = states_.digest.value().hex(), others;
  int64_t count = 0;
  for (const auto& worker : workers_->workers()) {
    if (worker == nullptr) continue;
    ++count;
    const WorkerInfo* info = worker->info();
    if (info == nullptr || info->state == WorkerInfo::State::kLoading) continue;
    if (info->state_digest != digest) {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", worker->url());
      continue;
    }
    if (worker->is_ready()) return {};
  }
  if (others.empty()) return fmt::format("none of {} prefill workers is ready", count);
  return fmt::format(
      "the states of {} cannot be used here: start all workers with the same model, options, "
      "program and kernels, and these with --disaggregation-mode prefill (`banyan inspect "
      "--digest` lists what counts)",
      others);
}

void PrefillStore::complain(const std::string& why) {
  if (Clock::now() - complained_ < kComplaintInterval) return;
  complained_ = Clock::now();
  spdlog::warn("a prompt, or a part of it, is computed here and not by a prefill worker: {}", why);
}

}  // namespace

Result<std::unique_ptr<TierStore>> make_prefill_store(const PrefillConfig& config,
                                                      const TierStates& states) {
  auto store = std::make_unique<PrefillStore>(config, states);
  TRY(store->start(config.route));
  return store;
}

}  // namespace banyan
