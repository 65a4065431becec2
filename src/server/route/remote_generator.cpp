#include "server/route/remote_generator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signed.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(20);
constexpr double kRetriesPerRequest = 0.1, kRetriesSavedMax = 100;
// If a worker dies this soon after it took a request, without a token of it, the request may be the
// cause. Other requests that it took meanwhile share the blame: workers that die for another reason
// must not take requests with them.
constexpr double kSuddenDeath_s = 0.5;
constexpr double kBlameMax = 2.5;  // more than two deaths, however certain
// The assumed length of an answer before any is known, and the weight of each new one.
constexpr double kOutputTokens = 128, kOutputBlend = 0.05;
constexpr size_t kLineBytesMax = 16 << 20;
constexpr size_t kBodyBytesMax = 4096;  // of an answer that is an error

double seconds_between(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

SteadyClock::duration seconds(double s) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(s));
}

// The message of an error in the format of server/error.h, or the body as it is.
std::string message_of(std::string_view body) {
  Result<Json> json = parse_json(body, "an error");
  if (!json || !json->is_object()) return std::string(body);
  Json error = json->value("error", Json());
  Json message = (error.is_object() ? error : *json).value("message", Json());
  return message.is_string() ? message.get<std::string>() : std::string(body);
}

}  // namespace

Status RouteConfig::validate() const {
  if (worker_urls.empty() && !etcd.used()) {
    return invalid_argument(
        "--worker-urls: name at least one worker, such as http://127.0.0.1:30001, or give "
        "--etcd-endpoints, where workers register");
  }
  TRY(etcd.validate());
  TRY(tls.validate());
  if (std::ssize(worker_urls) > kWorkersMax) {
    return invalid_argument("--worker-urls: {} workers; the limit is {}", worker_urls.size(),
                            kWorkersMax);
  }
  if (find_routing_policy(policy) == nullptr) {
    std::vector<std::string_view> known;
    for (const RoutingPolicy& one : routing_policies()) known.push_back(one.name);
    return invalid_argument("--policy {}: it must be one of {}", policy, fmt::join(known, ", "));
  }
  for (auto [name, value] : {std::pair("--health-check-interval-secs", health_interval_s),
                             {"--health-check-timeout-secs", health_timeout_s},
                             {"--queue-timeout-secs", queue_timeout_s},
                             {"--worker-stall-timeout-secs", stall_timeout_s},
                             {"--cb-timeout-duration-secs", breaker_s}}) {
    if (value > 0 && value < 1e6) continue;
    return invalid_argument("{} is {}; it must be above 0 and below 1e6", name, value);
  }
  return {};
}

struct RemoteGenerator::RemoteSubmission final : Submission {
  using Submission::Submission;
  std::string_view place(size_t index) const override { return places[index]; }

  std::vector<std::weak_ptr<Job>> jobs;  // by index
  std::vector<std::string> places;       // by index: names of the workers
};

// One request, on whichever worker it runs.
struct RemoteGenerator::Job {
  std::shared_ptr<RemoteSubmission> submission;
  size_t index = 0;
  WireRequest wire;   // as submitted
  std::string place;  // the worker that may have its output already
  std::shared_ptr<PromptPages> pages;
  uint64_t number = 0;
  SteadyTime arrived, queue_deadline;
  bool waits = false;  // is counted in RemoteGenerator::waiting_clients_
  bool over = false;

  // What was delivered so far.
  std::vector<TokenId> tokens;
  int64_t prompt_next = 0;  // the position after the last reported prompt token
  int64_t progress = 0;     // prompt tokens reported as computed
  std::string identity;     // of the workers that computed these tokens
  int64_t cached_tokens = -1, restored_tokens = 0;
  int64_t drafts = 0, draft_tokens = 0;  // of earlier attempts, and including this one
  int64_t drafts_all = 0, draft_tokens_all = 0;

