// Where workers and routers find each other: server/route/membership.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "base/tls.h"

namespace banyan {

struct EtcdConfig {
  std::vector<std::string> endpoints;  // empty: no etcd
  std::string cluster = "default";     // workers and routers of one name find each other
  std::string advertise_url;           // of a worker: where routers reach it; empty: its address
  TlsFiles tls{.certificate_option = "--etcd-certfile",
               .key_option = "--etcd-keyfile",
               .authorities_option = "--etcd-cafile"};
  int64_t ttl_s = 5;  // so long after its end a worker is listed at most

  bool used() const { return !endpoints.empty(); }
  // Names what is wrong by its option.
  Status validate() const;
};

}  // namespace banyan
