// Options of the verbs that serve clients: where, to whom, and what their requests get by default.
#pragma once

#include <string>

#include "banyan/status.h"
#include "server/config.h"

namespace CLI {
class App;
}

namespace banyan::cli {

struct ServerOptions {
  ServerConfig server;
  std::string api_key_file, metrics_api_key_file;
  bool enable_trace = false;

  // Reads keys, fills in what follows from the rest, and validates it.
  Status settle();
};

void add_network_options(CLI::App& app, ServerOptions& options);
// Defaults for requests that do not set these values.
void add_default_options(CLI::App& app, RequestDefaults& defaults);
// Certificates for connections to `peer`, under the option names in `files`.
void add_tls_options(CLI::App& app, TlsFiles& files, const std::string& peer);
// How routers and workers find each other.
void add_etcd_options(CLI::App& app, EtcdConfig& etcd);
// Options of traces and of the request log.
void add_message_options(CLI::App& app, ServerOptions& options);

// Logs a warning if other machines can connect without a key.
void warn_of_open_door(const ServerConfig& config);

}  // namespace banyan::cli
