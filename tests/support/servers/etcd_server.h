// An etcd of a test's own, on a free port of this machine, in a folder that goes with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "support/shared.h"

namespace banyan::test {

class EtcdServer {
 public:
  // Whether the program is installed.
  static bool installed();

  EtcdServer();
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string url() const;
  void signal(int number);  // SIGSTOP, SIGCONT, SIGKILL

 private:
  // False: it ended, since another process has taken a port meanwhile.
  bool start();
  bool answers() const;

  TemporaryFolder folder_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace banyan::test

#define REQUIRE_ETCD()                                           \
  do {                                                           \
    if (!::banyan::test::EtcdServer::installed()) {              \
      GTEST_SKIP() << "needs etcd: apt-get install etcd-server"; \
    }                                                            \
  } while (false)
