#include "server/tracing/span_exporter.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/quote.h"
#include "client/http_client.h"
#include "server/tracing/gzip.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

// The outcome of sending a batch.
struct SpanDelivery {
  bool taken = false;
  bool again = false;  // retrying may help
  std::string failure = {};
};

// Retryable statuses of the OTLP standard.
bool is_worth_another_try(int http_status) {
  return http_status == 429 || http_status == 502 || http_status == 503 || http_status == 504;
}

Result<ServerUrl> parse_traces_endpoint(const std::string& endpoint) {
  if (!endpoint.contains(':')) {  // neither a scheme nor a port
    return invalid_argument("{} is not a URL such as http://localhost:4318/v1/traces",
                            quote(endpoint));
  }
  ServerUrl url = TRY(parse_server_url(endpoint));
  if (url.prefix.empty()) url.prefix = "/v1/traces";
  return url;
}

HttpClient::Headers headers_of(const SpanExporter::Options& options) {
  HttpClient::Headers headers = options.headers;
  headers.emplace_back("User-Agent", "banyan/" + options.source.version);
  if (options.gzip) headers.emplace_back("Content-Encoding", "gzip");
  return headers;
}

}  // namespace

// The queue and the connection. The thread shares ownership, since a name lookup may hang for
// longer than server shutdown may wait.
class SpanExporter::Sender {
 public:
  explicit Sender(Options options)
      : options_(std::move(options)),
        client_(io_, parse_traces_endpoint(options_.endpoint).value(), headers_of(options_)) {}

  void add(std::vector<Span> spans);
  SpanCounts counts() const { return {.exported = exported_, .dropped = dropped_}; }
  void run();
  void stop();
  // Whether run() returned soon after stop().
  bool ended_in_time();

 private:
  std::vector<Span> next_batch();
  void deliver(const std::vector<Span>& batch);
  SpanDelivery post(const std::string& body);
  SpanDelivery exchange(const std::string& body);
  // The earlier of `time` and the deadline that stop() sets.
  SteadyClock::time_point bounded(SteadyClock::time_point time);
  // Returns false if no time is left for another try.
  bool pause(SteadyClock::duration time);
  void note(const std::string& failure);

  const Options options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Span> queue_;
  bool stopping_ = false, ended_ = false;
  SteadyClock::time_point stop_at_;
  std::atomic<int64_t> exported_ = 0, dropped_ = 0;

  // Used only by the thread:
  boost::asio::io_context io_{1};
  HttpClient client_;
  bool resolved_ = false;
  bool failing_ = false;
  int64_t dropped_before_ = 0;  // as of the log line about the failure
};

void SpanExporter::Sender::add(std::vector<Span> spans) {
  std::unique_lock lock(mutex_);
  if (queue_.size() + spans.size() > options_.queued_max) {
    dropped_ += std::ssize(spans);
    return;
  }
  bool wakes = queue_.empty() || queue_.size() + spans.size() >= options_.batch_max;
  std::ranges::move(spans, std::back_inserter(queue_));
  lock.unlock();
  if (wakes) wake_.notify_all();
}

void SpanExporter::Sender::run() {
  for (auto batch = next_batch(); !batch.empty(); batch = next_batch()) {
    Status done = guard([&]() -> Status {
      deliver(batch);
      return {};
    });
    if (!done) dropped_ += std::ssize(batch);  // out of memory while encoding it
  }
  std::scoped_lock lock(mutex_);
  ended_ = true;
  wake_.notify_all();
}

