#include "server/http/connection.h"

#include <fmt/chrono.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/http/status.hpp>
#include <ctime>
#include <exception>
#include <utility>

#include "base/log.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/signed.h"
#include "server/auth.h"
#include "server/error.h"

namespace banyan {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kInputBytesMax = 64 << 10;  // of pipelined requests
constexpr size_t kRequestIdBytesMax = 128;
constexpr int kUnsentBytesMax = 128 << 10;     // in the kernel's socket buffer
constexpr size_t kKeptBufferBytes = 16 << 10;  // capacity that an idle connection may keep

bool is_usable_id(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax && std::ranges::all_of(id, [](char c) {
    return c > 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
}

RequestLimits limits_of(const ServerConfig& config) {
  return {.header_bytes_max = config.header_bytes_max,
          .body_bytes_max = config.body_bytes_max,
          .body_chunks_max = config.body_chunks_max};
}

// The HTTP date, "Sat, 21 Nov 2026 05:00:00 GMT"; formatted once per second. A process may have
// several servers, each with a thread of its own.
std::string_view http_date() {
  thread_local std::time_t made_at = 0;
  thread_local std::string text;
  std::time_t now = std::time(nullptr);
  if (now != made_at) {
    made_at = now;
    text = fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(now));
  }
  return text;
}

// Frees the memory, which assigning {} would not.
void release(std::string& buffer) {
  std::string().swap(buffer);
}

bool may_have_body(int status) {
  return status != 204 && status != 304;
}

bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && request.header("origin") &&
         request.header("access-control-request-method");
}

HttpHeaders preflight_headers(const HttpRequest& request) {
  HttpHeaders headers = {
      {"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, DELETE, OPTIONS"},
      {"Access-Control-Allow-Headers",
       std::string(request.header("access-control-request-headers").value_or("*"))},
      {"Access-Control-Max-Age", "86400"}};
  if (request.header("access-control-request-private-network") == "true") {
    headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return headers;
}

}  // namespace

void ConnectionHub::begin_exchange(Exchange& exchange) {
  exchange.number = ++exchanges_begun;
  exchange.begun = SteadyClock::now();
  exchange.awaited = !draining_;
  ++exchanges_open;
  exchanges_awaited += exchange.awaited ? 1 : 0;
}

void ConnectionHub::end_exchange(const Exchange& exchange) {
  --exchanges_open;
  exchanges_awaited -= exchange.awaited ? 1 : 0;
}

int64_t ConnectionHub::buffer_bytes() const {
  size_t bytes = sizeof scratch;
  for (const auto& connection : open) bytes += connection->buffer_bytes();
  return bytes;
}

void ConnectionHub::flush_soon(std::shared_ptr<Connection> connection) {
  if (std::exchange(connection->flush_asked_, true)) return;
  to_flush_.push_back(std::move(connection));
  if (to_flush_.size() > 1) return;
  asio::post(io, [this] {
    for (auto& one : std::exchange(to_flush_, {})) {
      one->flush_asked_ = false;
      one->flush();
    }
  });
}

Connection::Connection(ConnectionHub& hub, Socket socket, bool refused)
    : hub_(hub), socket_(std::move(socket)), refused_(refused) {}

void Connection::start() {
  error_code ignored;
  address_ = socket_.remote_endpoint(ignored).address().to_string();
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  // Data that a slow reader leaves unsent should wait in our buffer, which is counted, and not in
  // the kernel's.
  int bytes = kUnsentBytesMax;
  setsockopt(socket_.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
  const ServerConfig& config = hub_.service.config();
  if (hub_.tls) tls_.emplace(*hub_.tls, socket_.native_handle());
  set_deadline(refused_ ? 1 : tls_ ? config.header_timeout_s : config.idle_timeout_s);
  wait_read();
}

void Connection::set_deadline(double seconds) {
  deadline_ = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                       std::chrono::duration<double>(seconds));
}

// --- requests ---

void Connection::wait_read() {
  if (waiting_read_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswer && input_.size() >= kInputBytesMax) return;
  waiting_read_ = true;
  bool for_write = tls_ && !tls_->is_ready() && tls_->wants() == TlsChannel::Wants::kWrite;
  auto ready = for_write ? Socket::wait_write : Socket::wait_read;
  socket_.async_wait(ready, [self = shared_from_this()](error_code ec) {
    self->waiting_read_ = false;
    if (self->phase_ == Phase::kClosed) return;
    if (ec) return self->on_end(false);
    self->on_readable();
  });
}

void Connection::on_readable() {
  error_code ec;
  bool shaken = !tls_ || tls_->is_ready();
  size_t bytes = read_some(ec);
  if (!shaken && tls_->is_ready() && !refused_) set_deadline(hub_.service.config().idle_timeout_s);
  if (tls_ && tls_->is_plain_http()) return refuse_plain();
  if (ec == asio::error::would_block || ec == asio::error::try_again) return wait_read();
  if (ec) return on_end(ec == asio::error::eof);
  take({hub_.scratch.data(), bytes});
  wait_read();
}

size_t Connection::read_some(error_code& ec) {
  return tls_ ? tls_->read_some(hub_.scratch, ec)
              : socket_.read_some(asio::buffer(hub_.scratch), ec);
}

// Answers plain HTTP on a TLS port in plain HTTP, as web servers do, so that the client can read
// it.
void Connection::refuse_plain() {
  tls_.reset();
  refuse({400, "this is an HTTPS port: use https:// in place of http://"});
}

// The client has closed its side, or the whole connection.
void Connection::on_end(bool clean) {
  if (!clean) return cut("the client reset the connection");
  switch (phase_) {
    case Phase::kHeader:
    case Phase::kBody:
      return refuse({400, "the connection was closed in the middle of a request"});
    case Phase::kAnswer:
      break;
    default:
      return close();
  }
  exchange_->keep_alive = false;
  if (exchange_->answer == Answer::kComplete) return;  // the client may still read it
  if (exchange_->answer == Answer::kStream) return cut("the client closed the connection");
  // Only people using a raw socket half-close a connection and wait for an answer: explain it to
  // them.
  if (exchange_->on_disconnect) asio::post(hub_.io, std::exchange(exchange_->on_disconnect, {}));
  refuse({499, "the client closed the connection before the answer"});
}

void Connection::take(std::string_view bytes) {
  if (phase_ == Phase::kLinger) return;
  if (phase_ == Phase::kAnswer) {
    input_.append(bytes);
    return;
  }
  if (input_.empty()) {
    bytes = advance(bytes);
    if (phase_ != Phase::kClosed) input_.assign(bytes);
    return;
  }
  input_.append(bytes);
  std::string all = std::exchange(input_, {});
  input_.assign(advance(all));
}

// Parses requests until one needs an answer; returns the unused bytes.
std::string_view Connection::advance(std::string_view bytes) {
  while (!bytes.empty()) {
    if (phase_ == Phase::kIdle) {
      phase_ = Phase::kHeader;
      reader_.emplace(limits_of(hub_.service.config()));
      set_deadline(hub_.service.config().header_timeout_s);
    }
    if (phase_ != Phase::kHeader && phase_ != Phase::kBody) return bytes;
    RequestReader::State before = reader_->state();
    auto used = reader_->feed(bytes);
    if (!used) {
      refuse(used.error());
      return {};
    }
    bytes.remove_prefix(*used);
    account_body();
    if (phase_ == Phase::kHeader && reader_->state() != RequestReader::State::kHeader) {
      phase_ = Phase::kBody;
      begin_exchange();
      if (!admit()) return {};
    }
    if (reader_->state() == RequestReader::State::kDone) {
      handle();
    } else if (reader_->state() == before) {
      return bytes;
    }
    if (phase_ == Phase::kClosed) return {};
  }
  return bytes;
}

// Adds new body bytes to the total, which is limited over all connections. The deadline requires a
// minimum rate, so a slow body cannot hold its share for long.
void Connection::account_body() {
  int64_t bytes = reader_->body_bytes();
  hub_.body_bytes += bytes - body_bytes_counted_;
  body_bytes_counted_ = bytes;
}

void Connection::begin_exchange() {
  HttpRequest& request = reader_->request();
  std::string_view id = request.header("x-request-id").value_or("");
  hub_.begin_exchange(exchange_.emplace());
  body_begun_ = exchange_->begun;
  exchange_->method = request.method;
  exchange_->path = request.path;
  exchange_->readable_by = hub_.origins->readable_by(request);
  exchange_->chunks_allowed = reader_->chunks_allowed();
  exchange_->keep_alive = reader_->keep_alive();
  auto random = philox(hub_.request_id_key, exchange_->number, 0);
  request.id = is_usable_id(id)
                   ? std::string(id)
                   : fmt::format("{:08x}{:08x}{:08x}", random[0], random[1], random[2]);
  exchange_->id = request.id;
}

// Checks what the header alone decides. Returns false if the request was refused.
bool Connection::admit() {
  const HttpRequest& request = reader_->request();
  const ServerConfig& config = hub_.service.config();
  if (refused_) {
    refuse(
        {503, fmt::format("{} connections are open, which is the limit", config.connections_max)},
        {{"Retry-After", "1"}});
    return false;
  }
  if (std::optional<Refusal> foreign = hub_.origins->check(request)) {
    refuse(*foreign);
    return false;
  }
  // Browsers send preflight requests without a key.
  bool asks_for_a_page = is_preflight(request) && reader_->state() == RequestReader::State::kDone;
  if (!asks_for_a_page && !is_authorized(config, request)) {
    refuse({401, carries_key(request) ? "the API key is wrong"
                                      : "an API key is needed, as Authorization: Bearer KEY"},
           {{"WWW-Authenticate", "Bearer"}});
    return false;
  }
  if (reader_->expects_continue() && reader_->state() == RequestReader::State::kBody) {
    output_ += "HTTP/1.1 100 Continue\r\n\r\n";
    hub_.flush_soon(shared_from_this());
  }
  return true;
}

void Connection::handle() {
  if (hub_.body_bytes > hub_.service.config().bodies_bytes_max) {
    return refuse({503, "too many large requests at once"}, {{"Retry-After", "1"}});
  }
  phase_ = Phase::kAnswer;
  deadline_ = SteadyTime::max();
  HttpRequest request = std::move(reader_->request());
  request.client = client_of(hub_.service.config(), request, address_);
  uint64_t number = exchange_->number;
  if (is_preflight(request)) {
    return respond(number, 200, "", "text/plain", preflight_headers(request));
  }
  auto responder = std::make_shared<Responder>(shared_from_this(), number);
  try {
    dispatch(hub_.routes, hub_.service, std::move(request), responder);
  } catch (const std::exception& e) {
    spdlog::error("{} failed: {}", exchange_ ? exchange_->id : "a request", e.what());
    responder->respond_error(500, "the server ran out of memory");
  }
}

// --- answers ---

// Answers a request that cannot be read to its end; the connection is closed afterwards.
void Connection::refuse(const Refusal& refusal, const HttpHeaders& more) {
  if (!exchange_) {
    hub_.begin_exchange(exchange_.emplace());
  }
  phase_ = Phase::kAnswer;
  deadline_ = SteadyTime::max();
  exchange_->keep_alive = false;
  std::string body = error_json(refusal.status, refusal.message, {}, {}, exchange_->path).dump();
  respond(exchange_->number, refusal.status, body, "application/json", more);
}

Exchange* Connection::find(uint64_t number) {
  bool same = exchange_ && exchange_->number == number;
  return same && exchange_->answer != Answer::kComplete ? &*exchange_ : nullptr;
}

bool Connection::is_open(uint64_t number) const {
  return const_cast<Connection*>(this)->find(number) != nullptr;
}

bool Connection::is_started(uint64_t number) const {
  return !exchange_ || exchange_->number != number || exchange_->answer != Answer::kNone;
}

std::string_view Connection::path(uint64_t number) const {
  return exchange_ && exchange_->number == number ? std::string_view(exchange_->path) : "";
}

size_t Connection::unsent_bytes(uint64_t number) const {
  return is_open(number) ? unsent_bytes() : 0;
}

void Connection::respond(uint64_t number, int status, std::string_view body,
                         std::string_view content_type, const HttpHeaders& more) {
  Exchange* exchange = find(number);
  if (exchange == nullptr || exchange->answer != Answer::kNone) return;
  exchange->answer = Answer::kComplete;
  write_head(status, content_type, body.size(), more);
  if (exchange->method != "HEAD" && may_have_body(status)) {
    output_.append(body);
    exchange->bytes_sent += std::ssize(body);
  }
  hub_.flush_soon(shared_from_this());
}

void Connection::begin_stream(uint64_t number, std::string_view content_type) {
  Exchange* exchange = find(number);
  if (exchange == nullptr || exchange->answer != Answer::kNone) return;
  exchange->answer = Answer::kStream;
  exchange->keep_alive = exchange->keep_alive && exchange->chunks_allowed;
  write_head(200, content_type, std::nullopt,
             {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
  hub_.flush_soon(shared_from_this());
}

void Connection::write_head(int status, std::string_view content_type,
                            std::optional<size_t> body_bytes, const HttpHeaders& more) {
  Exchange& exchange = *exchange_;
  exchange.status = status;
  exchange.keep_alive = exchange.keep_alive && !hub_.service.leaving();
  auto to = std::back_inserter(output_);
  std::string_view reason = status == 499 ? "Client Closed Request"
                                          : std::string_view(boost::beast::http::obsolete_reason(
                                                static_cast<boost::beast::http::status>(status)));
  fmt::format_to(to, "HTTP/1.1 {} {}\r\nDate: {}\r\n", status, reason, http_date());
  if (may_have_body(status)) fmt::format_to(to, "Content-Type: {}\r\n", content_type);
  if (body_bytes && may_have_body(status)) {
    fmt::format_to(to, "Content-Length: {}\r\n", *body_bytes);
  } else if (!body_bytes && exchange.chunks_allowed) {
    output_ += "Transfer-Encoding: chunked\r\n";
  }
  fmt::format_to(to, "Connection: {}\r\n", exchange.keep_alive ? "keep-alive" : "close");
  if (!exchange.id.empty()) fmt::format_to(to, "X-Request-Id: {}\r\n", exchange.id);
  if (!exchange.readable_by.empty()) {
    fmt::format_to(to,
                   "Access-Control-Allow-Origin: {}\r\nVary: Origin\r\n"
                   "Access-Control-Expose-Headers: X-Request-Id, Retry-After\r\n",
                   exchange.readable_by);
  }
  for (const auto& [name, value] : more) fmt::format_to(to, "{}: {}\r\n", name, value);
  output_ += "\r\n";
}

bool Connection::send(uint64_t number, std::string_view data) {
  Exchange* exchange = find(number);
  if (exchange == nullptr || exchange->answer != Answer::kStream) return false;
  exchange->largest_bytes = std::max(exchange->largest_bytes, data.size());
  // A single piece larger than the buffer takes time even if the reader is not slow.
  size_t limit =
      std::max(as_size(hub_.service.config().send_buffer_bytes_max), 2 * exchange->largest_bytes);
  if (unsent_bytes() + data.size() > limit) flush();
  if (phase_ == Phase::kClosed) return false;
  if (unsent_bytes() + data.size() > limit) {
    cut(fmt::format("the client leaves {} bytes unread", unsent_bytes()));
    return false;
  }
  if (data.empty() || exchange->method == "HEAD") return true;
  auto to = std::back_inserter(output_);
  if (exchange->chunks_allowed) fmt::format_to(to, "{:x}\r\n", data.size());
  output_.append(data);
  if (exchange->chunks_allowed) output_ += "\r\n";
  exchange->bytes_sent += std::ssize(data);
  hub_.flush_soon(shared_from_this());
  return true;
}

void Connection::finish(uint64_t number) {
  Exchange* exchange = find(number);
  if (exchange == nullptr) return;
  if (exchange->answer == Answer::kNone) begin_stream(number, "text/event-stream");
  exchange->answer = Answer::kComplete;
  if (exchange->chunks_allowed && exchange->method != "HEAD") output_ += "0\r\n\r\n";
  hub_.flush_soon(shared_from_this());
}

void Connection::let_go(uint64_t number) {
  Exchange* exchange = find(number);
  if (exchange == nullptr) return;
  if (exchange->answer == Answer::kStream) return cut("the response stream ended early");
  spdlog::error("no response was sent for {} {}", exchange->id, quote(exchange->path));
  respond(number, 500, error_json(500, "the server has no answer", {}, {}, exchange->path).dump(),
          "application/json", {});
}

void Connection::on_disconnect(uint64_t number, std::function<void()> callback) {
  if (Exchange* exchange = find(number)) {
    exchange->on_disconnect = std::move(callback);
  } else if (!exchange_ || exchange_->number != number) {
    asio::post(hub_.io, std::move(callback));
  }
}

void Connection::note(uint64_t number, std::string_view name, std::string_view value) {
  if (!exchange_ || exchange_->number != number) return;
  fmt::format_to(std::back_inserter(exchange_->notes), " {}={}", name, value);
}

// --- the socket ---

void Connection::flush() {
  while (phase_ != Phase::kClosed && !waiting_write_ && output_sent_ < output_.size()) {
    error_code ec;
    if (tls_ && !tls_->is_ready()) return cut("there is no TLS yet to answer by");
    size_t sent = write_some(ec);
    if (ec == asio::error::would_block || ec == asio::error::try_again) return wait_write();
    if (ec) return cut("the client has gone");
    output_sent_ += sent;
  }
  if (phase_ == Phase::kClosed || waiting_write_) return;
  output_sent_ = 0;
  output_.clear();
  if (phase_ == Phase::kAnswer) deadline_ = SteadyTime::max();
  if (exchange_ && exchange_->answer == Answer::kComplete) end_exchange();
}

size_t Connection::write_some(error_code& ec) {
  auto unsent = std::span(std::as_const(output_)).subspan(output_sent_);
  return tls_ ? tls_->write_some(unsent, ec)
              : socket_.write_some(asio::buffer(unsent.data(), unsent.size()), ec);
}

void Connection::wait_write() {
  waiting_write_ = true;
  if (phase_ == Phase::kAnswer) set_deadline(hub_.service.config().write_timeout_s);
  // Drop sent bytes once they outweigh the bytes to be moved.
  if (output_sent_ > output_.size() / 2) {
    output_.erase(0, std::exchange(output_sent_, 0));
  }
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](error_code ec) {
    self->waiting_write_ = false;
    if (self->phase_ == Phase::kClosed) return;
    if (ec) return self->cut("the client has gone");
    self->flush();
  });
}

void Connection::end_exchange() {
  log_exchange("");
  bool keep_alive = exchange_->keep_alive;
  hub_.end_exchange(*exchange_);
  exchange_.reset();
  reader_.reset();
  hub_.body_bytes -= std::exchange(body_bytes_counted_, 0);
  if (output_.capacity() > kKeptBufferBytes) release(output_);
  if (!keep_alive) return linger();
  phase_ = Phase::kIdle;
  set_deadline(hub_.service.config().idle_timeout_s);
  std::string waiting = std::exchange(input_, {});
  input_.assign(advance(waiting));
  wait_read();
}

// Shuts down our side and discards what the client still sends. Closing with unread bytes would
// reset the connection, and the client might never see the answer.
void Connection::linger() {
  phase_ = Phase::kLinger;
  release(input_);
  if (tls_) tls_->close();
  error_code ec;
  socket_.shutdown(Socket::shutdown_send, ec);
  if (ec) return close();
  set_deadline(hub_.service.config().linger_timeout_s);
  wait_read();
}

void Connection::check_deadline(SteadyTime now) {
  if (phase_ == Phase::kBody) {
    double allowed_s =
        hub_.service.config().body_timeout_s +
        static_cast<double>(body_bytes_counted_) / hub_.service.config().body_bytes_per_s_min;
    if (std::chrono::duration<double>(now - body_begun_).count() > allowed_s) {
      refuse({408, "the request's body came too slowly"});
    }
    return;
  }
  if (now < deadline_) return;
  if (phase_ == Phase::kHeader) return refuse({408, "the request's headers came too slowly"});
  if (phase_ == Phase::kAnswer) return cut("the client reads nothing");
  close();
}

void Connection::cut(std::string_view reason) {
  if (phase_ == Phase::kClosed) return;
  if (exchange_) {
    if (exchange_->status == 0) exchange_->status = 499;
    log_exchange(reason);
    if (exchange_->on_disconnect) asio::post(hub_.io, std::move(exchange_->on_disconnect));
    hub_.end_exchange(*exchange_);
    exchange_.reset();
  }
  close();
}

void Connection::close() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  hub_.body_bytes -= std::exchange(body_bytes_counted_, 0);
  error_code ignored;
  socket_.close(ignored);
  release(input_);
  release(output_);
  output_sent_ = 0;
  hub_.open.erase(shared_from_this());
}

void Connection::log_exchange(std::string_view outcome) const {
  const Exchange& e = *exchange_;
  double ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - e.begun).count();
  spdlog::info("{} {} {} {} {} bytes {:.1f} ms{}{}{}", e.id.empty() ? "-" : e.id, e.method,
               quote(e.path), e.status, e.bytes_sent, ms, e.notes, outcome.empty() ? "" : ": ",
               outcome);
}

}  // namespace banyan
