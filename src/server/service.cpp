#include "server/service.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/check.h"
#include "base/thread_pool.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

double seconds_since(SteadyClock::time_point from) {
  return std::chrono::duration<double>(SteadyClock::now() - from).count();
}

}  // namespace

// A submission that has not ended, and what is measured of it.
struct Service::Live {
  struct Request {
    RequestTimes times;
    SteadyClock::time_point last_token;
    bool over = false;
  };

  std::string rid;
  std::weak_ptr<Submission> submission;
  SteadyClock::time_point submitted = SteadyClock::now();
  std::vector<Request> requests;
  size_t unfinished = 0;

  void take(Metrics& metrics, size_t index, const TokenEvent& event) {
    Request& request = requests[index];
    request.times.cached_tokens = std::max(request.times.cached_tokens, event.cached_tokens);
    request.times.queued_s = std::max(request.times.queued_s, event.queued_s);
    if (event.has_token && !event.from_prompt) {
      auto now = SteadyClock::now();
      if (request.times.generated_tokens++ == 0) {
        request.times.first_token_s = seconds_since(submitted);
        metrics.first_token(request.times.first_token_s);
      } else {
        metrics.next_token(std::chrono::duration<double>(now - request.last_token).count());
      }
      request.last_token = now;
    }
    if (event.finish != FinishReason::kNone) end(metrics, index, event.finish);
  }

  void end(Metrics& metrics, size_t index, FinishReason reason) {
    Request& request = requests[index];
    if (request.over) return;
    request.over = true;
    --unfinished;
    request.times.finish = reason;
    request.times.total_s = seconds_since(submitted);
    metrics.finished(request.times);
  }
};

Service::Service(ServerConfig config, Post post)
    : config_(std::move(config)),
      post_(std::move(post)),
      started_at_(std::chrono::system_clock::now()) {
  int threads = config_.workers > 0 ? config_.workers : std::clamp(usable_processors(), 2, 8);
  workers_ = std::make_unique<Workers>(threads, config_.work_queued_max);
}

Service::~Service() {
  stop();
}

void Service::attach(std::unique_ptr<Llm> llm, const EngineConfig& config) {
  CHECK(state_ == State::kLoading);
  llm_ = std::move(llm);
  engine_config_ = config;
  model_name_ = config_.served_model_name.empty() ? config.model_path : config_.served_model_name;
  metrics_.begin(model_name_, engine_info(), llm_->load_s());
  last_report_.stats = llm_->engine().stats();
  engine_ = std::make_unique<EngineThread>(
      llm_->engine(),
      EngineThread::Options{.submissions_waiting_max = static_cast<size_t>(config.queued_max) + 64,
                            .post = post_,
                            .on_step = [this](const StepReport& report) { on_step(report); }});
  state_ = State::kReady;
}

void Service::stop() {
  workers_.reset();
  if (engine_) engine_->stop();
}

bool Service::enqueue_work(std::move_only_function<void()> work) {
  return workers_ && workers_->enqueue(std::move(work));
}

Result<std::shared_ptr<Submission>> Service::submit(std::string rid,
                                                    std::vector<GenerateRequest> requests,
                                                    SubmissionSinks sinks) {
  auto live = std::make_shared<Live>();
  live->rid = std::move(rid);
  live->unfinished = requests.size();
  for (const GenerateRequest& request : requests) {
    live->requests.push_back({.times = {.prompt_tokens = std::ssize(request.prompt),
                                        .new_tokens_max = request.max_new_tokens}});
  }
  SubmissionSinks measured;
  measured.event = [this, live, sink = std::move(sinks.event)](size_t index,
                                                               const TokenEvent& event) {
    live->take(metrics_, index, event);
    if (live->unfinished == 0) live_.erase(live->submission.lock().get());
    sink(index, event);
  };
  measured.rejected = [this, live, sink = std::move(sinks.rejected)](const Error& error) {
    live_.erase(live->submission.lock().get());
    metrics_.rejected();
    sink(error);
  };
  auto submission = TRY(engine_->submit(std::move(requests), std::move(measured)));
  live->submission = submission;
  live_.emplace(submission.get(), std::move(live));
  return submission;
}

void Service::abandon(const std::shared_ptr<Submission>& submission, FinishReason reason,
                      std::optional<size_t> index) {
  engine_->abandon(submission, index);
  auto found = live_.find(submission.get());
  if (found == live_.end()) return;
  Live& live = *found->second;
  for (size_t i = 0; i < live.requests.size(); ++i) {
    if (index.value_or(i) == i) live.end(metrics_, i, reason);
  }
  if (live.unfinished == 0) live_.erase(found);
}

size_t Service::abort(const std::string& rid) {
  size_t count = 0;
  for (const auto& [key, live] : live_) {
    if (live->rid != rid) continue;
    engine_->cancel(live->submission.lock());
    ++count;
  }
  return count;
}

void Service::abort_all() {
  if (engine_) engine_->cancel_all();
}

void Service::on_step(const StepReport& report) {
  last_report_ = report;
  metrics_.step(report);
}

}  // namespace banyan