  // The current attempt. Its number is in every callback.
  std::shared_ptr<RemoteWorker> worker;  // null: it waits for one
  WorkerChoice::Placement placement;
  std::vector<int> refused_by;  // workers that refused it since it last ran
  uint64_t attempt = 0, exchange = 0;
  SteadyTime sent;
  bool delivered = false;  // the worker may have it
  bool answered = false;
  std::string carry;  // an incomplete line, or an error's body
  int migrations = 0;
  int sudden_deaths = 0;  // of workers in a row, ...
  double blame = 0;       // ... and the sum of its shares in them

  int64_t prompt_tokens() const { return std::ssize(wire.request.prompt); }
  int64_t next_position() const { return prompt_tokens() + std::ssize(tokens); }
};

Result<std::unique_ptr<RemoteGenerator>> RemoteGenerator::open(
    boost::asio::io_context& io, const RouteConfig& config,
    std::function<void(const StepReport&)> on_step) {
  TRY(config.validate());
  std::unique_ptr<RemoteGenerator> made(new RemoteGenerator(io, config, std::move(on_step)));
  RemoteGenerator* self = made.get();
  made->tls_ = TRY(TlsContext::for_client(config.tls));
  for (const std::string& url : config.worker_urls) TRY(made->admit(url));
  if (config.etcd.used()) {
    WorkerMembership::Sinks sinks;
    sinks.joined = [self](const std::string& url) {
      Status admitted = self->admit(url);
      if (!admitted) spdlog::warn("worker {} is left out: {}", url, admitted.error().message);
    };
    sinks.left = [self](const std::string& url) { self->dismiss(url); };
    made->membership_ = TRY(WorkerMembership::start(io, config.etcd, std::move(sinks)));
  }
  boost::asio::post(io, [self] { self->tick(); });
  return made;
}

RemoteGenerator::RemoteGenerator(boost::asio::io_context& io, const RouteConfig& config,
                                 std::function<void(const StepReport&)> on_step)
    : io_(io),
      config_(config),
      on_step_(std::move(on_step)),
      choice_(io, config_),
      timer_(io),
      retries_left_(kRetriesSavedMax / 10),
      output_tokens_(kOutputTokens) {}

RemoteGenerator::~RemoteGenerator() = default;

Status RemoteGenerator::ready() const {
  auto works = [](const auto& worker) { return worker && worker->is_ready(); };
  if (std::ranges::any_of(workers_, works)) return {};
  auto known = std::ranges::count_if(workers_, [](const auto& worker) { return bool(worker); });
  return exhausted("none of {} workers is ready", known);
}

// ---- Workers ------------------------------------------------------------------------------------

Status RemoteGenerator::admit(const std::string& url) {
  for (const auto& worker : workers_) {
    if (!worker || worker->url() != url) continue;
    worker->leaving = false;
    return {};
  }
  auto place = std::ranges::find(workers_, nullptr);
  if (place == workers_.end() && std::ssize(workers_) == kWorkersMax) {
    return exhausted("this router has {} workers, which is the limit", kWorkersMax);
  }
  auto worker = TRY(RemoteWorker::open(io_, url, config_, tls_));
  worker->on({.answered = [this] { pump(); },
              .lost = [this, raw = worker.get()](const std::string& why) { lose_all(*raw, why); }});
  if (place == workers_.end()) place = workers_.insert(place, nullptr);
  *place = worker;
  choice_.add(narrow<int>(place - workers_.begin()), std::move(worker));
  return {};
}

void RemoteGenerator::dismiss(const std::string& url) {
  if (std::ranges::find(config_.worker_urls, url) != config_.worker_urls.end()) return;
  for (const auto& worker : workers_) {
    if (worker && worker->url() == url) worker->leaving = true;
  }
}

