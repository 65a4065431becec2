// An asynchronous HTTP/1.1 client for one server, for thousands of concurrent responses on one
// thread.
//
// Connections are pooled, the most recently used first. Each owns a read buffer of kReadBytes and
// runs one exchange at a time; responses are parsed in place. A single thread runs the io_context
// and makes all calls. The client must outlive the io_context's last handler.
//
// A host that is a name is looked up again as time goes on and where a connection fails, without
// waiting for it, so that a server may come back at another address.
//
//   HttpClient client(io, TRY(parse_server_url("http://127.0.0.1:30000")), headers);
//   TRY(client.resolve());
//   client.send({.path = "/generate", .body = body}, {.body = on_body, .end = on_end});
//   io.run();
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "banyan/status.h"
#include "base/tls.h"
#include "client/url.h"

namespace banyan {

struct ClientRequest {
  std::string method = "POST";
  std::string path;  // "/generate", without the server's path prefix
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // in addition to the client's
  const char* content_type = "application/json";                  // of a body that is not empty
};

// Called on the io_context's thread. `end` is called exactly once, last, and never from within
// send(). `http_status` is 0 if none arrived; `outcome` is an error if the response is incomplete.
struct ClientSinks {
  std::function<void()> connected = {};  // the request may reach the server from now on
  std::function<void(int http_status, std::string_view piece)> body;
  std::function<void(int http_status, Status outcome)> end;
};

class HttpClient {
 public:
  static constexpr size_t kReadBytes = 16 << 10;

  using Headers = std::vector<std::pair<std::string, std::string>>;

  // `headers` are sent with every request. `tls` is for https servers; null: TlsContext's defaults.
  HttpClient(boost::asio::io_context& io, ServerUrl url, const Headers& headers,
             std::shared_ptr<const TlsContext> tls = nullptr);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Looks up the host's name; blocks. kNotFound: it has no address. If not called, the first
  // exchange looks it up.
  Status resolve();

  // Returns an id for cancel().
  uint64_t send(ClientRequest request, ClientSinks sinks);
  // Ends a running exchange with kCancelled and closes its connection.
  void cancel(uint64_t exchange, const std::string& reason);
  // Ends exchanges that started before `time`, with kCancelled and `reason`.
  void cancel_older_than(std::chrono::steady_clock::time_point time, const std::string& reason);

  struct Answer {
    int status = 0;
    std::string body;
  };
  // Sends a request and runs the io_context until the response is complete; nothing else may be in
  // progress. Responses are limited to kFetchBytesMax.
  static constexpr size_t kFetchBytesMax = 64 << 20;
  Result<Answer> fetch(ClientRequest request);

  size_t connections() const { return active_.size() + idle_.size(); }

 private:
  class Connection;

  void keep(std::shared_ptr<Connection> connection);
  bool knows_addresses() const;
  void look_up(std::shared_ptr<Connection> connection);
  std::string request_text(const ClientRequest& request) const;

  boost::asio::io_context& io_;
  ServerUrl url_;
  std::string header_lines_;
  uint64_t exchanges_ = 0;
  std::shared_ptr<const TlsContext> tls_;
  bool named_ = true;  // the host is a name, not an address
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::resolver::results_type endpoints_;
  std::chrono::steady_clock::time_point endpoints_until_;  // when to look them up again
  std::vector<std::shared_ptr<Connection>> looking_up_;    // waiting for the lookup
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  std::unordered_set<std::shared_ptr<Connection>> active_;
  std::vector<std::shared_ptr<Connection>> idle_;
};

}  // namespace banyan
