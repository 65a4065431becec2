#include "llm/engine_thread.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/check.h"
#include "base/error.h"
#include "base/fair_shares.h"
#include "base/log.h"
#include "base/os/memory.h"
#include "base/signed.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Waiting requests may have a deadline, or become runnable after a while.
constexpr std::chrono::milliseconds kWaitWithWork(5);
constexpr std::chrono::milliseconds kWaitWithoutWork(60'000);

// Counts batches that the delivery thread has not run yet; outlives both threads.
class Backlog {
 public:
  explicit Backlog(int max) : max_(max) {}

  // Waits for room, unless stopping.
  void add() {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return count_ < max_ || open_; });
    ++count_;
  }
  void remove() {
    std::lock_guard lock(mutex_);
    --count_;
    room_.notify_one();
  }
  void stop_waiting() {
    std::lock_guard lock(mutex_);
    open_ = true;
    room_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_;
  const int max_;
  int count_ = 0;
  bool open_ = false;
};

// With what the engine thread knows of it.
struct EngineSubmission final : Submission {
  using Submission::Submission;
  std::vector<SequenceId> sequences;
};

// One event, with the data its spans point to.
struct Delivery {
  std::shared_ptr<Submission> submission;
  size_t index = 0;
  TokenEvent event;
  size_t logprobs_begin = 0;   // in EventBatch::logprobs: `top`, then `chosen`
  size_t embedding_begin = 0;  // in EventBatch::embeddings
  bool rejected = false;       // `event.error` has the reason
};

struct EventBatch {
  std::vector<Delivery> deliveries;
  std::vector<TokenLogprob> logprobs;
  std::vector<float> embeddings;
  std::vector<std::function<void()>> done;  // of tasks
  StepReport report;
  bool reports = false;

  bool empty() const { return deliveries.empty() && done.empty() && !reports; }
};

struct SubmitCommand {
  std::shared_ptr<EngineSubmission> submission;
  std::vector<GenerateRequest> requests;
};
struct CancelCommand {
  std::shared_ptr<Submission> submission;  // null: all
  std::optional<size_t> index;             // none: all of it
};
struct TaskCommand {
  std::function<void(Engine&)> task;
  std::function<void()> done;
};
using Command = std::variant<SubmitCommand, CancelCommand, TaskCommand>;

}  // namespace

class EngineThread::Impl {
 public:
  Impl(Engine& engine, Options options)
      : engine_(engine),
        options_(std::move(options)),
        backlog_(std::make_shared<Backlog>(options_.steps_behind_max)),
        thread_([this] { run(); }) {}

  Result<std::shared_ptr<Submission>> submit(std::vector<GenerateRequest> requests,
                                             SubmissionSinks sinks);
  void push(Command command);
  Status ready() const;
  void stop();

 private:
  void run();
  void loop();
  // Waits up to `wait` for commands. False when the thread should end.
  bool take_commands(std::chrono::milliseconds wait);
  void enqueue(Command command);  // with mutex_ held
  void note_progress(bool works);
  void execute(SubmitCommand& command);
  void execute(CancelCommand& command);
  void execute(TaskCommand& command);
  void collect(const std::shared_ptr<Submission>& submission, size_t index,
               const TokenEvent& event);
  void hand_over();
  void end();
  static void deliver(EventBatch& batch);

  Engine& engine_;
  const Options options_;
  const std::shared_ptr<Backlog> backlog_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Command> commands_;
  std::optional<SteadyClock::time_point> works_since_;  // or since the last step; none: idle
  FairShares submissions_waiting_;                      // in commands_
  bool stopping_ = false;

  // Used by the engine thread:
  std::vector<Command> taken_;
  std::unordered_set<SequenceId> live_;
  EventBatch batch_;

  std::jthread thread_;  // last, because it uses all of the above
};

