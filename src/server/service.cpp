#include "server/service.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/signed.h"
#include "base/threads/thread_pool.h"
#include "engine/assemble.h"
#include "llm/llm_parts.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kCompilingNiceness = 10;
constexpr auto kGiveBackInterval = std::chrono::seconds(5);

double seconds_since(SteadyClock::time_point from) {
  return std::chrono::duration<double>(SteadyClock::now() - from).count();
}

}  // namespace

// An unfinished submission and its measurements.
struct Service::Live {
  struct Request {
    RequestTimes times;
    SteadyClock::time_point last_token;
    bool over = false;
    float temperature = 1, top_p = 1;  // for its span
  };

  std::string rid;
  std::weak_ptr<Submission> submission;
  std::shared_ptr<const RequestTrace> trace;  // null: no spans
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
  workers_ = std::make_unique<Workers>(
      Workers::Options{.threads = threads, .queued_max = config_.work_queued_max});
  // At most a quarter of the processors, and a tenth of their time while the engine is busy. An
  // engine thread that waits for a compiler thread stalls the whole step.
  int compiling = config_.grammar_workers > 0 ? config_.grammar_workers
                                              : std::clamp(usable_processors() / 4, 1, 8);
  grammars_ =
      std::make_unique<GrammarQueue>(Workers::Options{.threads = compiling,
                                                      .queued_max = config_.grammars_queued_max,
                                                      .niceness = kCompilingNiceness},
                                     post_);
  std::chrono::duration<double> age(config_.response_ttl_s);
  responses_ = std::make_shared<ResponseStore>(ResponseStore::Limits{
      .count_max = as_size(config_.responses_max),
      .bytes_max = as_size(config_.responses_bytes_max),
      .age_max = std::chrono::duration_cast<ResponseStore::Clock::duration>(age)});
  if (config_.traces_endpoint.empty()) return;
  spans_ = std::make_unique<SpanExporter>(SpanExporter::Options{
      .endpoint = config_.traces_endpoint,
      .headers = config_.traces_headers,
      .gzip = config_.traces_gzip,
      .source = {.service_name = config_.traces_service_name, .version = config_.version}});
}

Service::~Service() {
  stop();
}

Status Service::open_publisher() {
  if (config_.kv_publish.enabled) publisher_ = TRY(KvPublisher::open(config_.kv_publish));
  return {};
}

void Service::attach(std::unique_ptr<Llm> llm, const EngineConfig& config) {
  Engine& engine = llm->engine();
  llm_ = std::move(llm);
  if (publisher_ != nullptr) {
    KvAnnouncer* announcer = EngineAssembly::announcer(engine);
    CHECK(announcer != nullptr, "published pages are named by a state digest");
    publisher_->watch(*announcer, engine.info().page_size_tokens);
  }
  last_report_.stats = logged_ = engine.stats();
  auto thread = std::make_unique<EngineThread>(
      engine,
      EngineThread::Options{.submissions_waiting_max = as_size(config.queued_max) + 64,
                            .watchdog_timeout_s = config_.watchdog_timeout_s,
                            .post = post_,
                            .on_step = [this](const StepReport& report) { on_step(report); }});
  engine_ = thread.get();
  attach(std::move(llm_), config, std::move(thread));
}

void Service::attach(std::unique_ptr<Llm> llm, const EngineConfig& config,
                     std::unique_ptr<Generator> generator) {
  CHECK(state_ == State::kLoading && llm != nullptr && generator != nullptr);
  llm_ = std::move(llm);
  generator_ = std::move(generator);
  engine_config_ = config;
  name_model(config);
  find_syntax();
  metrics_.begin(model_name_, engine_info(), llm_->load_s());
  logged_at_ = SteadyClock::now();
  state_ = State::kReady;
}

void Service::name_model(const EngineConfig& config) {
  if (!config_.served_model_names.empty()) {
    model_name_ = config_.served_model_names.front();
  } else if (!config_.aliases.empty()) {
    model_name_ = *std::ranges::min_element(config_.aliases);
  }
  if (model_name_.empty()) model_name_ = config.model_path;
}

