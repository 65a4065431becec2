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
#include "base/tls.h"
#include "tier/redis/resolver.h"

namespace banyan {

struct RedisAddress {
  std::string host = "127.0.0.1";
  int port = 6379;
  std::string path;  // of a socket, instead of host and port
  std::string user, password;
  int database = 0;
  bool tls = false;
  TlsFiles files{.certificate_option = "ssl_certfile",
                 .key_option = "ssl_keyfile",
                 .authorities_option = "ssl_ca_certs"};

  std::string text() const;  // for display, without the password
};
// redis://[[user]:password@]host[:port][/database], unix://[[user]:password@]/path[?db=database],
// or rediss:// for TLS, whose files a query names as redis-py's do: ?ssl_ca_certs=FILE,
// &ssl_certfile=FILE, &ssl_keyfile=FILE.
Result<RedisAddress> parse_redis_url(std::string_view url);

class RedisConnection {
 public:
  using Clock = std::chrono::steady_clock;
  struct Free {
    void operator()(redisReply* reply) const { freeReplyObject(reply); }
  };
  using Reply = std::unique_ptr<redisReply, Free>;

  // Once `stopping` is set, whatever waits fails within a tenth of a second. `tls` is for an
  // address that wants it.
  RedisConnection(RedisAddress address, const TlsContext* tls, const std::atomic<bool>& stopping)
      : address_(std::move(address)), tls_(tls), resolver_(address_.host), stopping_(stopping) {}

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
  bool wait_for_tls(const boost::system::error_code& error, Clock::time_point deadline);
  bool write_some(Clock::time_point deadline, bool& all);
  bool read_some(Clock::time_point deadline);
  bool fail(std::string why, bool timed_out = false);

  RedisAddress address_;
  const TlsContext* tls_;
  Resolver resolver_;
  const std::atomic<bool>& stopping_;
  std::unique_ptr<redisContext, FreeContext> context_;
  std::unique_ptr<TlsChannel> channel_;  // of the context's socket; null: no TLS
  size_t sent_ = 0;                      // bytes of the context's commands, through the channel
  std::string trouble_;
  bool timed_out_ = false;
};

}  // namespace banyan
