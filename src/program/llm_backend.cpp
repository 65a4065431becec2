// Programs on a model in this process: an engine thread of its own, and one thread that turns
// tokens into text.
//
// The engine's queue has a limit and a program has none: what does not fit waits here, in order.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "grammar/compiler.h"
#include "llm/chat_prompt.h"
#include "llm/engine_thread.h"
#include "llm/text_stream.h"
#include "program/backend.h"
#include "text/tokenizer.h"

namespace banyan {
namespace {

// The thread on which the engine's events are taken in.
class Delivery {
 public:
  using Task = std::move_only_function<void()>;

  Delivery() : thread_([this] { loop(); }) {}

  // Runs what was posted, and ends the thread.
  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_.notify_one();
    }
    thread_.join();
  }

  void post(Task task) {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    wake_.notify_one();
  }

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::jthread thread_;
};

// One sequence for the engine.
struct Job {
  GenerateRequest request;
  // On the delivery thread. True when no more is wanted, though the engine may not be done.
  std::function<bool(const TokenEvent&)> take;
  std::function<void(const Error&)> fail;  // instead of a last event
  // Under the backend's mutex:
  std::shared_ptr<Submission> submission;  // once the engine has it
  bool waiting = true, cancelled = false;
};

class LlmBackend final : public Backend {
 public:
  explicit LlmBackend(Llm& llm)
      : llm_(llm),
        in_flight_max_(std::max(llm.config().queued_max, 1)),
        engine_(llm.engine(),
                {.submissions_waiting_max = static_cast<size_t>(in_flight_max_) + 1,
                 .post = [this](Delivery::Task task) { delivery_.post(std::move(task)); }}) {}
  ~LlmBackend() override {
    engine_.stop();
    delivery_.stop();
  }

  std::string name() const override { return "the model " + llm_.config().model_path; }
  std::optional<SamplingParams> default_sampling() const override {
    return llm_.recommended_sampling();
  }
  Result<std::string> render(const std::vector<ChatMessage>& messages, bool answer) const override;
  bool can_prefill() const override { return llm_.config().radix_cache; }

  Cancel generate(GenCall call, PieceSink piece, Done<GenResult> done) override;
  Cancel score(ScoreCall call, Done<ScoreResult> done) override;
  Cancel prefill(Prompt prompt, Done<Usage> done) override;

 private:
  using Jobs = std::vector<std::shared_ptr<Job>>;

  Result<std::shared_ptr<Job>> gen_job(const GenCall& call, PieceSink piece, Done<GenResult> done);
  Result<Jobs> score_jobs(const ScoreCall& call, Done<ScoreResult> done);
  // Takes jobs in; the function cancels them.
  Cancel start(Jobs jobs);
  void pump();
  void abandon(const Job& job);
  void end(const std::shared_ptr<Job>& job);
  void cancel(const std::shared_ptr<Job>& job);
  Llm& llm_;
  const int in_flight_max_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Job>> waiting_;
  int in_flight_ = 0;
  Delivery delivery_;
  EngineThread engine_;
};

TextRequest text_request(const Prompt& prompt) {
  return {.text = prompt.text, .add_special_tokens = !prompt.from_template};
}

Result<std::string> LlmBackend::render(const std::vector<ChatMessage>& messages,
                                       bool answer) const {
  ChatPrompt prompt{.messages = Json::array(), .add_generation_prompt = answer};
  for (const ChatMessage& message : messages) {
    prompt.messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  return render_chat(llm_, std::move(prompt));
}

// --- jobs -----------------------------------------------------------------------------------

Backend::Cancel LlmBackend::start(Jobs jobs) {
  {
    std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(), jobs.begin(), jobs.end());
  }
  pump();
  return [this, jobs = std::move(jobs)] {
    for (const auto& job : jobs) cancel(job);
  };
}

// Hands on what the engine has room for.
void LlmBackend::pump() {
  std::lock_guard lock(mutex_);
  while (in_flight_ < in_flight_max_ && !waiting_.empty()) {
    std::shared_ptr<Job> job = std::move(waiting_.front());
    waiting_.pop_front();
    job->waiting = false;
    if (job->cancelled) continue;  // was told
    std::vector<GenerateRequest> requests;
    requests.push_back(std::move(job->request));
    auto event = [this, job](size_t, const TokenEvent& e) {
      bool enough = job->take(e);
      bool over = e.finish != FinishReason::kNone;
      if (enough && !over) abandon(*job);
      if (enough || over) end(job);
    };
    auto rejected = [this, job](const Error& error) {
      job->fail(error);
      end(job);
    };
    auto submission = engine_.submit(std::move(requests), {std::move(event), std::move(rejected)});
    if (!submission) {
      delivery_.post([job, error = submission.error()] { job->fail(error); });
      continue;
    }
    job->submission = *submission;
    ++in_flight_;
  }
}