Result<std::shared_ptr<Submission>> EngineThread::Impl::submit(
    std::vector<GenerateRequest> requests, SubmissionSinks sinks) {
  CHECK(!requests.empty() && sinks.event && sinks.rejected);
  auto submission = std::make_shared<EngineSubmission>(requests.size(), std::move(sinks));
  std::lock_guard lock(mutex_);
  if (stopping_) return exhausted("the engine is shutting down");
  const std::string& client = requests[0].options.client;
  if (!submissions_waiting_.admits(client, narrow<int64_t>(options_.submissions_waiting_max))) {
    return exhausted("the submission queue is full ({} requests); retry later",
                     submissions_waiting_.total());
  }
  submissions_waiting_.enter(client);
  enqueue(SubmitCommand{submission, std::move(requests)});
  return submission;
}

void EngineThread::Impl::push(Command command) {
  std::lock_guard lock(mutex_);
  if (!stopping_) enqueue(std::move(command));
}

void EngineThread::Impl::enqueue(Command command) {
  commands_.push_back(std::move(command));
  if (!works_since_) works_since_ = options_.now();
  wake_.notify_one();
}

// A step has ended, or there is nothing to compute.
void EngineThread::Impl::note_progress(bool works) {
  std::lock_guard lock(mutex_);
  works_since_.reset();
  if (works || !commands_.empty()) works_since_ = options_.now();
}

Status EngineThread::Impl::ready() const {
  std::lock_guard lock(mutex_);
  if (!works_since_ || options_.watchdog_timeout_s == 0) return {};
  std::chrono::duration<double> waited = options_.now() - *works_since_;
  if (waited.count() < options_.watchdog_timeout_s) return {};
  return exhausted(
      "the engine has requests but has ended no step for {:.0f} s (--watchdog-timeout {}); restart "
      "the server if it does not continue",
      waited.count(), options_.watchdog_timeout_s);
}

void EngineThread::Impl::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  backlog_->stop_waiting();
  if (thread_.joinable()) thread_.join();
}

void EngineThread::Impl::run() {
  try {
    loop();
  } catch (const std::bad_alloc& e) {  // within a step, which cannot be repeated
    exit_without_memory(e);
  }
}

void EngineThread::Impl::loop() {
  std::chrono::milliseconds wait{0};
  while (take_commands(wait)) {
    for (Command& command : taken_) {
      std::visit([this](auto& c) { execute(c); }, command);
    }
    auto started = SteadyClock::now();
    bool stepped = engine_.step();
    batch_.reports = stepped || !taken_.empty() || !batch_.empty();
    batch_.report = {engine_.stats(), stepped,
                     std::chrono::duration<double>(SteadyClock::now() - started).count()};
    const EngineStats& stats = batch_.report.stats;
    bool requests = stats.running + stats.queued > 0;
    if (stepped || !requests) note_progress(requests);
    wait = stepped                          ? std::chrono::milliseconds(0)
           : requests || stats.storage.busy ? kWaitWithWork
                                            : kWaitWithoutWork;
    taken_.clear();
    hand_over();
  }
  end();
}

bool EngineThread::Impl::take_commands(std::chrono::milliseconds wait) {
  std::unique_lock lock(mutex_);
  auto called = [&] { return stopping_ || !commands_.empty(); };
  if (wait.count() > 0 && !called()) wake_.wait_for(lock, wait, called);
  if (stopping_) return false;
  taken_.swap(commands_);
  submissions_waiting_.clear();
  return true;
}

void EngineThread::Impl::execute(SubmitCommand& command) {
  const auto& submission = command.submission;
  for (size_t i = 0; i < command.requests.size(); ++i) {
    Result<SequenceId> id = engine_.submit(
        std::move(command.requests[i]),
        [this, submission, i](const TokenEvent& event) { collect(submission, i, event); });
    if (!id) {
      batch_.deliveries.push_back(
          {.submission = submission, .event = {.error = id.error()}, .rejected = true});
      for (SequenceId earlier : submission->sequences) engine_.cancel(earlier);
      return;
    }
    submission->sequences.push_back(*id);
    live_.insert(*id);
  }
}

void EngineThread::Impl::execute(CancelCommand& command) {
  if (command.submission == nullptr) {
    for (SequenceId id : live_) engine_.cancel(id);
    return;
  }
  const auto& sequences = static_cast<const EngineSubmission&>(*command.submission).sequences;
  for (size_t i = 0; i < sequences.size(); ++i) {
    if (command.index.value_or(i) == i) engine_.cancel(sequences[i]);
  }
}

