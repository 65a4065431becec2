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
  void connect() {
    used_ = false;
    auto self = shared_from_this();
    asio::async_connect(socket_, client_.endpoints_,
                        [self](const error_code& ec, const tcp::endpoint&) {
                          if (!self->active_) return;
                          if (ec) return self->finish(io_error("cannot connect: {}", ec.message()));
                          error_code ignored;
                          self->socket_.set_option(tcp::no_delay(true), ignored);
                          self->exchange();
                        });
  }

  void exchange() {
    reader_.emplace([this](std::string_view piece) { sinks_.body(reader_->status(), piece); });
    written_ = false;
    auto self = shared_from_this();
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
    Status fed = reader_->feed({buffer_.data(), bytes});
    if (!fed) return finish(fed);
    if (reader_->done()) return finish({});
    read();
  }

  void on_closed(const error_code& ec) {
    // The server may close a pooled connection just as it is reused; then nothing was answered, so
    // retry.
    if (used_ && !reader_->begun()) {
      socket_.close();
      return connect();
    }
    Status ended = reader_->end();
    if (!ended && ec != asio::error::eof) {
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
      error_code ignored;
      socket_.close(ignored);
    }
    sinks.end(status, std::move(outcome));
  }

  HttpClient& client_;
  Socket socket_;
  std::string text_;
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

HttpClient::HttpClient(asio::io_context& io, ServerUrl url, const Headers& headers)
    : io_(io), url_(std::move(url)) {
  for (const auto& [name, value] : headers) header_lines_ += fmt::format("{}: {}\r\n", name, value);
}

HttpClient::~HttpClient() = default;

Status HttpClient::resolve() {
  error_code ec;
  endpoints_ = tcp::resolver(io_).resolve(url_.host, url_.port, ec);
  if (ec) return not_found("{}: {}", url_.host, ec.message());
  return {};
}

std::string HttpClient::request_text(const ClientRequest& request) const {
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\n{}", request.method, url_.prefix,
                                 request.path, url_.authority, header_lines_);
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty()) text += "Content-Type: application/json\r\n";
  if (request.method != "GET") text += fmt::format("Content-Length: {}\r\n", request.body.size());
  text += "\r\n";
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
