// Settings of `banyan route`. Names on the command line are those of SGLang's router.
#pragma once

#include <string>
#include <vector>

#include "banyan/status.h"
#include "router/policy.h"
#include "server/etcd_config.h"

namespace banyan {

inline constexpr int kWorkersMax = 256;  // of one router: two cells' worth

struct RouteConfig {
  std::vector<std::string> worker_urls;
  EtcdConfig etcd;                                          // and those listed there
  std::string worker_api_key;                               // sent to workers; empty: none
  TlsFiles tls{.certificate_option = "--client-cert-path",  // for workers at https:// addresses
               .key_option = "--client-key-path",
               .authorities_option = "--ca-cert-path"};
  std::string state_digest;     // of the workers that may be used; empty: any
  std::string policy = "cost";  // a name in router/registry.cpp
  RouteCosts costs;

  double health_interval_s = 0.25;  // between two polls of a worker
  double health_timeout_s = 2;      // without an answer for this long, a worker is given up
  double stall_timeout_s = 60;      // likewise if it has requests but takes no step for this long
  // After this many consecutive failures, a worker that still answers gets no requests for a while.
  int breaker_failures = 5;
  double breaker_s = 5;

  int migrations_max = 3;  // of a request whose workers were lost
  // Requests that wait while all workers are full. Beyond it, each client may have its share:
  // base/fair_shares.h.
  int queued_max = 4096;
  double queue_timeout_s = 60;  // for a worker to take a request

  Status validate() const;
};

}  // namespace banyan
