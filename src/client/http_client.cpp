#include "client/http_client.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "base/error.h"
#include "client/response_reader.h"

namespace banyan {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;
using Socket = asio::basic_stream_socket<tcp, asio::io_context::executor_type>;

// How long addresses of a name are used; existing connections stay open.
constexpr auto kLookUpAgain = std::chrono::seconds(5);

}  // namespace

class HttpClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  explicit Connection(HttpClient& client) : client_(client), socket_(client.io_) {}

  void start(std::string text, ClientSinks sinks) {
    text_ = std::move(text);
    sinks_ = std::move(sinks);
    begun_at_ = SteadyClock::now();
    if (socket_.is_open()) return exchange();
    connect();
  }

  void cancel(const std::string& reason) { finish(make_error(ErrorCode::kCancelled, reason)); }
  SteadyClock::time_point begun_at() const { return begun_at_; }

 private:
  using Wants = TlsChannel::Wants;

  void connect() {
    used_ = false;
    if (!client_.knows_addresses()) return client_.look_up(shared_from_this());
    auto self = shared_from_this();
    asio::async_connect(socket_, client_.endpoints_,
                        [self](const error_code& ec, const tcp::endpoint&) {
                          if (!self->active_) return;
                          if (ec) return self->cannot_connect(ec);
                          self->connected();
                        });
  }

  void looked_up(const error_code& ec) {
    if (!active_) return;
    if (!ec) return connect();
    finish(not_found("{}: {}", client_.url_.host, ec.message()));
  }

  void cannot_connect(const error_code& ec) {
    client_.endpoints_until_ = {};  // the host may have moved
    finish(io_error("cannot connect: {}", ec.message()));
  }

  void connected() {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    if (client_.url_.tls) {
      socket_.non_blocking(true, ignored);
      tls_.emplace(*client_.tls_, socket_.native_handle(), client_.url_.host);
    }
    exchange();
  }

  void exchange() {
    if (sinks_.connected) sinks_.connected();
    reader_.emplace([this](std::string_view piece) { sinks_.body(reader_->status(), piece); });
    written_ = false;
    sent_ = 0;
    auto self = shared_from_this();
    if (tls_) {  // deferred: nothing may end within send()
      return asio::post(client_.io_, [self] {
        if (self->active_ && self->tls_) self->transfer();
      });
    }
    asio::async_write(socket_, asio::buffer(text_), [self](const error_code& ec, size_t) {
      // The reader reports a failed write, after any response that arrived first.
      self->written_ = !ec;
    });
    read();
  }

  void read() {
    socket_.async_read_some(asio::buffer(buffer_),
                            [self = shared_from_this()](const error_code& ec, size_t bytes) {
                              if (self->active_) self->on_read(ec, bytes);
                            });
  }

  void on_read(const error_code& ec, size_t bytes) {
    if (ec) return on_closed(ec);
    if (take(bytes)) read();
  }

  // False: the exchange has ended.
  bool take(size_t bytes) {
    Status fed = reader_->feed({buffer_.data(), bytes});
    if (!active_) return false;  // its sink has cancelled it
    if (fed && !reader_->done()) return true;
    finish(fed);
    return false;
  }

  // Sends and receives TLS records as far as possible, then waits for whatever either needs.
  void transfer() {
    error_code ec;
    bool write_waits = false;
    while (sent_ < text_.size() && !ec) {
      sent_ += tls_->write_some(std::span<const char>(text_).subspan(sent_), ec);
    }
    written_ = sent_ == text_.size();
    if (ec == asio::error::would_block) {
      write_waits = tls_->wants() == Wants::kWrite;
    } else if (ec) {
      return on_closed(ec);
    }
    do {
      size_t bytes = tls_->read_some(buffer_, ec);
      if (!ec && !take(bytes)) return;
    } while (!ec);
    if (ec != asio::error::would_block) return on_closed(ec);
    write_waits |= tls_->wants() == Wants::kWrite;
    wait(Socket::wait_read, waits_to_read_);
    if (write_waits) wait(Socket::wait_write, waits_to_write_);
  }

  void wait(Socket::wait_type readiness, bool& waiting) {
    if (std::exchange(waiting, true)) return;
    socket_.async_wait(readiness, [self = shared_from_this(), &waiting](const error_code& ec) {
      waiting = false;
      if (self->active_ && self->tls_ && !ec) self->transfer();
    });
  }

  void on_closed(const error_code& ec) {
    // The server may close a pooled connection just as it is reused; then nothing was answered, so
    // retry.
    if (used_ && !reader_->begun()) {
      tls_.reset();
      error_code ignored;
      socket_.close(ignored);
      return connect();
    }
    Status ended = reader_->end();
    if (!ended && tls_ && !tls_->failure().empty()) {
      ended = io_error("TLS: {}", tls_->failure());
    } else if (!ended && ec != asio::error::eof) {
      ended = io_error("the connection broke: {}", ec.message());
    }
    finish(ended);
  }

  void finish(Status outcome) {
    auto self = shared_from_this();
    active_ = false;
    int status = reader_ ? reader_->status() : 0;
    bool keeps = outcome && written_ && reader_ && reader_->keep_alive();
    client_.active_.erase(self);
    ClientSinks sinks = std::exchange(sinks_, {});
    if (keeps) {
      used_ = true;
      client_.keep(self);
    } else {
      tls_.reset();
      error_code ignored;
      socket_.close(ignored);
    }
    sinks.end(status, std::move(outcome));
  }

  HttpClient& client_;
  Socket socket_;
  std::optional<TlsChannel> tls_;  // nothing: plain HTTP
  std::string text_;
  size_t sent_ = 0;  // bytes of it, below TLS
  bool waits_to_read_ = false, waits_to_write_ = false;
  ClientSinks sinks_;
  SteadyClock::time_point begun_at_;
  std::optional<ResponseReader> reader_;
  uint64_t exchange_number_ = 0;
  bool active_ = true;    // has an exchange
  bool used_ = false;     // has had an exchange before
  bool written_ = false;  // the request is sent
  std::array<char, kReadBytes> buffer_;

  friend class HttpClient;
};