void EngineThread::Impl::execute(TaskCommand& command) {
  command.task(engine_);
  if (command.done) batch_.done.push_back(std::move(command.done));
}

void EngineThread::Impl::collect(const std::shared_ptr<Submission>& submission, size_t index,
                                 const TokenEvent& event) {
  if (event.finish != FinishReason::kNone) live_.erase(event.sequence);
  size_t begin = batch_.logprobs.size();
  batch_.logprobs.insert(batch_.logprobs.end(), event.top.begin(), event.top.end());
  batch_.logprobs.insert(batch_.logprobs.end(), event.chosen.begin(), event.chosen.end());
  batch_.deliveries.push_back({submission, index, event, begin, batch_.embeddings.size()});
  batch_.embeddings.insert(batch_.embeddings.end(), event.embedding.begin(), event.embedding.end());
}

void EngineThread::Impl::hand_over() {
  if (batch_.empty()) return;
  for (Delivery& delivery : batch_.deliveries) {
    const TokenLogprob* first = batch_.logprobs.data() + delivery.logprobs_begin;
    delivery.event.top = {first, delivery.event.top.size()};
    delivery.event.chosen = {first + delivery.event.top.size(), delivery.event.chosen.size()};
    delivery.event.embedding = {batch_.embeddings.data() + delivery.embedding_begin,
                                delivery.event.embedding.size()};
  }
  auto batch = std::make_shared<EventBatch>(std::exchange(batch_, {}));
  batch_.deliveries.reserve(batch->deliveries.size());
  backlog_->add();
  options_.post([batch = std::move(batch), backlog = backlog_, on_step = &options_.on_step] {
    deliver(*batch);
    if (batch->reports && *on_step) (*on_step)(batch->report);
    backlog->remove();
  });
}

// Cancels everything and notifies all sinks.
void EngineThread::Impl::end() {
  for (SequenceId id : live_) engine_.cancel(id);
  while (!live_.empty() && engine_.step()) {
  }
  std::lock_guard lock(mutex_);
  for (Command& command : commands_) {
    if (auto* submit = std::get_if<SubmitCommand>(&command)) {
      batch_.deliveries.push_back(
          {.submission = submit->submission,
           .event = {.error = {ErrorCode::kExhausted, "the engine is shutting down"}},
           .rejected = true});
    }
  }
  commands_.clear();
  hand_over();
}

void EngineThread::Impl::deliver(EventBatch& batch) {
  for (const Delivery& delivery : batch.deliveries) {
    try {
      if (delivery.rejected) {
        delivery.submission->reject(delivery.event.error);
      } else {
        delivery.submission->deliver(delivery.index, delivery.event);
      }
    } catch (const std::exception& e) {  // out of memory; the others continue
      spdlog::error("a request's tokens could not be delivered: {}", e.what());
    }
  }
  for (const auto& done : batch.done) done();
}

EngineThread::EngineThread(Engine& engine, Options options)
    : impl_(std::make_unique<Impl>(engine, std::move(options))) {}

EngineThread::~EngineThread() {
  impl_->stop();
}

Result<std::shared_ptr<Submission>> EngineThread::submit(std::vector<GenerateRequest> requests,
                                                         SubmissionSinks sinks,
                                                         std::vector<RunName> /*names*/) {
  return impl_->submit(std::move(requests), std::move(sinks));
}

void EngineThread::cancel(const std::shared_ptr<Submission>& submission) {
  impl_->push(CancelCommand{submission, std::nullopt});
}

void EngineThread::cancel_all() {
  impl_->push(CancelCommand{});
}

void EngineThread::abandon(const std::shared_ptr<Submission>& submission,
                           std::optional<size_t> index) {
  submission->abandon(index);
  impl_->push(CancelCommand{submission, index});
}

void EngineThread::run(std::function<void(Engine&)> task, std::function<void()> done) {
  impl_->push(TaskCommand{std::move(task), std::move(done)});
}

Status EngineThread::ready() const {
  return impl_->ready();
}

void EngineThread::stop() {
  impl_->stop();
}

}  // namespace banyan
