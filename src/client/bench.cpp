#include "client/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <memory>
#include <utility>

#include "base/signed.h"
#include "client/event_stream.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr size_t kErrorBodyBytesMax = 64 << 10;

SteadyClock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(seconds));
}

// A request of the dataset, or the next turn of a conversation.
struct Turn {
  size_t prompt = 0;
  Conversation said;  // messages to send
};

// One request in progress.
struct Exchange {
  Turn turn;
  RequestRecord record;
  EventStream events;
  std::string error_body;  // of a response other than 200
  std::string answer;      // in a conversation
};

class BenchRun {
 public:
  BenchRun(boost::asio::io_context& io, HttpClient& client, const Dataset& dataset,
           const BenchOptions& options,
           const std::function<void(const BenchProgress&)>& on_progress,
           const std::function<bool()>& interrupted)
      : io_(io),
        client_(client),
        dataset_(dataset),
        options_(options),
        on_progress_(on_progress),
        interrupted_(interrupted),
        arrival_timer_(io),
        tick_timer_(io) {}

  BenchResult run();

 private:
  double now_s() const {
    return std::chrono::duration<double>(SteadyClock::now() - begin_).count();
  }

  void plan_arrivals();
  void admit_arrivals();
  void start_ready();
  void start(Turn turn);
  void on_body(Exchange& exchange, int http_status, std::string_view piece);
  void on_event(Exchange& exchange, std::string_view data);
  void count_tokens(Exchange& exchange, int64_t count);
  void on_end(Exchange& exchange, int http_status, const Status& outcome);
  std::pair<std::string, std::string> failure_of(const Exchange& exchange, int http_status,
                                                 const Status& outcome) const;
  void continue_conversation(Exchange& exchange);
  void tick();
  void end_if_done();

  boost::asio::io_context& io_;
  HttpClient& client_;
  const Dataset& dataset_;
  const BenchOptions& options_;
  const std::function<void(const BenchProgress&)>& on_progress_;
  const std::function<bool()>& interrupted_;
  boost::asio::steady_timer arrival_timer_, tick_timer_;
  SteadyClock::time_point begin_;
  std::vector<double> arrivals_s_;  // of the dataset's prompts, ascending
  size_t arrived_ = 0;
  std::deque<Turn> ready_;  // arrived, but held back by the concurrency limit
  int64_t in_flight_ = 0, output_tokens_ = 0, total_ = 0;
  bool start_posted_ = false, ended_ = false;
  BenchResult result_;
};

void BenchRun::plan_arrivals() {
  size_t count = dataset_.prompts.size();
  if (options_.requests_per_s > 0) {
    arrivals_s_ = poisson_arrivals(count, options_.requests_per_s, options_.seed);
  } else {
    for (const BenchPrompt& prompt : dataset_.prompts) arrivals_s_.push_back(prompt.arrival_s);
  }
  for (const BenchPrompt& prompt : dataset_.prompts) {
    total_ += std::max<int64_t>(1, std::ssize(prompt.turns));
  }
}

BenchResult BenchRun::run() {
  plan_arrivals();
  result_.gaps_ms.reserve(1 << 16);
  begin_ = SteadyClock::now();
  admit_arrivals();
  end_if_done();
  tick();
  io_.restart();
  io_.run();
  return std::move(result_);
}

void BenchRun::admit_arrivals() {
  double now = now_s();
  for (; arrived_ < arrivals_s_.size() && arrivals_s_[arrived_] <= now; ++arrived_) {
    const BenchPrompt& prompt = dataset_.prompts[arrived_];
    Conversation said;
    if (!prompt.turns.empty()) said.push_back(prompt.turns.front());
    ready_.push_back({arrived_, std::move(said)});
  }
  start_ready();
  if (arrived_ == arrivals_s_.size()) return;
  arrival_timer_.expires_at(begin_ + duration_of(arrivals_s_[arrived_]));
  arrival_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec && !ended_) admit_arrivals();
  });
}

void BenchRun::start_ready() {
  while (!ready_.empty() &&
         (options_.concurrency_max == 0 || in_flight_ < options_.concurrency_max)) {
    Turn turn = std::move(ready_.front());
    ready_.pop_front();
    start(std::move(turn));
  }
}

void BenchRun::start(Turn turn) {
  const BenchPrompt& prompt = dataset_.prompts[turn.prompt];
  ClientRequest request{.path = path_of(options_.style.api),
                        .body = request_body(options_.style, prompt, dataset_.seed, turn.said)};
  auto exchange = std::make_shared<Exchange>();
  exchange->turn = std::move(turn);
  exchange->record.prompt_tokens = prompt.prompt_tokens();
  exchange->record.begin_s = now_s();
  result_.concurrency_peak = std::max(result_.concurrency_peak, ++in_flight_);
  client_.send(
      std::move(request),
      {.body = [this, exchange](int status,
                                std::string_view piece) { on_body(*exchange, status, piece); },
       .end = [this, exchange](int status,
                               const Status& outcome) { on_end(*exchange, status, outcome); }});
}

void BenchRun::on_body(Exchange& exchange, int http_status, std::string_view piece) {
  if (http_status != 200) {
    size_t room = kErrorBodyBytesMax - exchange.error_body.size();
    exchange.error_body += piece.substr(0, room);
    return;
  }
  if (!exchange.record.error.empty()) return;
  Status fed =
      exchange.events.feed(piece, [&](std::string_view data) { on_event(exchange, data); });
  if (!fed) exchange.record.error = fed.error().message;
}

