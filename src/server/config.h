// Every choice and limit of the server that is not the engine's, each with its unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "server/fields/defaults.h"

namespace banyan {

struct ServerConfig {
  std::string host = "127.0.0.1";
  int port = 30000;               // 0: any that is free
  std::string served_model_name;  // what /v1/models calls the model; empty: the model path
  // llama.cpp's: more names and words for /v1/models. Without a served_model_name the first name in
  // the order of the alphabet is the model's, and requests may still call it anything.
  std::vector<std::string> aliases, tags;
  std::vector<std::string> api_keys;  // one of these is needed; empty: none is
  // Beyond what server/http/origin.h always allows: names that requests may come under, and pages
  // that may send some; "*" is all.
  std::vector<std::string> allowed_hosts, allowed_origins;
  // PEM files; both or neither. With them the server speaks TLS alone.
  std::string ssl_certfile, ssl_keyfile;
  // A URL of an OpenTelemetry collector; empty: no traces.
  std::string traces_endpoint;
  std::string traces_service_name = "banyan";
  std::string version;                    // of the program, for /server_info
  bool webui = true;                      // a page for browsers at /
  bool log_requests = false;              // also the body of each request
  int decode_log_interval = 40;           // steps between two lines about decoding; 0: none
  bool json_flexible_whitespace = false;  // in constrained JSON, where a request is silent
  std::string tool_call_parser = "auto";  // a format's name; auto: by the chat template; none
  std::string reasoning_parser = "auto";  // the same
  bool slots = true;                      // whether /slots answers
  bool verbose = false;                   // answers of chats show their prompts
  RequestDefaults defaults;

  int64_t header_bytes_max = 16 << 10;  // request line and headers together
  int64_t body_bytes_max = 64 << 20;
  int64_t bodies_bytes_max = 256 << 20;  // of all requests that are being answered
  int body_chunks_max = 65536;           // of a body in chunked encoding
  int connections_max = 4096;
  int64_t send_buffer_bytes_max = 1 << 20;  // of a stream whose reader is slow
  int workers = 0;                          // that parse, render and tokenize; 0: by processors
  int work_queued_max = 1024;               // requests of one client that wait for a worker
  int grammar_workers = 0;                  // that compile grammars; 0: by processors
  int grammars_queued_max = 1024;           // of one client, that wait to be compiled

  int64_t responses_max = 1024;            // of /v1/responses, that are kept; 0: none
  int64_t responses_bytes_max = 64 << 20;  // of them together

  double response_ttl_s = 86400;  // how long they are kept
  double header_timeout_s = 10;   // from the first byte of a request to its last header
  double body_timeout_s = 20;     // on top of what body_bytes_per_s_min allows
  int64_t body_bytes_per_s_min = 16 << 10;
  double idle_timeout_s = 300;    // between the requests of one connection
  double write_timeout_s = 30;    // without any progress
  double linger_timeout_s = 2;    // for a refused client to take its answer
  double grammar_timeout_s = 60;  // for a request's grammars to be compiled, waiting included
  double drain_timeout_s = 30;    // for running requests at shutdown

  Status validate() const;
  // Whether only this machine reaches `host`, as far as its name shows.
  bool on_loopback() const;
};

}  // namespace banyan