// Removes workers that have left and have no requests.
void RemoteGenerator::retire(SteadyTime now) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i]) continue;
    workers_[i]->tick(now);
    if (!workers_[i]->leaving || workers_[i]->in_flight > 0) continue;
    spdlog::info("worker {} has left", workers_[i]->url());
    choice_.remove(narrow<int>(i));
    workers_[i]->stop();
    workers_[i] = nullptr;
    if (i < counted_.size()) counted_[i] = {};
  }
}

RemoteGenerator::Counts RemoteGenerator::counts() const {
  Counts counts = counts_;
  counts.waiting = std::ssize(waiting_);
  return counts;
}

// ---- Coming -------------------------------------------------------------------------------------

Result<std::shared_ptr<Submission>> RemoteGenerator::submit(std::vector<GenerateRequest> requests,
                                                            SubmissionSinks sinks,
                                                            std::vector<RunName> names) {
  CHECK(!requests.empty());
  names.resize(requests.size());
  if (stopped_) return exhausted("the router is shutting down");
  TRY(check_queue(requests));
  auto submission = std::make_shared<RemoteSubmission>(requests.size(), std::move(sinks));
  SteadyTime now = SteadyClock::now();
  std::vector<JobPtr> jobs;
  for (GenerateRequest& request : requests) {
    auto job = std::make_shared<Job>();
    if (request.constraint && !request.constraint->describe(job->wire.constraint)) {
      return unsupported("a constraint of this request cannot be sent to a worker");
    }
    request.constraint = nullptr;
    bool same = !jobs.empty() && jobs.back()->wire.request.prompt == request.prompt &&
                jobs.back()->pages->covers(request);
    job->pages = same ? jobs.back()->pages : std::make_shared<PromptPages>(request);
    job->submission = submission;
    job->index = jobs.size();
    job->number = static_cast<uint64_t>(counts_.requests) + jobs.size();
    job->wire.request = std::move(request);
    job->wire.name = std::move(names[job->index].name);
    job->place = std::move(names[job->index].place);
    job->arrived = now;
    job->queue_deadline = now + seconds(config_.queue_timeout_s);
    submission->jobs.push_back(job);
    submission->places.emplace_back();
    jobs.push_back(std::move(job));
  }
  counts_.requests += std::ssize(jobs);
  double earned = kRetriesPerRequest * jobs.size();
  retries_left_ = std::min(retries_left_ + earned, kRetriesSavedMax);
  for (const JobPtr& job : jobs) enter_queue(*job);
  jobs_.insert(jobs.begin(), jobs.end());
  waiting_.insert(waiting_.end(), jobs.begin(), jobs.end());
  pump();
  return submission;
}

Status RemoteGenerator::check_queue(const std::vector<GenerateRequest>& requests) const {
  const std::string& client = requests[0].options.client;
  if (waiting_clients_.admits(client, config_.queued_max, std::ssize(requests))) return {};
  return exhausted(
      "{} requests wait for a worker, {} of them this client's, and --queue-size is {}",
      waiting_clients_.total(), waiting_clients_.held_by(client), config_.queued_max);
}

void RemoteGenerator::enter_queue(Job& job) {
  if (!std::exchange(job.waits, true)) waiting_clients_.enter(job.wire.request.options.client);
}

void RemoteGenerator::leave_queue(Job& job) {
  if (std::exchange(job.waits, false)) waiting_clients_.leave(job.wire.request.options.client);
}

// Gives waiting requests to workers with room, in order. A request that may only go to workers of
// one identity holds up no other.
void RemoteGenerator::pump() {
  if (waiting_.empty() || stopped_) return;
  bool full = false;
  std::deque<JobPtr> all = std::exchange(waiting_, {});
  for (JobPtr& job : all) {
    if (job->over) continue;
    bool free = job->identity.empty();
    if (!(full && free) && place(job)) continue;
    full = full || free;
    waiting_.push_back(std::move(job));
  }
}