// Ends in the engine what has ended here.
void LlmBackend::abandon(const Job& job) {
  std::lock_guard lock(mutex_);
  engine_.abandon(job.submission);
}

void LlmBackend::end(const std::shared_ptr<Job>& job) {
  {
    std::lock_guard lock(mutex_);
    job->submission = nullptr;
    --in_flight_;
  }
  pump();
}

void LlmBackend::cancel(const std::shared_ptr<Job>& job) {
  std::lock_guard lock(mutex_);
  if (std::exchange(job->cancelled, true)) return;
  if (job->submission) {
    engine_.cancel(job->submission);
  } else if (job->waiting) {
    delivery_.post([job] { job->fail({ErrorCode::kCancelled, "the call was cancelled"}); });
  }
}

// --- generate -------------------------------------------------------------------------------

Result<std::shared_ptr<Job>> LlmBackend::gen_job(const GenCall& call, PieceSink piece,
                                                 Done<GenResult> done) {
  const GenOptions& options = call.options;
  TextRequest request = text_request(call.prompt);
  request.sampling = options.sampling.value_or(llm_.recommended_sampling());
  request.max_new_tokens = options.max_new_tokens;
  request.min_new_tokens = options.min_new_tokens;
  request.stop = options.stop;
  request.stop_token_ids = options.stop_token_ids;
  request.ignore_eos = options.ignore_eos;
  request.skip_special_tokens = options.skip_special_tokens;
  request.grammar = TRY(grammar_of(options));
  request.top_logprobs = options.top_logprobs;
  request.timeout_s = options.timeout_s;

  struct Run {
    TextStream stream;
    GenResult result;
    bool logprobs = false;
  };
  std::shared_ptr<const CompiledGrammar> compiled;
  if (request.grammar) compiled = TRY(llm_.compile(*request.grammar));
  auto job = std::make_shared<Job>();
  job->request = TRY(llm_.to_tokens(request, compiled));
  const std::vector<TokenId>& prompt = job->request.prompt;
  auto run = std::make_shared<Run>(
      Run{TextStream(llm_.tokenizer(), prompt, {options.stop, options.skip_special_tokens, false}),
          {},
          options.logprobs || options.top_logprobs > 0});
  CallInfo& info = run->result.info;
  info.usage = {.calls = 1, .prompt_tokens = static_cast<int64_t>(prompt.size())};
  if (compiled) info.notes = compiled->grammar.notes();
  job->fail = [done](const Error& error) { done(std::unexpected(error)); };
  job->take = [run, piece = std::move(piece), done](const TokenEvent& event) {
    TextDelta delta = run->stream.take(event);
    GenResult& result = run->result;
    result.text += delta.text;
    if (delta.counted && run->logprobs) {
      result.info.logprobs.push_back(
          {event.token, event.logprob, {event.top.begin(), event.top.end()}});
    }
    if (piece && !delta.text.empty()) piece(delta.text);
    if (!run->stream.done()) return false;
    if (run->stream.finish() == FinishReason::kError) {
      done(std::unexpected(run->stream.error()));
      return true;
    }
    result.info.finish = run->stream.finish();
    result.info.matched_stop = run->stream.matched_text();
    result.info.usage.cached_tokens = run->stream.cached_tokens();
    result.info.usage.completion_tokens = run->stream.output_tokens();
    done(std::move(result));
    return true;
  };
  return job;
}

Backend::Cancel LlmBackend::generate(GenCall call, PieceSink piece, Done<GenResult> done) {
  auto job = guard([&] { return gen_job(call, std::move(piece), done); });
  if (!job) return refuse(std::unexpected(job.error()), done);
  return start({*std::move(job)});
}

Backend::Cancel LlmBackend::prefill(Prompt prompt, Done<Usage> done) {
  TextRequest request = text_request(prompt);
  request.max_new_tokens = 0;
  Result<GenerateRequest> tokens = llm_.to_tokens(request);
  if (!tokens) return refuse(std::unexpected(tokens.error()), done);
  auto job = std::make_shared<Job>();
  job->request = *std::move(tokens);
  auto prompt_tokens = static_cast<int64_t>(job->request.prompt.size());
  job->fail = [done](const Error& error) { done(std::unexpected(error)); };
  job->take = [done, prompt_tokens](const TokenEvent& event) {
    if (event.finish == FinishReason::kNone) return false;
    if (event.finish == FinishReason::kError) {
      done(std::unexpected(event.error));
    } else {
      done(Usage{.calls = 1, .prompt_tokens = prompt_tokens, .cached_tokens = event.cached_tokens});
    }
    return true;
  };
  return start({std::move(job)});
}

