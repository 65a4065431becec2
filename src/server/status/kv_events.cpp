#include "server/status/kv_events.h"

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cache/kv_announcer.h"
#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "engine/startup/state_identity.h"
#include "router/event_stream.h"
#include "server/status/rate_meter.h"

namespace banyan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kBatchInterval = std::chrono::milliseconds(10);
constexpr auto kReportInterval = std::chrono::milliseconds(100);

// The engine's speed, from its progress between reports. Only an engine that had work all the time
// shows it.
class SpeedMeter {
 public:
  void observe(const EngineStats& stats, bool prompts_wait) {
    Clock::time_point now = Clock::now();
    prompts_.observe(prompts_wait, stats.prompt_tokens, now);
    bool decodes = stats.running > 0 && stats.prompt_tokens == prompt_tokens_;
    steps_.observe(decodes, stats.steps, now);
    prompt_tokens_ = stats.prompt_tokens;
  }
  double prefill_tokens_s() const { return prompts_.per_s(); }
  double step_ms() const { return steps_.per_s() > 0 ? 1000 / steps_.per_s() : 0; }

 private:
  RateMeter prompts_, steps_;
  int64_t prompt_tokens_ = 0;
};

// One router's stream. Its thread paces it and requests new events from the engine's thread; the
// I/O thread sends them.
class KvStream : public std::enable_shared_from_this<KvStream> {
 public:
  KvStream(Service& service, ResponderPtr responder, KvPosition position)
      : service_(service), responder_(std::move(responder)), position_(position) {}

  void start() {
    responder_->begin_stream("application/octet-stream");
    responder_->on_disconnect([self = shared_from_this()] { self->stop(); });
    thread_ = std::thread([this] { keep_time(); });
  }

 private:
  void stop() {  // on the I/O thread
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void keep_time() {
    std::unique_lock lock(mutex_);
    Clock::time_point next = Clock::now(), report = next;
    while (!stopped_) {
      Clock::time_point now = Clock::now();
      bool reports = now >= report;
      bool is_new = log_ == nullptr || log_->next() != next_seen_;
      if (reports || is_new) {
        if (reports) report = now + kReportInterval;
        busy_ = true;
        lock.unlock();
        ask(reports);
        lock.lock();
        changed_.wait(lock, [&] { return stopped_ || !busy_; });
      }
      next = std::max(next + kBatchInterval, now);
      changed_.wait_until(lock, next, [&] { return stopped_; });
    }
  }

  void ask(bool reports) {
    auto self = shared_from_this();
    service_.engine()->run([self, reports](Engine& engine) { self->gather(engine, reports); },
                           [self] { self->deliver(); });
  }

  void gather(Engine& engine, bool reports) {
    KvAnnouncer& announcer = *EngineAssembly::announcer(engine);
    const KvEventLog& log = announcer.log();
    if (!greeted_) greet(engine, log);
    std::vector<KvEvent> events;
    while (position_.epoch == log.epoch() && position_.next < log.next() &&
           log.read(position_.next, kKvFrameEventsMax, events)) {
      position_.next += events.size();
      write_kv_message(KvEvents{std::move(events)}, bytes_);
    }
    if (position_.epoch != log.epoch() || position_.next != log.next()) add_snapshot(announcer);
    if (reports) write_kv_message(load(engine, log), bytes_);
    std::lock_guard lock(mutex_);
    log_ = &log;
    next_seen_ = log.next();
  }

  void greet(const Engine& engine, const KvEventLog& log) {
    StateIdentity identity{.parts = engine.info().state_digest_parts};
    write_kv_message(KvHello{.epoch = log.epoch(),
                             .next = position_.next,
                             .states = identity.digest().value(),
                             .classes = EngineAssembly::scheduler(engine).tree().classes()},
                     bytes_);
    greeted_ = true;
  }

  void add_snapshot(KvAnnouncer& announcer) {
    std::vector<KvUnit> units = announcer.snapshot();
    uint64_t sequence = announcer.log().next() - 1;
    size_t begin = 0;
    do {
      size_t end = std::min(units.size(), begin + kKvFrameEventsMax);
      KvSnapshotPart part{.sequence = sequence, .first = begin == 0, .last = end == units.size()};
      part.units.assign(units.begin() + begin, units.begin() + end);
      write_kv_message(part, bytes_);
      begin = end;
    } while (begin < units.size());
    position_ = {announcer.log().epoch(), sequence + 1};
  }

  LoadReport load(const Engine& engine, const KvEventLog& log) {
    EngineStats stats = engine.stats();
    int64_t waiting_tokens = EngineAssembly::scheduler(engine).waiting_tokens();
    meter_.observe(stats, waiting_tokens > 0);
    return {.waiting_tokens = waiting_tokens,
            .waiting = stats.queued,
            .running = stats.running,
            .pages_free = stats.pages_free + stats.pages_cached,
            .pages_total = stats.pages_total,
            .prefill_tokens_s = meter_.prefill_tokens_s(),
            .step_ms = meter_.step_ms(),
            .next_event = log.next()};
  }

  void deliver() {  // on the I/O thread
    responder_->send(std::exchange(bytes_, {}));
    if (service_.state() == Service::State::kDraining) {
      responder_->finish();
      return stop();
    }
    {
      std::lock_guard lock(mutex_);
      busy_ = false;
    }
    changed_.notify_all();
  }

  Service& service_;
  ResponderPtr responder_;
  std::thread thread_;

  // Used by gather() and deliver(), which take turns.
  KvPosition position_;
  bool greeted_ = false;
  SpeedMeter meter_;
  std::string bytes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false, busy_ = false;
  const KvEventLog* log_ = nullptr;  // null: nothing gathered yet
  uint64_t next_seen_ = 0;
};

// Nothing if the parameter is absent.
Result<std::optional<uint64_t>> number_parameter(const HttpRequest& request,
                                                 std::string_view name) {
  std::optional<std::string_view> text = request.parameter(name);
  if (!text) return std::optional<uint64_t>();
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) {
    return invalid_argument("{} is \"{}\", not a number below 2^64", name, *text);
  }
  return std::optional(value);
}

}  // namespace

void kv_events(Service& service, HttpRequest request, ResponderPtr responder) {
  if (request.method == "HEAD") {
    return responder->respond(200, std::string(), "application/octet-stream");
  }
  if (service.engine_info().state_digest.empty()) {
    return responder->respond_error(
        400, "KV events name pages by the model's state digest: start with --state-digest");
  }
  auto epoch = number_parameter(request, "epoch"), from = number_parameter(request, "from");
  for (const auto* parameter : {&epoch, &from}) {
    if (!*parameter) return responder->respond_error(400, parameter->error().message);
  }
  KvPosition position{.epoch = epoch->value_or(0), .next = from->value_or(0)};
  std::make_shared<KvStream>(service, std::move(responder), position)->start();
}

}  // namespace banyan