void Service::find_syntax() {
  const Tokenizer* tokenizer = tokenizer_of(*llm_);
  std::string source;
  if (tokenizer != nullptr) source = tokenizer->chat_template().value_or("");
  // ServerConfig::validate() has checked these names.
  chat_syntax_ =
      find_chat_syntax(config_.tool_call_parser, config_.reasoning_parser, source).value();
  auto name = [](const auto* format) { return format == nullptr ? "none" : format->name; };
  spdlog::info("chats: calls of tools as {}, reasoning as {}", name(chat_syntax_.tool_calls),
               name(chat_syntax_.reasoning));
}

void Service::set_puller(ModelPuller puller) {
  pulls_ = std::make_unique<PullQueue>(std::move(puller), post_);
}

void Service::stop() {
  pulls_.reset();
  workers_.reset();
  grammars_.reset();
  if (generator_) generator_->stop();
}

MemoryUse Service::memory_use() const {
  MemoryUse use;
  measure_memory(use);
  if (connection_use_) {
    ConnectionUse connections = connection_use_();
    use.request_bodies = connections.body_bytes;
    use.connection_buffers = connections.buffer_bytes;
  }
  if (!llm_) return use;
  use.weights = engine_info().weight_bytes;
  use.pools = engine_info().state_bytes_max;
  use.step = engine_info().step_bytes;
  use.grammars = llm_->grammar_stats().bytes;
  return use;
}

void Service::tick(SteadyClock::time_point now) {
  if (grammars_) grammars_->check_deadlines(now);
  watch_engine();
  if (now < next_give_back_) return;
  next_give_back_ = now + kGiveBackInterval;
  // This takes the allocator's locks for some milliseconds, so it must not run on the I/O thread.
  (void)enqueue_work("", [] { give_back_memory(); });
}

void Service::watch_engine() {
  if (engine_ == nullptr) return;
  Status ready = engine_->ready();
  if (std::exchange(engine_hangs_, !ready) == !ready) return;
  if (ready) return spdlog::warn("the engine has ended a step; /health is 200 again");
  spdlog::error("{}; /health is a 503", ready.error().message);
}

bool Service::enqueue_work(const std::string& client, std::move_only_function<void()> work) {
  return workers_ && workers_->enqueue(client, std::move(work));
}

Result<std::shared_ptr<Submission>> Service::submit(std::string rid,
                                                    std::vector<GenerateRequest> requests,
                                                    SubmissionSinks sinks,
                                                    std::shared_ptr<const RequestTrace> trace,
                                                    std::vector<RunName> names) {
  auto live = std::make_shared<Live>();
  live->rid = std::move(rid);
  live->trace = std::move(trace);
  live->unfinished = requests.size();
  for (const GenerateRequest& request : requests) {
    if (request.constraint) metrics_.constrained();
    live->requests.push_back({.times = {.prompt_tokens = std::ssize(request.prompt),
                                        .new_tokens_max = request.options.max_new_tokens},
                              .temperature = request.sampling.temperature,
                              .top_p = request.sampling.top_p});
  }
  if (config_.log_requests) log_request(*live, requests);
  SubmissionSinks measured;
  measured.event = [this, live, sink = std::move(sinks.event)](size_t index,
                                                               const TokenEvent& event) {
    live->take(metrics_, index, event);
    if (event.finish != FinishReason::kNone) {
      log_finished(*live, index);
      trace_finished(*live, index, event.error);
    }
    if (live->unfinished == 0) live_.erase(live->submission.lock().get());
    sink(index, event);
  };
  measured.rejected = [this, live, sink = std::move(sinks.rejected)](const Error& error) {
    live_.erase(live->submission.lock().get());
    metrics_.rejected();
    trace_rejected(*live, error);
    sink(error);
  };
  auto submission = generator_->submit(std::move(requests), std::move(measured), std::move(names));
  if (!submission) {
    trace_rejected(*live, submission.error());
    return submission;
  }
  live->submission = *submission;
  live_.emplace(submission->get(), std::move(live));
  return submission;
}

void Service::abandon(const std::shared_ptr<Submission>& submission, FinishReason reason,
                      std::optional<size_t> index) {
  generator_->abandon(submission, index);
  auto found = live_.find(submission.get());
  if (found == live_.end()) return;
  Live& live = *found->second;
  for (size_t i = 0; i < live.requests.size(); ++i) {
    if (index.value_or(i) != i || live.requests[i].over) continue;
    live.end(metrics_, i, reason);
    log_finished(live, i);
    trace_finished(live, i, {});
  }
  if (live.unfinished == 0) live_.erase(found);
}