// --- score ----------------------------------------------------------------------------------

// What the jobs of one call fill in; on the delivery thread.
struct Scores {
  ScoreResult result;
  size_t unfinished = 0;
  std::optional<Error> error;
  Backend::Done<ScoreResult> done;

  void end_one(const std::optional<Error>& failed) {
    if (failed && !error) error = failed;
    if (--unfinished > 0) return;
    if (error) {
      done(std::unexpected(*error));
    } else {
      done(std::move(result));
    }
  }
};

// Asks for the logprobs of ids[begin ..); `take(i, logprob)` gets that of ids[begin + i].
std::shared_ptr<Job> score_job(std::vector<TokenId> ids, size_t begin,
                               std::shared_ptr<Scores> scores,
                               std::function<void(size_t, float)> take) {
  auto job = std::make_shared<Job>();
  job->request.max_new_tokens = 0;
  job->request.prompt_logprobs_begin = static_cast<int64_t>(begin);
  Usage& usage = scores->result.usage;
  ++usage.calls;
  usage.prompt_tokens += static_cast<int64_t>(ids.size());
  ++scores->unfinished;
  job->request.prompt = std::move(ids);
  job->fail = [scores](const Error& error) { scores->end_one(error); };
  job->take = [scores, begin, take = std::move(take)](const TokenEvent& event) {
    if (event.has_token && event.from_prompt) {
      take(static_cast<size_t>(event.position) - begin, event.logprob);
    }
    if (event.finish == FinishReason::kNone) return false;
    scores->result.usage.cached_tokens += event.cached_tokens;
    std::optional<Error> error;
    if (event.finish == FinishReason::kError) error = event.error;
    if (event.finish == FinishReason::kCancelled) {
      error = Error{ErrorCode::kCancelled, "the call was cancelled"};
    }
    scores->end_one(error);
    return true;
  };
  return job;
}

Result<LlmBackend::Jobs> LlmBackend::score_jobs(const ScoreCall& call, Done<ScoreResult> done) {
  std::vector<TokenId> prefix = TRY(llm_.to_tokens(text_request(call.prompt))).prompt;
  auto scores = std::make_shared<Scores>();
  scores->done = std::move(done);
  scores->result.texts.resize(call.texts.size());
  Jobs jobs;
  for (size_t i = 0; i < call.texts.size(); ++i) {
    TextRequest request = text_request(call.prompt);
    request.text += call.texts[i];
    std::vector<TokenId> ids = TRY(llm_.to_tokens(request)).prompt;
    // The prefix's last token may have become one with the text's beginning.
    auto common = static_cast<size_t>(std::ranges::mismatch(prefix, ids).in2 - ids.begin());
    size_t begin = std::max<size_t>(common, 1);  // the first token of all has no logprob
    if (begin >= ids.size()) {
      return invalid_argument("the text {} adds no token to the prompt", quote(call.texts[i]));
    }
    ScoredText& text = scores->result.texts[i];
    for (size_t t = begin; t < ids.size(); ++t) text.tokens.push_back({ids[t], 0});
    if (call.unconditional) {
      text.unconditional.assign(text.tokens.size(), 0);
      if (text.tokens.size() > 1) {
        std::vector<TokenId> alone(ids.begin() + static_cast<ptrdiff_t>(begin), ids.end());
        jobs.push_back(score_job(std::move(alone), 1, scores, [&text](size_t t, float logprob) {
          text.unconditional[t + 1] = logprob;
        }));
      }
    }
    jobs.push_back(score_job(std::move(ids), begin, scores, [&text](size_t t, float logprob) {
      text.tokens[t].logprob = logprob;
    }));
  }
  return jobs;
}

Backend::Cancel LlmBackend::score(ScoreCall call, Done<ScoreResult> done) {
  auto jobs = guard([&] { return score_jobs(call, done); });
  if (!jobs) return refuse(std::unexpected(jobs.error()), done);
  return start(*std::move(jobs));
}

}  // namespace

std::shared_ptr<Backend> in_process_backend(Llm& llm) {
  return std::make_shared<LlmBackend>(llm);
}

}  // namespace banyan
