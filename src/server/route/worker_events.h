// Reads a worker's `GET /kv/events`: one long answer, whose messages are passed on, starting at the
// reader's position. Its owner reopens it. Belongs to the I/O thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client/http_client.h"
#include "router/event_stream.h"

namespace banyan {

class WorkerEvents : public std::enable_shared_from_this<WorkerEvents> {
 public:
  struct Sinks {
    // False: an event is missing, so the stream ends here.
    std::function<bool(const KvMessage& message)> message;
    // The stream has ended; open() may start another. `refused`: the worker offers none.
    std::function<void(bool refused, const std::string& why)> ended;
  };

  WorkerEvents(boost::asio::io_context& io, std::shared_ptr<HttpClient> client, Sinks sinks)
      : io_(io), client_(std::move(client)), sinks_(std::move(sinks)) {}

  // Requires that none is open.
  void open(KvPosition position);
  bool is_open() const { return exchange_ != 0; }
  // Stops all callbacks.
  void close();

 private:
  void take(int http_status, std::string_view bytes);
  void hang_up(const std::string& why);
  void end(bool refused, const std::string& why);

  boost::asio::io_context& io_;
  std::shared_ptr<HttpClient> client_;
  Sinks sinks_;
  uint64_t exchange_ = 0;  // 0: none
  uint64_t attempt_ = 0;   // events of earlier attempts are dropped
  KvStreamReader reader_;
  std::string refusal_;  // the body of an error response
};

}  // namespace banyan