void BenchRun::on_event(Exchange& exchange, std::string_view data) {
  if (data == "[DONE]") return;
  EventFacts facts = read_event(options_.style.api, data);
  RequestRecord& record = exchange.record;
  if (!facts.error.empty() && record.error.empty()) record.error = facts.error;
  if (facts.prompt_tokens >= 0) record.prompt_tokens = facts.prompt_tokens;
  if (facts.cached_tokens >= 0) record.cached_tokens = facts.cached_tokens;
  // Never count more tokens than were requested, whatever the server reports.
  int64_t asked = dataset_.prompts[exchange.turn.prompt].output_tokens;
  int64_t tokens = facts.completion_tokens;
  if (tokens < 0) tokens = record.output_tokens + (facts.has_text ? 1 : 0);
  tokens = std::min(tokens, asked);
  // The final usage also counts tokens without text, such as partial characters.
  bool usage_only = options_.style.api != ServingApi::kSglang && !facts.has_text;
  if (usage_only && record.output_tokens > 0) {
    record.output_tokens = std::max(record.output_tokens, tokens);
  } else if (tokens > record.output_tokens) {
    count_tokens(exchange, tokens - record.output_tokens);
  }
  if (!exchange.turn.said.empty()) take_text(options_.style.api, data, exchange.answer);
}

void BenchRun::count_tokens(Exchange& exchange, int64_t count) {
  RequestRecord& record = exchange.record;
  double now = now_s();
  if (record.output_tokens == 0) {
    record.first_s = now;
  } else {
    auto gap_ms = static_cast<float>((now - record.last_s) * 1e3 / count);
    result_.gaps_ms.insert(result_.gaps_ms.end(), as_size(count), gap_ms);
  }
  record.last_s = now;
  record.output_tokens += count;
  output_tokens_ += count;
  auto second = static_cast<size_t>(now);
  if (second >= result_.tokens_by_second.size()) result_.tokens_by_second.resize(second + 1);
  result_.tokens_by_second[second] += count;
}

// The category and the message of a failure; empty on success.
std::pair<std::string, std::string> BenchRun::failure_of(const Exchange& exchange, int http_status,
                                                         const Status& outcome) const {
  const std::string& said = exchange.record.error;
  if (http_status != 200 && http_status != 0) {
    std::string reason = fmt::format("HTTP {}", http_status);
    return {reason, fmt::format("{}: {}", reason, error_message(exchange.error_body))};
  }
  if (!said.empty()) return {"error in the stream", "error in the stream: " + said};
  if (!outcome) return {outcome.error().message, outcome.error().message};
  if (exchange.record.output_tokens == 0) return {"no tokens", "the answer has no tokens"};
  return {};
}

void BenchRun::on_end(Exchange& exchange, int http_status, const Status& outcome) {
  --in_flight_;
  if (ended_) return;
  RequestRecord& record = exchange.record;
  auto [reason, message] = failure_of(exchange, http_status, outcome);
  record.ok = reason.empty();
  record.error = std::move(message);
  if (!record.ok) ++result_.failures[reason];
  result_.records.push_back(record);
  result_.duration_s = now_s();
  if (record.ok) {
    continue_conversation(exchange);
  } else if (!exchange.turn.said.empty()) {
    total_ -= std::ssize(dataset_.prompts[exchange.turn.prompt].turns) -
              std::ssize(exchange.turn.said) / 2 - 1;
  }
  // The connection becomes free only after this returns.
  if (!std::exchange(start_posted_, true)) {
    boost::asio::post(io_, [this] {
      start_posted_ = false;
      if (ended_) return;
      start_ready();
      end_if_done();
    });
  }
}

void BenchRun::continue_conversation(Exchange& exchange) {
  const std::vector<std::string>& turns = dataset_.prompts[exchange.turn.prompt].turns;
  size_t next = exchange.turn.said.size() / 2 + 1;
  if (exchange.turn.said.empty() || next >= turns.size()) return;
  Turn turn = std::move(exchange.turn);
  turn.said.push_back(std::move(exchange.answer));
  turn.said.push_back(turns[next]);
  ready_.push_front(std::move(turn));
}

void BenchRun::tick() {
  if (ended_) return;
  if (on_progress_) {
    on_progress_({std::ssize(result_.records), total_, output_tokens_, now_s()});
  }
  if (interrupted_ && interrupted_()) {
    ended_ = result_.interrupted = true;
    result_.duration_s = now_s();
    arrival_timer_.cancel();
    client_.cancel_older_than(SteadyClock::time_point::max(), "interrupted");
    return;
  }
  client_.cancel_older_than(SteadyClock::now() - duration_of(options_.timeout_s),
                            fmt::format("no complete answer in {:g} s", options_.timeout_s));
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const boost::system::error_code& ec) {
    if (!ec) tick();
  });
}

void BenchRun::end_if_done() {
  if (in_flight_ > 0 || !ready_.empty() || arrived_ < arrivals_s_.size()) return;
  ended_ = true;
  tick_timer_.cancel();
}

}  // namespace

BenchResult run_bench(boost::asio::io_context& io, HttpClient& client, const Dataset& dataset,
                      const BenchOptions& options,
                      const std::function<void(const BenchProgress&)>& on_progress,
                      const std::function<bool()>& interrupted) {
  return BenchRun(io, client, dataset, options, on_progress, interrupted).run();
}

}  // namespace banyan
