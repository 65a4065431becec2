// A connection to a server with Redis' protocol, in which nothing waits past its deadline. hiredis
// handles the protocol; polling is done here. One thread.
#pragma once

#include <hiredis/hiredis.h>

#include <atomic>
#include <chrono>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "banyan/status.h"
#include "tier/redis/resolver.h"

namespace banyan {

struct RedisAddress {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string path;  // of a socket, instead of host and port
  std::string user, password;
  int database = 0;

  std::string text() const;  // for display, without the password
};
// redis://[[user]:password@]host[:port][/database], unix://[[user]:password@]/path[?db=database].
Result<RedisAddress> parse_redis_url(std::string_view url);

class RedisConnection {
 public:
  using Clock = std::chrono::steady_clock;
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // Once `stopping` is set, whatever waits fails within a tenth of a second.
  RedisConnection(RedisAddress address, const std::atomic<bool>& stopping)
      : address_(std::move(address)), resolver_(address_.host), stopping_(stopping) {}

  // Connects if necessary. False: it failed, and trouble() says why.
  bool open(Clock::time_point deadline);
  // Queues a command for the next flush(); replies arrive in the order of commands.
  void append(std::span<const std::string_view> words);
  // Sends the queued commands.
  bool flush(Clock::time_point deadline);
  // The next reply, which may be an error of the server. Null: the connection is closed, and
  // trouble() says why.
  Reply next(Clock::time_point deadline);
  void close();

  const std::string& trouble() const { return trouble_; }
  bool timed_out() const { return timed_out_; }  // the reason is a timeout

 private:
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  bool connect(Clock::time_point deadline);
  void connect_to(const std::string& host, Clock::time_point deadline);
  bool sign_in(Clock::time_point deadline);
  bool expect_ok(Clock::time_point deadline);
  bool wait(short events, Clock::time_point deadline);
  bool write_some(bool& all);
  bool fail(std::string why, bool timed_out = false);

  RedisAddress address_;
  Resolver resolver_;
  const std::atomic<bool>& stopping_;
  std::unique_ptr<redisContext, FreeContext> context_;
  std::string trouble_;
  bool timed_out_ = false;
};

}  // namespace banyan
