// One client connection: reads requests and writes answers, one exchange at a time.
//
// A state machine over a non-blocking socket, on the I/O thread alone. It waits for readiness, not
// for bytes, so an idle connection owns no buffer; all connections read into one scratch buffer.
// The server polls deadlines (check_deadline) instead of keeping a timer for each.
//
// Invariants: an exchange exists from the end of a header (or a refusal) until its answer is
// written to the socket. Answers go out in request order. After close() there are no callbacks, and
// the hub no longer refers to the connection.
#pragma once

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/tls.h"
#include "server/http/http.h"
#include "server/http/origin.h"
#include "server/http/request_reader.h"
#include "server/routes.h"
#include "server/service.h"

namespace banyan {

class Connection;

using SteadyTime = std::chrono::steady_clock::time_point;
using Socket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

struct Exchange;

// State shared by all connections; outlives them.
struct ConnectionHub {
  ConnectionHub(boost::asio::io_context& the_io, Service& the_service,
                std::span<const Route> the_routes)
      : io(the_io), service(the_service), routes(the_routes) {}

  boost::asio::io_context& io;
  Service& service;
  std::span<const Route> routes;
  std::optional<OriginRules> origins;  // set once an address is bound
  std::unique_ptr<TlsContext> tls;     // null: plain HTTP
  std::unordered_set<std::shared_ptr<Connection>> open;
  int64_t body_bytes = 0;  // of requests in all exchanges
  uint64_t exchanges_begun = 0;
  int64_t exchanges_open = 0;
  int64_t exchanges_awaited = 0;  // those that a drain waits for: begun before it
  uint64_t request_id_key = 0;    // makes request ids of different processes distinct
  std::array<char, 64 << 10> scratch;

  void begin_exchange(Exchange& exchange);
  void end_exchange(const Exchange& exchange);
  void begin_drain() { draining_ = true; }
  int64_t buffer_bytes() const;  // over all connections

  // Schedules connection->flush(), once for everything sent until it runs.
  void flush_soon(std::shared_ptr<Connection> connection);

 private:
  std::vector<std::shared_ptr<Connection>> to_flush_;
  bool draining_ = false;
};

// A request and its answer. Owned by its connection.
struct Exchange {
  enum class Answer { kNone, kStream, kComplete };

  uint64_t number = 0;
  std::string method = "-", path = "-", id;
  std::string readable_by;     // Access-Control-Allow-Origin
  bool chunks_allowed = true;  // in the response
  bool keep_alive = false;
  bool awaited = true;  // a drain waits for it
  Answer answer = Answer::kNone;
  int status = 0;
  int64_t bytes_sent = 0;
  size_t largest_bytes = 0;  // largest single write
  SteadyTime begun;
  std::string notes;  // " name=value ..."
  std::function<void()> on_disconnect;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `refused`: over the connection limit; its first request is answered with 503.
  Connection(ConnectionHub& hub, Socket socket, bool refused);

  void start();
  void check_deadline(SteadyTime now);
  size_t buffer_bytes() const { return input_.capacity() + output_.capacity(); }
  // Closes immediately; the handler of a running exchange is notified.
  void cut(std::string_view reason);
  void flush();

  // For Responder; `number` identifies the exchange. No effect once it is over.
  void respond(uint64_t number, int status, std::string_view body, std::string_view content_type,
               const HttpHeaders& more);
  void begin_stream(uint64_t number, std::string_view content_type);
  bool send(uint64_t number, std::string_view data);
  void finish(uint64_t number);
  void let_go(uint64_t number);  // the responder was destroyed
  bool is_open(uint64_t number) const;
  bool is_started(uint64_t number) const;
  size_t unsent_bytes(uint64_t number) const;
  std::string_view path(uint64_t number) const;
  void on_disconnect(uint64_t number, std::function<void()> callback);
  void note(uint64_t number, std::string_view name, std::string_view value);

 private:
  using Answer = Exchange::Answer;
  enum class Phase { kIdle, kHeader, kBody, kAnswer, kLinger, kClosed };

  void wait_read();
  void on_readable();
  size_t read_some(boost::system::error_code& ec);
  size_t write_some(boost::system::error_code& ec);
  void refuse_plain();
  void on_end(bool clean);
  void take(std::string_view bytes);
  std::string_view advance(std::string_view bytes);
  void begin_exchange();
  bool admit();
  void handle();
  void refuse(const Refusal& refusal, const HttpHeaders& more = {});
  void write_head(int status, std::string_view content_type, std::optional<size_t> body_bytes,
                  const HttpHeaders& more);
  void wait_write();
  size_t unsent_bytes() const { return output_.size() - output_sent_; }
  void end_exchange();
  void linger();
  void close();
  void log_exchange(std::string_view outcome) const;
  Exchange* find(uint64_t number);
  void set_deadline(double seconds);
  void account_body();

  ConnectionHub& hub_;
  Socket socket_;
  std::optional<TlsChannel> tls_;
  const bool refused_;
  std::string address_;  // of the client
  Phase phase_ = Phase::kIdle;
  SteadyTime deadline_ = SteadyTime::max();
  SteadyTime body_begun_;
  bool waiting_read_ = false, waiting_write_ = false, flush_asked_ = false;
  std::string input_;   // received, not yet parsed
  std::string output_;  // to be sent, from output_sent_
  size_t output_sent_ = 0;
  std::optional<RequestReader> reader_;
  std::optional<Exchange> exchange_;
  int64_t body_bytes_counted_ = 0;  // its share of hub_.body_bytes

  friend struct ConnectionHub;
};

}  // namespace banyan
