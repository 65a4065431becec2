// Where workers and routers find each other: server/route/membership.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "base/tls.h"
#include "client/etcd_login.h"

namespace banyan {

struct EtcdConfig {
  std::vector<std::string> endpoints;  // empty: no etcd
  std::string cluster = "default";     // workers and routers with the same name find each other
  std::string advertise_url;           // a worker's address for routers; empty: where it listens
  TlsFiles tls{.certificate_option = "--etcd-certfile",
               .key_option = "--etcd-keyfile",
               .authorities_option = "--etcd-cafile"};
  EtcdLogin login;
  int64_t ttl_s = 5;  // how long a worker stays listed after its end

  bool used() const { return !endpoints.empty(); }
  // Errors name the invalid option.
  Status validate() const;
};

}  // namespace banyan
