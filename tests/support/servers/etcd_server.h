// An etcd of a test's own, on a free port of this machine, in a folder that goes with it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/tls.h"
#include "support/shared.h"

namespace banyan::test {

class EtcdServer {
 public:
  // Whether the program is installed.
  static bool installed();

  // With files, it has TLS and wants certificates of clients.
  explicit EtcdServer(TlsFiles tls = {});
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  std::string url() const;
  void signal(int number);  // SIGSTOP, SIGCONT, SIGKILL

 private:
  // False: it ended, since another process has taken a port meanwhile.
  bool start();
  bool answers() const;

  std::vector<std::string> arguments(const std::string& peers) const;

  TlsFiles tls_;
  TemporaryFolder folder_;
  int port_ = 0, health_port_ = 0;
  pid_t process_ = -1;
};

}  // namespace banyan::test

#define REQUIRE_ETCD()                                           \
  do {                                                           \
    if (!::banyan::test::EtcdServer::installed()) {              \
      GTEST_SKIP() << "needs etcd: apt-get install etcd-server"; \
    }                                                            \
  } while (false)
