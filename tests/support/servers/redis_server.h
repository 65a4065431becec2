// A Redis server of a test's own, on a free port of this machine, in a folder that goes with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "support/shared.h"

namespace banyan::test {

class RedisServer {
 public:
  // Whether the program is installed.
  static bool installed();

  // `tls`: the port accepts only TLS; `options` name the certificate files.
  explicit RedisServer(const std::string& options = "", bool tls = false);  // "--requirepass x"
  ~RedisServer();
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  int port() const { return port_; }
  std::string url() const;
  std::string socket() const { return folder_.path() + "/redis.sock"; }
  void signal(int number);  // SIGKILL, SIGSTOP, SIGCONT
  // A command of words without spaces; what it answers, as text.
  std::string command(const std::string& text);

 private:
  // False: it ended, since another process has taken the port meanwhile.
  bool start(const std::string& options, bool tls);
  bool answers() const;

  TemporaryFolder folder_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace banyan::test

#define REQUIRE_REDIS()                                                    \
  do {                                                                     \
    if (!::banyan::test::RedisServer::installed()) {                       \
      GTEST_SKIP() << "needs a Redis server: apt-get install redis-tools"; \
    }                                                                      \
  } while (false)
