// A worker's `GET /kv/events`, read: one long answer whose messages are handed on, from wherever
// the reader is. Its owner reopens it. Belongs to the I/O thread.
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
    // False: something is missing before it, so the stream ends here.
    std::function<bool(const KvMessage& message)> message;
    // The stream is over; open() may begin another. `refused`: the worker has none to offer.
    std::function<void(bool refused, const std::string& why)> ended;
  };

  WorkerEvents(boost::asio::io_context& io, std::shared_ptr<HttpClient> client, Sinks sinks)
      : io_(io), client_(std::move(client)), sinks_(std::move(sinks)) {}

  // Requires that none is open.
  void open(KvPosition position);
  bool is_open() const { return exchange_ != 0; }
  // Nothing is called any more.
  void close();

 private:
  void take(int http_status, std::string_view bytes);
  void hang_up(const std::string& why);
  void end(bool refused, const std::string& why);

  boost::asio::io_context& io_;
  std::shared_ptr<HttpClient> client_;
  Sinks sinks_;
  uint64_t exchange_ = 0;  // 0: none
  uint64_t attempt_ = 0;   // what an earlier one says is dropped
  KvStreamReader reader_;
  std::string refusal_;  // the body of an answer that is an error
};

}  // namespace banyan
