// Sends requests to any of several servers that give the same answers, such as routers over the
// same workers. If a server is lost in the middle of an answer, the request continues at the next
// one.
//
// A stream resumes after the last event that had an id, by X-Request-Id and Last-Event-ID. Events
// are delivered whole, so that none arrives twice or in part. If nothing of an answer was delivered
// yet, it is requested again from another server, if there is one. Sinks and threads follow
// HttpClient's rules.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "client/http_client.h"

namespace banyan {

class ResumingClient {
 public:
  struct Options {
    // How long to look for a server while none delivers anything.
    double patience_s = 30;
  };

  // Errors: an invalid URL. `urls`: separated by commas.
  static Result<std::unique_ptr<ResumingClient>> open(boost::asio::io_context& io,
                                                      std::string_view urls,
                                                      const HttpClient::Headers& headers,
                                                      Options options);
  ~ResumingClient();

  // Resolves the servers' names; blocks. At least one must have an address.
  Status resolve();
  uint64_t send(ClientRequest request, ClientSinks sinks);
  void cancel(uint64_t exchange, const std::string& reason);

  int64_t resumed() const { return resumed_; }  // number of times that another server took over

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  ResumingClient(boost::asio::io_context& io, Options options) : io_(io), options_(options) {}

  void attempt(const CallPtr& call);
  void take(const CallPtr& call, int http_status, std::string_view bytes);
  void take_end(const CallPtr& call, int http_status, const Status& outcome);
  void try_again(const CallPtr& call);
  void finish(const CallPtr& call, int http_status, const Status& outcome);

  boost::asio::io_context& io_;
  const Options options_;
  std::vector<std::unique_ptr<HttpClient>> servers_;
  size_t first_ = 0;  // where new calls go: the server that answered last
  uint64_t calls_ = 0;
  int64_t resumed_ = 0;
  std::unordered_map<uint64_t, CallPtr> running_;
};

}  // namespace banyan