size_t Service::abort(const std::string& rid) {
  size_t count = 0;
  for (const auto& [key, live] : live_) {
    if (live->rid != rid) continue;
    generator_->cancel(live->submission.lock());
    ++count;
  }
  return count;
}

void Service::abort_all() {
  if (generator_) generator_->cancel_all();
}

void Service::on_step(const StepReport& report) {
  last_report_ = report;
  metrics_.step(report);
  int64_t interval = config_.decode_log_interval;
  if (report.stepped && interval > 0 && report.stats.steps - logged_.steps >= interval) {
    log_steps(report);
  }
}

void Service::log_request(const Live& live, std::span<const GenerateRequest> requests) const {
  for (size_t i = 0; i < requests.size(); ++i) {
    const GenerateRequest& request = requests[i];
    const SamplingParams& sampling = request.sampling;
    spdlog::info(
        "{} [{}] asks: prompt_tokens={} max_new_tokens={} temperature={} top_p={} top_k={} seed={} "
        "priority={}",
        live.rid, i, request.prompt.size(), request.options.max_new_tokens, sampling.temperature,
        sampling.top_p, sampling.top_k, sampling.seed, request.options.priority);
  }
}

void Service::log_finished(const Live& live, size_t index) const {
  if (!config_.log_requests) return;
  const RequestTimes& times = live.requests[index].times;
  spdlog::info(
      "{} [{}] ends: {} tokens={} cached_tokens={} queue_s={:.3f} ttft_s={:.3f} e2e_s={:.3f}",
      live.rid, index, to_string(times.finish), times.generated_tokens, times.cached_tokens,
      times.queued_s, times.first_token_s, times.total_s);
}

std::shared_ptr<RequestTrace> Service::begin_trace(const HttpRequest& request) const {
  if (!spans_) return nullptr;
  auto context = trace_context(request.header("traceparent"), request.header("tracestate"));
  if (!context) return nullptr;
  return std::make_shared<RequestTrace>(RequestTrace{.context = *std::move(context)});
}

std::optional<SpanCounts> Service::span_counts() const {
  if (!spans_) return std::nullopt;
  return spans_->counts();
}

void Service::trace_finished(const Live& live, size_t index, const Error& error) const {
  if (!live.trace) return;
  using std::chrono::nanoseconds, std::chrono::system_clock;
  const Live::Request& request = live.requests[index];
  std::chrono::duration<double> read = live.submitted - live.trace->received;
  auto now = std::chrono::duration_cast<nanoseconds>(system_clock::now().time_since_epoch());
  spans_->add(request_spans(*live.trace, {.id = live.rid,
                                          .model = model_name_,
                                          .temperature = request.temperature,
                                          .top_p = request.top_p,
                                          .times = request.times,
                                          .read_s = read.count(),
                                          .end_ns = now.count(),
                                          .error = error}));
}

// Ends the trace of a submission that the engine rejected.
void Service::trace_rejected(Live& live, const Error& error) const {
  if (!live.trace) return;
  for (size_t i = 0; i < live.requests.size(); ++i) {
    RequestTimes& times = live.requests[i].times;
    times.finish = FinishReason::kError;
    times.total_s = seconds_since(live.submitted);
    trace_finished(live, i, error);
  }
}

void Service::log_steps(const StepReport& report) {
  const EngineStats& now = report.stats;
  double elapsed_s = seconds_since(std::exchange(logged_at_, SteadyClock::now()));
  int64_t used = now.pages_total - now.pages_free - now.pages_cached;
  spdlog::info(
      "Decode batch. #running-req: {}, #token: {}, token usage: {:.2f}, gen throughput (token/s): "
      "{:.1f}, #queue-req: {}, #new-token: {}, #cached-token: {}",
      now.running, used * engine_info().page_size_tokens,
      static_cast<double>(used) / std::max<int64_t>(1, now.pages_total),
      static_cast<double>(now.generated_tokens - logged_.generated_tokens) / elapsed_s, now.queued,
      now.prompt_tokens - logged_.prompt_tokens, now.cached_tokens - logged_.cached_tokens);
  logged_ = now;
}

}  // namespace banyan
