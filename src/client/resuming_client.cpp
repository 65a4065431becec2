#include "client/resuming_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <random>
#include <utility>

#include "base/error.h"

namespace banyan {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kPauseMin = std::chrono::milliseconds(20),
               kPauseMax = std::chrono::milliseconds(500);
constexpr std::string_view kNothing = "0";  // asks a server for ids without resuming
constexpr size_t kHeldBytesMax = 64 << 20;  // of an event, or of an answer that is not a stream

std::string random_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

bool is_stream(std::string_view bytes) {
  return bytes.starts_with("data:") || bytes.starts_with("id:") || bytes.starts_with("event:") ||
         bytes.starts_with(":");
}

// The id of the last of these events, each of which ends with a blank line; empty if none has one.
std::string_view last_id(std::string_view events) {
  constexpr std::string_view kField = "id: ";
  size_t at = events.rfind("\n" + std::string(kField));
  if (at != events.npos) {
    events.remove_prefix(at + 1);
  } else if (!events.starts_with(kField)) {
    return {};
  }
  events.remove_prefix(kField.size());
  return events.substr(0, events.find('\n'));
}

}  // namespace

struct ResumingClient::Call {
  Call(boost::asio::io_context& io, ClientRequest what, ClientSinks to)
      : request(std::move(what)), sinks(std::move(to)), timer(io) {}

  ClientRequest request;
  ClientSinks sinks;
  boost::asio::steady_timer timer;
  uint64_t number = 0;
  size_t server = 0;
  uint64_t exchange = 0, attempt = 0;
  SteadyTime progressed = SteadyClock::now();
  SteadyClock::duration pause = kPauseMin;
  std::string held;               // an incomplete event, or an answer that is not a stream
  std::string last_id{kNothing};  // of the delivered events
  bool streams = false, handed_on = false, over = false;
};

Result<std::unique_ptr<ResumingClient>> ResumingClient::open(boost::asio::io_context& io,
                                                             std::string_view urls,
                                                             const HttpClient::Headers& headers,
                                                             Options options) {
  std::unique_ptr<ResumingClient> made(new ResumingClient(io, options));
  while (true) {
    size_t comma = urls.find(',');
    ServerUrl url = TRY(parse_server_url(urls.substr(0, comma)));
    made->servers_.push_back(std::make_unique<HttpClient>(io, std::move(url), headers));
    if (comma == urls.npos) return made;
    urls.remove_prefix(comma + 1);
  }
}

ResumingClient::~ResumingClient() = default;

Status ResumingClient::resolve() {
  Status first;
  size_t missing = 0;
  for (const auto& server : servers_) {
    Status resolved = server->resolve();
    if (resolved) continue;
    if (++missing == 1) first = resolved;
  }
  return missing == servers_.size() ? first : Status();
}

uint64_t ResumingClient::send(ClientRequest request, ClientSinks sinks) {
  auto call = std::make_shared<Call>(io_, std::move(request), std::move(sinks));
  call->request.headers.emplace_back("X-Request-Id", random_id());
  call->number = ++calls_;
  call->server = first_;
  running_.emplace(call->number, call);
  attempt(call);
  return call->number;
}

void ResumingClient::attempt(const CallPtr& call) {
  ClientRequest request = call->request;
  request.headers.emplace_back("Last-Event-ID", call->last_id);
  uint64_t attempt = ++call->attempt;
  ClientSinks sinks;
  sinks.body = [this, call, attempt](int http_status, std::string_view bytes) {
    if (call->attempt == attempt) take(call, http_status, bytes);
  };
  sinks.end = [this, call, attempt](int http_status, const Status& outcome) {
    if (call->attempt == attempt) take_end(call, http_status, outcome);
  };
  call->exchange = servers_[call->server]->send(std::move(request), std::move(sinks));
}

void ResumingClient::take(const CallPtr& call, int http_status, std::string_view bytes) {
  call->held += bytes;
  if (http_status == 200 && !call->streams) call->streams = is_stream(call->held);
  if (call->held.size() > kHeldBytesMax) {
    uint64_t exchange = call->exchange;
    boost::asio::post(io_, [this, server = call->server, exchange] {
      servers_[server]->cancel(exchange, "its answer is too long");
    });
    return finish(call, http_status, corrupt("an event exceeds {} bytes", kHeldBytesMax));
  }
  if (http_status != 200 || !call->streams) return;
  size_t end = call->held.rfind("\n\n");
  if (end == call->held.npos) return;
  call->progressed = SteadyClock::now();
  call->pause = kPauseMin;
  first_ = call->server;
  std::string whole = call->held.substr(0, end + 2);
  call->held.erase(0, end + 2);
  if (std::string_view id = last_id(whole); !id.empty()) call->last_id = id;
  call->handed_on = true;
  call->sinks.body(http_status, whole);
}

void ResumingClient::take_end(const CallPtr& call, int http_status, const Status& outcome) {
  call->exchange = 0;
  bool refused = http_status == 503 || http_status == 502 || http_status == 504;
  if (outcome && !refused) {
    if (!call->held.empty()) call->sinks.body(http_status, std::exchange(call->held, {}));
    return finish(call, http_status, outcome);
  }
  // A single server that does not answer is more likely a wrong name than a server that restarts.
  bool may_go_on = call->handed_on ? call->last_id != kNothing : servers_.size() > 1;
  std::chrono::duration<double> idle = SteadyClock::now() - call->progressed;
  bool patient = idle.count() < options_.patience_s;
  if (may_go_on && patient) return try_again(call);
  if (outcome && !call->handed_on) call->sinks.body(http_status, std::exchange(call->held, {}));
  finish(call, http_status, outcome);
}

void ResumingClient::try_again(const CallPtr& call) {
  ++resumed_;
  ++call->attempt;
  call->held.clear();
  call->server = (call->server + 1) % servers_.size();
  call->timer.expires_after(call->pause);
  call->pause = std::min<SteadyClock::duration>(2 * call->pause, kPauseMax);
  call->timer.async_wait([this, call](const boost::system::error_code&) {
    if (!call->over) attempt(call);
  });
}

void ResumingClient::finish(const CallPtr& call, int http_status, const Status& outcome) {
  call->over = true;
  ++call->attempt;
  running_.erase(call->number);
  ClientSinks sinks = std::exchange(call->sinks, {});
  sinks.end(http_status, outcome);
}

void ResumingClient::cancel(uint64_t exchange, const std::string& reason) {
  auto found = running_.find(exchange);
  if (found == running_.end()) return;
  CallPtr call = found->second;
  call->timer.cancel();
  if (call->exchange != 0) {
    uint64_t running = std::exchange(call->exchange, 0);
    ++call->attempt;  // events of the earlier attempt are dropped
    servers_[call->server]->cancel(running, reason);
  }
  finish(call, 0, make_error(ErrorCode::kCancelled, reason));
}

}  // namespace banyan