WorkerChoice::Request RemoteGenerator::request_of(const Job& job) const {
  int64_t left = job.wire.request.options.max_new_tokens - std::ssize(job.tokens);
  auto usual = static_cast<int64_t>(output_tokens_);
  return {.prompt = job.wire.request.prompt,
          .pages = job.pages.get(),
          .tokens_before = std::ssize(job.tokens),
          .output_tokens = std::clamp<int64_t>(left, 0, usual),
          .id = job.number,
          .identity = job.identity,
          .excluded = job.refused_by,
          .place = job.tokens.empty() ? job.place : std::string_view()};
}

bool RemoteGenerator::place(const JobPtr& job) {
  SteadyTime now = SteadyClock::now();
  WorkerChoice::Placement placement = choice_.choose(request_of(*job), now);
  if (placement.worker < 0 && !job->refused_by.empty()) {  // those that refused may take it by now
    job->refused_by.clear();
    placement = choice_.choose(request_of(*job), now);
  }
  if (placement.worker < 0) return false;
  choice_.sent(placement, request_of(*job), now);
  start(job, placement, now);
  return true;
}

// The part of a request that is still to be computed.
WireRequest RemoteGenerator::next_attempt(const Job& job) {
  WireRequest next = job.wire;
  next.request.resume_tokens = job.tokens;
  GenerationOptions& options = next.request.options;
  if (options.prompt_logprobs_begin && job.prompt_next > 0) {
    options.prompt_logprobs_begin = job.prompt_next;
    if (job.prompt_next >= job.prompt_tokens()) options.prompt_logprobs_begin.reset();
  }
  double past_s = seconds_between(job.arrived, SteadyClock::now());
  options.age_s += past_s;
  if (options.timeout_s > 0) options.timeout_s = std::max(options.timeout_s - past_s, 1e-3);
  return next;
}

void RemoteGenerator::start(const JobPtr& job, const WorkerChoice::Placement& placement,
                            SteadyTime now) {
  const auto& worker = at(workers_, placement.worker);
  leave_queue(*job);
  uint64_t attempt = ++job->attempt;
  job->worker = worker;
  job->placement = placement;
  job->sent = now;
  job->delivered = job->answered = false;
  job->carry.clear();
  if (job->tokens.empty()) job->identity = worker->info()->identity;
  job->submission->places[job->index] = worker->name();
  ++worker->in_flight;
  ++worker->unanswered;
  worker->waiting_tokens += job->prompt_tokens();
  counts_.sent_tokens += job->prompt_tokens();
  counts_.predicted_tokens += std::min(placement.choice.cached_tokens, job->prompt_tokens());
  ClientSinks sinks;
  sinks.connected = [job, attempt] {
    if (job->attempt == attempt) job->delivered = true;
  };
  sinks.body = [this, job, attempt](int status, std::string_view bytes) {
    if (job->attempt == attempt) take_bytes(job, status, bytes);
  };
  sinks.end = [this, job, attempt](int status, const Status& outcome) {
    if (job->attempt == attempt) take_end(job, status, outcome);
  };
  job->exchange = worker->client().send({.path = "/worker/generate",
                                         .body = write_request(next_attempt(*job)),
                                         .content_type = kWireRequestType},
                                        std::move(sinks));
}

// ---- What workers say ---------------------------------------------------------------------------

void RemoteGenerator::take_bytes(const JobPtr& job, int http_status, std::string_view bytes) {
  if (http_status != 200) {
    job->carry += bytes.substr(0, kBodyBytesMax - std::min(kBodyBytesMax, job->carry.size()));
    return;
  }
  uint64_t attempt = job->attempt;
  while (job->attempt == attempt) {
    size_t newline = bytes.find('\n');
    if (newline == bytes.npos) break;
    std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    if (job->carry.empty()) {
      take_line(job, line);
      continue;
    }
    std::string whole = std::exchange(job->carry, {});
    take_line(job, whole += line);
  }
  if (job->attempt != attempt) return;
  job->carry += bytes;
  if (job->carry.size() > kLineBytesMax) lose(job, "it sends a line without an end", false);
}

