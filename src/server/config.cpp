#include "server/config.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"
#include "llm/messages/message_parser.h"
#include "server/http/origin.h"
#include "server/tracing/span_exporter.h"

namespace banyan {
namespace {

Status check_range(const char* name, double value, double min, double max) {
  if (value >= min && value <= max) return {};
  return invalid_argument("{} is {}, not from {} to {}", name, value, min, max);
}

Status check_at_least(const char* name, int64_t value, int64_t min) {
  if (value >= min) return {};
  return invalid_argument("{} is {}, at least {} is needed", name, value, min);
}

// Whether the text can be sent as a header value unchanged.
bool is_header_text(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

}  // namespace

bool ServerConfig::on_loopback() const {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Status ServerConfig::validate() const {
  constexpr double kDay = 86400;
  if (host.empty()) return invalid_argument("host is empty; give an address as 127.0.0.1");
  TRY(check_range("port", port, 0, 65535));
  for (const auto* keys : {&api_keys, &metrics_keys}) {
    if (std::ranges::all_of(*keys, is_header_text)) continue;
    return invalid_argument("an API key is empty or not plain ASCII");
  }
  if (api_keys.empty() && !metrics_keys.empty()) {
    return invalid_argument(
        "--metrics-api-key-file has no effect without --api-key: every endpoint is open");
  }
  for (const std::string& name : allowed_hosts) {
    if (is_host_pattern(name)) continue;
    return invalid_argument(
        "--allowed-hosts {}: give a name as a.example without scheme or port, "
        ".a.example for all below it, or *",
        quote(name));
  }
  for (const std::string& origin : allowed_origins) {
    if (is_origin(origin) && is_header_text(origin)) continue;
    return invalid_argument("--allowed-origins {}: give an origin as https://a.example, null or *",
                            quote(origin));
  }
  TRY(ssl.validate());
  if (ssl.certificate.empty() && ssl_clients != ClientCertificate::kIgnored) {
    return invalid_argument("--ssl-cert-reqs needs --ssl-certfile: plain HTTP has no certificates");
  }
  TRY(etcd.validate());
  bool anywhere = host == "0.0.0.0" || host == "::";
  if (etcd.used() && etcd.advertise_url.empty() && anywhere) {
    return invalid_argument(
        "--etcd-advertise-url is missing: routers cannot reach {}; name this machine's address, as "
        "http://10.0.0.7:{}",
        host, port);
  }
  if (!traces_endpoint.empty()) TRY(SpanExporter::check_endpoint(traces_endpoint));
  TRY(check_at_least("decode_log_interval", decode_log_interval, 0));
  TRY(check_range("header_bytes_max", header_bytes_max, 256, 1 << 20));
  TRY(check_at_least("body_bytes_max", body_bytes_max, 1));
  TRY(check_at_least("bodies_bytes_max", bodies_bytes_max, body_bytes_max));
  TRY(check_at_least("body_chunks_max", body_chunks_max, 1));
  TRY(check_at_least("connections_max", connections_max, 1));
  TRY(check_at_least("send_buffer_bytes_max", send_buffer_bytes_max, 1));
  TRY(check_range("workers", workers, 0, 256));
  TRY(check_at_least("work_queued_max", work_queued_max, 1));
  TRY(check_range("grammar_workers", grammar_workers, 0, 256));
  TRY(check_at_least("grammars_queued_max", grammars_queued_max, 1));
  TRY(check_at_least("responses_max", responses_max, 0));
  TRY(check_at_least("responses_bytes_max", responses_bytes_max, 0));
  TRY(check_range("response_ttl_s", response_ttl_s, 1, 366 * kDay));
  TRY(check_at_least("body_bytes_per_s_min", body_bytes_per_s_min, 1));
  TRY(find_chat_syntax(tool_call_parser, reasoning_parser, {}));
  for (auto [name, value] : {std::pair("header_timeout_s", header_timeout_s),
                             {"body_timeout_s", body_timeout_s},
                             {"idle_timeout_s", idle_timeout_s},
                             {"write_timeout_s", write_timeout_s},
                             {"linger_timeout_s", linger_timeout_s},
                             {"grammar_timeout_s", grammar_timeout_s}}) {
    TRY(check_range(name, value, 0.001, kDay));
  }
  TRY(check_range("watchdog_timeout_s", watchdog_timeout_s, 0, kDay));
  TRY(check_range("drain_delay_s", drain_delay_s, 0, kDay));
  return check_range("drain_timeout_s", drain_timeout_s, 0, kDay);
}

}  // namespace banyan