HttpClient::HttpClient(asio::io_context& io, ServerUrl url, const Headers& headers,
                       std::shared_ptr<const TlsContext> tls)
    : io_(io), url_(std::move(url)), tls_(std::move(tls)), resolver_(io) {
  for (const auto& [name, value] : headers) header_lines_ += fmt::format("{}: {}\r\n", name, value);
  if (url_.tls && !tls_) tls_ = TlsContext::for_client().value();  // fails only when out of memory
  error_code named;
  asio::ip::address address = asio::ip::make_address(url_.host, named);
  named_ = bool(named);
  if (named_) return;
  tcp::endpoint endpoint(address, static_cast<uint16_t>(std::stoi(url_.port)));
  endpoints_ = tcp::resolver::results_type::create(endpoint, url_.host, url_.port);
}

HttpClient::~HttpClient() = default;

Status HttpClient::resolve() {
  if (!named_) return {};
  error_code ec;
  auto found = resolver_.resolve(url_.host, url_.port, ec);
  if (ec) return not_found("{}: {}", url_.host, ec.message());
  endpoints_ = std::move(found);
  endpoints_until_ = SteadyClock::now() + kLookUpAgain;
  return {};
}

bool HttpClient::knows_addresses() const {
  return !endpoints_.empty() && (!named_ || SteadyClock::now() < endpoints_until_);
}

// Old addresses are used while new ones cannot be found.
void HttpClient::look_up(std::shared_ptr<Connection> connection) {
  looking_up_.push_back(std::move(connection));
  if (looking_up_.size() > 1) return;
  resolver_.async_resolve(url_.host, url_.port,
                          [this, alive = std::weak_ptr(alive_)](const error_code& ec,
                                                                tcp::resolver::results_type found) {
                            if (alive.expired()) return;
                            if (!ec) endpoints_ = std::move(found);
                            if (!endpoints_.empty())
                              endpoints_until_ = SteadyClock::now() + kLookUpAgain;
                            for (const auto& waiting : std::exchange(looking_up_, {})) {
                              waiting->looked_up(endpoints_.empty() ? ec : error_code());
                            }
                          });
}

std::string HttpClient::request_text(const ClientRequest& request) const {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n{}", request.method, url_.prefix,
                                 request.path, url_.authority, header_lines_);
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty()) text += fmt::format("Content-Type: {}\r\n", request.content_type);
  if (request.method != "GET") text += fmt::format("Content-Length: {}\r\n", request.body.size());
  text += "\r\n";
  text.reserve(text.size() + request.body.size());
  text += request.body;
  return text;
}

uint64_t HttpClient::send(ClientRequest request, ClientSinks sinks) {
  std::shared_ptr<Connection> connection;
  if (idle_.empty()) {
    connection = std::make_shared<Connection>(*this);
  } else {
    connection = std::move(idle_.back());
    idle_.pop_back();
  }
  connection->active_ = true;
  connection->exchange_number_ = ++exchanges_;
  active_.insert(connection);
  connection->start(request_text(request), std::move(sinks));
  return exchanges_;
}

void HttpClient::cancel(uint64_t exchange, const std::string& reason) {
  for (const auto& connection : active_) {
    if (connection->exchange_number_ != exchange) continue;
    std::shared_ptr<Connection> ended = connection;
    return ended->cancel(reason);
  }
}

void HttpClient::keep(std::shared_ptr<Connection> connection) {
  idle_.push_back(std::move(connection));
}

void HttpClient::cancel_older_than(SteadyClock::time_point time, const std::string& reason) {
  std::vector<std::shared_ptr<Connection>> old;
  for (const auto& connection : active_) {
    if (connection->begun_at() < time) old.push_back(connection);
  }
  for (const auto& connection : old) {
    if (connection->active_) connection->cancel(reason);
  }
}

Result<HttpClient::Answer> HttpClient::fetch(ClientRequest request) {
  Answer answer;
  std::optional<Status> outcome;
  bool too_long = false;
  ClientSinks sinks;
  sinks.body = [&](int, std::string_view piece) {
    too_long |= piece.size() > kFetchBytesMax - answer.body.size();
    if (!too_long) answer.body += piece;
  };
  sinks.end = [&](int status, Status end) {
    answer.status = status;
    outcome = std::move(end);
  };
  std::string path = request.path;
  send(std::move(request), std::move(sinks));
  io_.restart();
  while (!outcome && io_.run_one() > 0) {
  }
  TRY(*outcome);
  if (too_long) return corrupt("the answer of {} exceeds {} bytes", path, kFetchBytesMax);
  return answer;
}

}  // namespace banyan