void RemoteGenerator::take_line(const JobPtr& job, std::string_view text) {
  Status read = read_line(text, line_);
  if (!read) {
    job->worker->failed(SteadyClock::now());
    return lose(job, read.error().message, false);
  }
  if (line_.kind == WireLine::Kind::kRejected) return take_rejection(job, line_.event.error);
  if (line_.kind == WireLine::Kind::kResumable) {
    --job->migrations;  // the worker drains, which is not a failure
    job->worker->suspect("it leaves");
    return lose(job, "it leaves", false);
  }
  take_event(job, line_.event);
}

// A worker that takes over computes the prompt again, which is no progress.
void RemoteGenerator::take_progress(Job& job, const TokenEvent& event) {
  if (event.position <= job.progress || !job.tokens.empty()) return;
  job.progress = event.position;
  job.submission->deliver(job.index, event);
}

void RemoteGenerator::take_event(const JobPtr& job, TokenEvent event) {
  if (event.is_progress()) return take_progress(*job, event);
  int64_t next = job->next_position();
  bool out_of_order = event.from_prompt ? event.position < job->prompt_next
                                        : event.has_token && event.position != next;
  if (out_of_order) {
    job->worker->failed(SteadyClock::now());
    return lose(job, fmt::format("it sent position {} where {} comes next", event.position, next),
                false);
  }
  if (!std::exchange(job->answered, true)) {
    job->worker->waiting_tokens -= job->prompt_tokens();
    --job->worker->unanswered;
    job->worker->succeeded();
    job->sudden_deaths = 0;
    job->blame = 0;
    job->refused_by.clear();
    counts_.cached_tokens += std::min(event.cached_tokens, job->prompt_tokens());
  }
  if (event.from_prompt) {
    job->prompt_next = event.position + 1;
  } else if (event.has_token) {
    job->tokens.push_back(event.token);
    if (job->cached_tokens < 0) {
      job->cached_tokens = event.cached_tokens;
      job->restored_tokens = event.restored_tokens;
    }
  }
  if (job->cached_tokens >= 0) {
    event.cached_tokens = job->cached_tokens;
    event.restored_tokens = job->restored_tokens;
  }
  event.drafts = job->drafts_all = job->drafts + event.drafts;
  event.draft_tokens = job->draft_tokens_all = job->draft_tokens + event.draft_tokens;
  if (event.finish == FinishReason::kNone) return job->submission->deliver(job->index, event);
  leave(*job);
  finish(job, event);
}

// Nothing of the request runs. If the worker had no room, another may have.
void RemoteGenerator::take_rejection(const JobPtr& job, const Error& error) {
  bool retries = error.code == ErrorCode::kExhausted && retries_left_ >= 1;
  if (retries) {
    --retries_left_;
    ++counts_.retries;
    job->refused_by.push_back(job->placement.worker);
    job->worker->failed(SteadyClock::now());
  }
  leave(*job);
  if (retries) return requeue(job);
  if (!job->tokens.empty()) return fail(job, error);
  auto submission = job->submission;
  for (const auto& weak : submission->jobs) {
    JobPtr each = weak.lock();
    if (!each || each->over) continue;
    if (each->worker) {
      hang_up(*each);
      leave(*each);
    }
    end(each);
  }
  submission->reject(error);
}

// The answer ended without a last line.
void RemoteGenerator::take_end(const JobPtr& job, int http_status, const Status& outcome) {
  job->exchange = 0;
  if (http_status == 200 || http_status == 0 || !outcome) {
    std::string why = outcome ? "its answer has no end" : outcome.error().message;
    job->worker->suspect(why);
    return lose(job, why, true);
  }
  std::string message = message_of(job->carry);
  if (http_status == 503 || http_status == 429) {
    job->worker->suspect(message);
    return take_rejection(job, {ErrorCode::kExhausted, std::move(message)});
  }
  ErrorCode code = http_status == 400 ? ErrorCode::kInvalidArgument : ErrorCode::kIo;
  Error error{code, fmt::format("worker {} answers with status {}: {}", job->worker->url(),
                                http_status, message)};
  job->worker->failed(SteadyClock::now());
  take_rejection(job, error);
}