// Waits for the next batch. Empty: shutdown.
std::vector<Span> SpanExporter::Sender::next_batch() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  wake_.wait_for(lock, options_.interval,
                 [this] { return stopping_ || queue_.size() >= options_.batch_max; });
  if (stopping_ && SteadyClock::now() >= stop_at_) {
    dropped_ += std::ssize(queue_);
    queue_.clear();
  }
  auto end = queue_.begin() + std::ssize(queue_);
  if (queue_.size() > options_.batch_max) {
    end = queue_.begin() + options_.batch_max;
  }
  std::vector<Span> batch(std::make_move_iterator(queue_.begin()), std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

void SpanExporter::Sender::deliver(const std::vector<Span>& batch) {
  std::string body = otlp_json(options_.source, batch);
  if (options_.gzip) body = gzip(body);
  SpanDelivery delivery = post(body);
  for (auto time = options_.pause_min; delivery.again && pause(time);
       time = std::min(2 * time, options_.pause_max)) {
    delivery = post(body);
  }
  (delivery.taken ? exported_ : dropped_) += std::ssize(batch);
}

SpanDelivery SpanExporter::Sender::post(const std::string& body) {
  SpanDelivery delivery;
  Status found = resolved_ ? Status() : client_.resolve();
  resolved_ = found.has_value();
  if (resolved_) {
    delivery = exchange(body);
  } else {
    delivery = {.again = true, .failure = found.error().message};
  }
  if (delivery.again) resolved_ = false;  // its address may have changed by the next try
  note(delivery.failure);
  return delivery;
}

SpanDelivery SpanExporter::Sender::exchange(const std::string& body) {
  std::optional<SpanDelivery> delivery;
  auto on_end = [&](int status, const Status& outcome) {
    bool taken = outcome && status >= 200 && status < 300;
    bool again = !outcome || is_worth_another_try(status);
    delivery = {.taken = taken, .again = again};
    if (!outcome) delivery->failure = outcome.error().message;
    if (outcome && !taken) delivery->failure = fmt::format("the answer is HTTP {}", status);
  };
  io_.restart();
  uint64_t exchange = client_.send({.path = "", .body = body},
                                   {.body = [](int, std::string_view) {}, .end = on_end});
  auto end = SteadyClock::now() + options_.timeout;
  while (!delivery && SteadyClock::now() < bounded(end)) io_.run_one_until(bounded(end));
  if (!delivery) client_.cancel(exchange, "there is no answer in time");
  io_.poll();  // run the handlers left by a closed connection
  return *delivery;
}

SteadyClock::time_point SpanExporter::Sender::bounded(SteadyClock::time_point time) {
  std::scoped_lock lock(mutex_);
  return stopping_ ? std::min(time, stop_at_) : time;
}

bool SpanExporter::Sender::pause(SteadyClock::duration time) {
  std::unique_lock lock(mutex_);
  if (stopping_) return false;  // that was the last try
  wake_.wait_for(lock, time, [this] { return stopping_; });
  return true;
}

// Logs a change between working and failing; "" means success.
void SpanExporter::Sender::note(const std::string& failure) {
  // After shutdown this thread may be the last one, and the logger gone.
  if (failing_ == !failure.empty() || SteadyClock::now() >= bounded(SteadyClock::time_point::max()))
    return;
  failing_ = !failure.empty();
  if (failing_) {
    dropped_before_ = dropped_;
    spdlog::warn(
        "cannot export spans to {}: {}; the collector must accept OTLP over HTTP (usually port "
        "4318)",
        options_.endpoint, failure);
  } else {
    spdlog::info("exporting spans to {} again; {} were dropped", options_.endpoint,
                 dropped_ - dropped_before_);
  }
}

void SpanExporter::Sender::stop() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
    stop_at_ = SteadyClock::now() + options_.farewell;
  }
  wake_.notify_all();
  boost::asio::post(io_, [] {});  // makes a pending wait read the new deadline
}

bool SpanExporter::Sender::ended_in_time() {
  constexpr auto kGrace = std::chrono::milliseconds(500);
  std::unique_lock lock(mutex_);
  return wake_.wait_until(lock, stop_at_ + kGrace, [this] { return ended_; });
}

Status SpanExporter::check_endpoint(const std::string& endpoint) {
  auto url = parse_traces_endpoint(endpoint);
  if (url) return {};
  return make_error(url.error().code, "--otlp-traces-endpoint " + url.error().message);
}

SpanExporter::SpanExporter(Options options)
    : sender_(std::make_shared<Sender>(std::move(options))),
      thread_([sender = sender_] { sender->run(); }) {}

SpanExporter::~SpanExporter() {
  sender_->stop();
  if (sender_->ended_in_time()) {
    thread_.join();
  } else {
    thread_.detach();
  }
  int64_t dropped = counts().dropped;
  if (dropped > 0) spdlog::warn("{} spans were dropped since the start", dropped);
}

void SpanExporter::add(std::vector<Span> spans) {
  sender_->add(std::move(spans));
}

SpanCounts SpanExporter::counts() const {
  return sender_->counts();
}

}  // namespace banyan
