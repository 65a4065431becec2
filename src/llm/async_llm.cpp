// AsyncLlm: many text requests at once, over an engine that runs on a thread of its own.
#include "banyan/async_llm.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "base/threads/task_thread.h"
#include "llm/engine_thread.h"
#include "llm/generation_builder.h"
#include "llm/llm_parts.h"

namespace banyan {
namespace {

// State shared with Hold objects, which may outlive the model.
struct Holds {
  std::mutex mutex;
  EngineThread* thread = nullptr;  // null after shutdown
  uint64_t last = 0;               // the last key given out
};

// One request for the engine.
struct Job {
  GenerateRequest request;
  AsyncLlm::TokenSinks sinks;
  // Guarded by the mutex:
  std::shared_ptr<Submission> submission;  // set once submitted to the engine
  bool waiting = true, cancelled = false;
};

// A text request in progress.
struct TextRun {
  GenerationBuilder builder;
  AsyncLlm::TextSinks sinks;

  // Returns true at its end.
  bool take(const TokenEvent& event) {
    TextDelta delta = builder.take(event);
    if (sinks.event) sinks.event({event, delta.text, delta.counted});
    if (!builder.done()) return false;
    sinks.done(builder.finish());
    return true;
  }
};

}  // namespace

class AsyncLlm::Impl {
 public:
  explicit Impl(Llm& llm)
      : llm(llm),
        in_flight_max_(std::max(llm.config().queued_max, 1)),
        engine_(llm.engine(),
                {.submissions_waiting_max = as_size(in_flight_max_) + 1,
                 .post = [this](TaskThread::Task task) { delivery_.post(std::move(task)); }}) {
    holds_->thread = &engine_;
  }
  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const auto& job : waiting_) {
        if (!job->cancelled) fail_cancelled(job);
      }
      waiting_.clear();
    }
    engine_.stop();
    delivery_.stop();
    std::lock_guard lock(holds_->mutex);
    holds_->thread = nullptr;
    // Holds released after the thread stopped accepting tasks are released here.
    for (uint64_t key = 1; key <= holds_->last; ++key) llm.engine().release(key);
  }

  Cancel start(std::shared_ptr<Job> job);
  Result<std::shared_ptr<Job>> text_job(const TextRequest& request, const TextSinks& sinks);
  void flush_cache() {
    engine_.run([](Engine& engine) { engine.flush_cache(); });
  }
  void clear_cache_storage() {
    engine_.run([](Engine& engine) { engine.clear_cache_storage(); });
  }
  Hold hold(std::vector<TokenId> tokens);

  Llm& llm;

 private:
  void pump();
  void abandon(const Job& job);
  void end(const std::shared_ptr<Job>& job);
  void cancel(const std::shared_ptr<Job>& job);
  void fail_cancelled(const std::shared_ptr<Job>& job);

  const int in_flight_max_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> waiting_;
  int in_flight_ = 0;
  bool stopping_ = false;
  TaskThread delivery_;  // handles the engine's events
  EngineThread engine_;
  const std::shared_ptr<Holds> holds_ = std::make_shared<Holds>();
};

AsyncLlm::Hold AsyncLlm::Impl::hold(std::vector<TokenId> tokens) {
  std::lock_guard lock(holds_->mutex);
  uint64_t key = ++holds_->last;
  engine_.run([key, tokens = std::move(tokens)](Engine& engine) mutable {
    engine.hold(key, std::move(tokens));
  });
  auto end = [holds = holds_, key](const void*) {
    std::lock_guard lock(holds->mutex);
    if (holds->thread != nullptr)
      holds->thread->run([key](Engine& engine) { engine.release(key); });
  };
  return {holds_.get(), std::move(end)};
}

AsyncLlm::Cancel AsyncLlm::Impl::start(std::shared_ptr<Job> job) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(job);
  }
  pump();
  // The sinks may own the returned function, so it must not own them.
  return [this, weak = std::weak_ptr(job)] {
    if (auto alive = weak.lock()) cancel(alive);
  };
}