// ---- Losing workers -----------------------------------------------------------------------------

void RemoteGenerator::lose_all(const RemoteWorker& worker, const std::string& why) {
  std::vector<JobPtr> lost;
  for (const JobPtr& job : jobs_) {
    if (job->worker.get() == &worker) lost.push_back(job);
  }
  for (const JobPtr& job : lost) {
    if (job->worker.get() == &worker) lose(job, why, false);
  }
}

void RemoteGenerator::lose(const JobPtr& job, const std::string& why, bool crashed) {
  SteadyTime now = SteadyClock::now();
  bool sudden =
      job->delivered && !job->answered && seconds_between(job->sent, now) < kSuddenDeath_s;
  if (crashed && sudden) {
    ++job->sudden_deaths;
    job->blame += job->worker->death.share(now, job->worker->unanswered - 1);
  }
  std::string url = job->worker->url();
  hang_up(*job);
  leave(*job);
  job->drafts = job->drafts_all;
  job->draft_tokens = job->draft_tokens_all;
  if (job->blame >= kBlameMax) {
    ++counts_.poisoned;
    return fail(job, {ErrorCode::kIo, fmt::format("{} workers died just after they got this "
                                                  "request, so it is not sent to another",
                                                  job->sudden_deaths)});
  }
  if (++job->migrations > config_.migrations_max) {
    return fail(job, {ErrorCode::kExhausted,
                      fmt::format("the request lost its worker {} times and --migration-limit is "
                                  "{}; the last was {}: {}",
                                  job->migrations, config_.migrations_max, url, why)});
  }
  ++counts_.migrations;
  spdlog::debug("a request moves on from {} after {} tokens: {}", url, job->tokens.size(), why);
  requeue(job);
}

void RemoteGenerator::requeue(const JobPtr& job) {
  job->queue_deadline = SteadyClock::now() + seconds(config_.queue_timeout_s);
  if (job->tokens.empty()) job->identity.clear();
  enter_queue(*job);
  waiting_.push_front(job);
  boost::asio::post(io_, [this] { pump(); });
}

// Ends the current attempt; its later events are ignored.
void RemoteGenerator::leave(Job& job) {
  ++job.attempt;
  --job.worker->in_flight;
  if (!job.answered) {
    job.worker->waiting_tokens -= job.prompt_tokens();
    --job.worker->unanswered;
  }
  choice_.ended(job.placement);
  job.worker = nullptr;
  job.exchange = 0;
}

// Closes the connection of an attempt, once the client is not inside one of its callbacks.
void RemoteGenerator::hang_up(const Job& job) {
  if (job.exchange == 0) return;
  boost::asio::post(io_, [worker = job.worker, exchange = job.exchange] {
    worker->client().cancel(exchange, "nobody waits for it");
  });
}

// ---- Ending -------------------------------------------------------------------------------------

void RemoteGenerator::fail(const JobPtr& job, const Error& error) {
  finish(job, {.position = job->next_position(), .finish = FinishReason::kError, .error = error});
}

void RemoteGenerator::finish(const JobPtr& job, const TokenEvent& event) {
  bool whole = event.finish == FinishReason::kStop || event.finish == FinishReason::kLength;
  bool generated = whole && job->wire.request.options.max_new_tokens > 0;
  if (generated) output_tokens_ += kOutputBlend * (std::ssize(job->tokens) - output_tokens_);
  end(job);
  job->submission->deliver(job->index, event);
}

void RemoteGenerator::end(const JobPtr& job) {
  job->over = true;
  leave_queue(*job);
  jobs_.erase(job);
  if (!waiting_.empty()) boost::asio::post(io_, [this] { pump(); });
}

