// Settings and limits of the server, apart from the engine's, each with its unit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "banyan/status.h"
#include "base/tls.h"
#include "server/etcd_config.h"
#include "server/fields/defaults.h"
#include "server/publish/publish_config.h"

namespace banyan {

struct ServerConfig {
  std::string host = "127.0.0.1";
  int port = 30000;  // 0: any free port
  // The only names that requests may use; the first one is reported. Empty: the model path is
  // reported, and requests may use any name.
  std::vector<std::string> served_model_names;
  // As in llama.cpp: further names, and tags, for /v1/models. Without a served name, the
  // alphabetically first alias is the model's name and requests may still use any name.
  std::vector<std::string> aliases, tags;
  std::vector<std::string> api_keys;      // accepted keys; empty: none is required
  std::vector<std::string> metrics_keys;  // accepted for /metrics alone
  // In addition to what server/http/origin.h always allows: host names that requests may use, and
  // origins of web pages that may send requests; "*" allows all.
  std::vector<std::string> allowed_hosts, allowed_origins;
  TlsFiles ssl;  // with a certificate, the server accepts only TLS
  ClientCertificate ssl_clients = ClientCertificate::kIgnored;
  // URL of an OpenTelemetry collector; empty: no tracing.
  std::string traces_endpoint;
  std::string traces_service_name = "banyan";
  std::vector<std::pair<std::string, std::string>> traces_headers;
  bool traces_gzip = false;
  std::string version;                    // program version, for /server_info
  KvPublishConfig kv_publish;             // events of the prefix cache over ZeroMQ
  bool webui = true;                      // serve the web page at /
  bool log_requests = false;              // also log each request's parameters and timings
  int decode_log_interval = 40;           // steps between two log lines about decoding; 0: none
  bool json_flexible_whitespace = false;  // default for constrained JSON
  std::string tool_call_parser = "auto";  // a format's name; auto: from the chat template; none
  std::string reasoning_parser = "auto";  // likewise
  bool slots = true;                      // enable /slots
  bool runtime_adapters = false;          // clients may load and unload adapters
  bool verbose = false;                   // chat answers include their prompts
  RequestDefaults defaults;
  EtcdConfig etcd;  // where routers hear of this server
  // For display: null, prefill (other servers may have their prompts computed here) or decode.
  std::string disaggregation_mode = "null";

  int64_t header_bytes_max = 16 << 10;  // request line and headers together
  int64_t body_bytes_max = 64 << 20;
  int64_t bodies_bytes_max = 256 << 20;  // of all requests in progress
  int body_chunks_max = 65536;           // per body with chunked encoding
  int connections_max = 4096;
  int64_t send_buffer_bytes_max = 1 << 20;  // unsent bytes of one stream
  int workers = 0;                 // threads that parse, render and tokenize; 0: by processors
  int work_queued_max = 1024;      // requests per client waiting for a worker
  int grammar_workers = 0;         // threads that compile grammars; 0: by processors
  int grammars_queued_max = 1024;  // grammars per client waiting to be compiled

  int64_t responses_max = 1024;            // stored answers of /v1/responses; 0: none
  int64_t responses_bytes_max = 64 << 20;  // of all stored answers

  double response_ttl_s = 86400;  // lifetime of a stored answer
  double header_timeout_s = 10;   // from the first byte of a request to its last header
  double body_timeout_s = 20;     // plus the time that body_bytes_per_s_min allows
  int64_t body_bytes_per_s_min = 16 << 10;
  double idle_timeout_s = 300;    // between requests on one connection
  double write_timeout_s = 30;    // without any progress
  double linger_timeout_s = 2;    // for a refused client to receive its answer
  double grammar_timeout_s = 60;  // to compile a request's grammars, waiting included
  // Without a step of the engine, though it has requests, until /health is a 503; 0: never.
  double watchdog_timeout_s = 300;
  double drain_delay_s = 0;     // at shutdown, from /health's 503 to the first refused request
  double drain_timeout_s = 30;  // then, for running requests

  Status validate() const;
  // Whether `host` is only reachable from this machine, judging by its name.
  bool on_loopback() const;
};

}  // namespace banyan