// Submits waiting jobs while the engine has room.
void AsyncLlm::Impl::pump() {
  std::lock_guard lock(mutex_);
  while (in_flight_ < in_flight_max_ && !waiting_.empty() && !stopping_) {
    std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    job->waiting = false;
    if (job->cancelled) continue;  // already reported
    std::vector<GenerateRequest> requests;
    requests.push_back(std::move(job->request));
    auto event = [this, job](size_t, const TokenEvent& e) {
      bool enough = job->sinks.event(e);
      bool over = e.finish != FinishReason::kNone;
      if (enough && !over) abandon(*job);
      if (enough || over) end(job);
    };
    auto rejected = [this, job](const Error& error) {
      job->sinks.failed(error);
      end(job);
    };
    auto submission = engine_.submit(std::move(requests), {std::move(event), std::move(rejected)});
    if (!submission) {
      delivery_.post([job, error = submission.error()] { job->sinks.failed(error); });
      continue;
    }
    job->submission = *submission;
    ++in_flight_;
  }
}

// Cancels in the engine a request that has ended here.
void AsyncLlm::Impl::abandon(const Job& job) {
  std::lock_guard lock(mutex_);
  engine_.abandon(job.submission);
}

void AsyncLlm::Impl::end(const std::shared_ptr<Job>& job) {
  {
    std::lock_guard lock(mutex_);
    job->submission = nullptr;
    --in_flight_;
  }
  pump();
}

void AsyncLlm::Impl::cancel(const std::shared_ptr<Job>& job) {
  std::lock_guard lock(mutex_);
  if (std::exchange(job->cancelled, true)) return;
  if (job->submission) {
    engine_.cancel(job->submission);
  } else if (job->waiting) {
    fail_cancelled(job);
  }
}

void AsyncLlm::Impl::fail_cancelled(const std::shared_ptr<Job>& job) {
  delivery_.post([job] { job->sinks.failed({ErrorCode::kCancelled, "the call was cancelled"}); });
}

Result<std::shared_ptr<Job>> AsyncLlm::Impl::text_job(const TextRequest& request,
                                                      const TextSinks& sinks) {
  StopRegexes stops = TRY(compile_stop_regexes(request.options.stop_regex));
  CompiledGrammarPtr compiled;
  if (request.options.grammar) compiled = TRY(compile_grammar(llm, *request.options.grammar));
  GenerateRequest tokens = TRY(to_tokens(llm, request, compiled));
  Generation begun{.prompt_ids = tokens.prompt};
  if (compiled) begun.grammar_notes = compiled->grammar.notes();
  auto run = std::make_shared<TextRun>(TextRun{
      GenerationBuilder(request.options, std::move(stops), tokenizer_of(llm), std::move(begun)),
      sinks});
  auto job = std::make_shared<Job>();
  job->request = std::move(tokens);
  job->sinks = {.event = [run](const TokenEvent& event) { return run->take(event); },
                .failed = [run](const Error& error) { run->sinks.done(std::unexpected(error)); }};
  return job;
}

AsyncLlm::AsyncLlm(Llm& llm) : impl_(std::make_unique<Impl>(llm)) {}
AsyncLlm::~AsyncLlm() = default;

AsyncLlm::Cancel AsyncLlm::submit(GenerateRequest request, TokenSinks sinks) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  job->sinks = std::move(sinks);
  return impl_->start(std::move(job));
}

AsyncLlm::Cancel AsyncLlm::generate(const TextRequest& request, TextSinks sinks) {
  auto job = guard([&] { return impl_->text_job(request, sinks); });
  if (job) return impl_->start(*std::move(job));
  sinks.done(std::unexpected(job.error()));
  return [] {};
}

void AsyncLlm::flush_cache() {
  impl_->flush_cache();
}

void AsyncLlm::clear_cache_storage() {
  impl_->clear_cache_storage();
}

AsyncLlm::Hold AsyncLlm::hold(std::vector<TokenId> tokens) {
  return impl_->hold(std::move(tokens));
}

const Llm& AsyncLlm::llm() const {
  return impl_->llm;
}

}  // namespace banyan