// Its last event comes later, since the caller that cancels is in the middle of something.
void RemoteGenerator::drop(const JobPtr& job) {
  if (job->over) return;
  if (job->worker) {
    hang_up(*job);
    leave(*job);
  }
  end(job);
  boost::asio::post(io_, [job] {
    job->submission->deliver(
        job->index, {.position = job->next_position(), .finish = FinishReason::kCancelled});
  });
}

void RemoteGenerator::cancel(const std::shared_ptr<Submission>& submission) {
  for (const auto& weak : static_cast<RemoteSubmission&>(*submission).jobs) {
    if (JobPtr job = weak.lock()) drop(job);
  }
}

void RemoteGenerator::cancel_all() {
  std::vector<JobPtr> all(jobs_.begin(), jobs_.end());
  for (const JobPtr& job : all) drop(job);
}

void RemoteGenerator::abandon(const std::shared_ptr<Submission>& submission,
                              std::optional<size_t> index) {
  submission->abandon(index);
  const auto& jobs = static_cast<RemoteSubmission&>(*submission).jobs;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (index.value_or(i) != i) continue;
    if (JobPtr job = jobs[i].lock()) drop(job);
  }
}

void RemoteGenerator::stop() {
  if (std::exchange(stopped_, true)) return;
  timer_.cancel();
  waiting_.clear();
  cancel_all();
  choice_.stop();
  if (membership_) membership_->stop();
  for (const auto& worker : workers_) {
    if (worker) worker->stop();
  }
}

// ---- Time ---------------------------------------------------------------------------------------

void RemoteGenerator::tick() {
  if (stopped_) return;
  SteadyTime now = SteadyClock::now();
  retire(now);
  choice_.tick(now);
  expire(now);
  pump();
  report();
  timer_.expires_after(kTick);
  timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) tick();
  });
}

void RemoteGenerator::expire(SteadyTime now) {
  std::vector<JobPtr> late;
  std::erase_if(waiting_, [&](const JobPtr& job) {
    bool expired = !job->over && now > job->queue_deadline;
    if (expired) late.push_back(job);
    return expired || job->over;
  });
  for (const JobPtr& job : late) {
    if (job->over) continue;
    ++counts_.expired;
    fail(job, {ErrorCode::kExhausted,
               fmt::format("no worker had room within {} s, which is --queue-timeout-secs",
                           config_.queue_timeout_s)});
  }
}

// Counters reported here only grow, although workers come, go and restart.
void RemoteGenerator::count_progress(const WorkerInfo& info, WorkerInfo& counted) {
  if (counted.epoch == 0) counted = info;  // earlier work is not this router's
  if (counted.epoch != info.epoch) counted = {};
  totals_.steps += info.steps - counted.steps;
  totals_.prompt_tokens += info.prompt_tokens - counted.prompt_tokens;
  totals_.cached_tokens += info.cached_tokens - counted.cached_tokens;
  totals_.generated_tokens += info.generated_tokens - counted.generated_tokens;
  counted = info;
}

void RemoteGenerator::report() {
  counted_.resize(workers_.size());
  StepReport sum;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const WorkerInfo* info = workers_[i] ? workers_[i]->info() : nullptr;
    if (info == nullptr) continue;
    count_progress(*info, counted_[i]);
    sum.stats.running += info->running;
    sum.stats.queued += info->queued;
    sum.stats.pages_total += info->pages_total;
    sum.stats.pages_free += info->pages_free;
  }
  sum.stats.steps = totals_.steps;
  sum.stats.prompt_tokens = totals_.prompt_tokens;
  sum.stats.cached_tokens = totals_.cached_tokens;
  sum.stats.generated_tokens = totals_.generated_tokens;
  sum.stats.queued += std::ssize(waiting_);
  if (on_step_) on_step_(sum);
}

}  // namespace banyan
