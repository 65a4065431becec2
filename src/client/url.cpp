#include "client/url.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/quote.h"

namespace banyan {
namespace {

constexpr std::string_view kPlainScheme = "http://", kTlsScheme = "https://";

Status check_port(std::string_view port, std::string_view url) {
  int number = 0;
  auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc() || end != port.data() + port.size() || number < 1 || number > 65535) {
    return invalid_argument("{}: {} is not a port between 1 and 65535", quote(url), quote(port));
  }
  return {};
}

}  // namespace

Result<ServerUrl> parse_server_url(std::string_view url) {
  std::string_view rest = url;
  bool tls = rest.starts_with(kTlsScheme);
  if (tls || rest.starts_with(kPlainScheme)) {
    rest.remove_prefix(tls ? kTlsScheme.size() : kPlainScheme.size());
  } else if (rest.find("://") != rest.npos) {
    return unsupported("{}: only http:// and https:// URLs are supported", quote(url));
  }
  bool printable = std::ranges::all_of(rest, [](char c) { return c > 0x20 && c < 0x7f; });
  if (!printable || rest.find_first_of("@?#\\\"<>") != rest.npos) {
    return invalid_argument("{} is not a server URL such as http://127.0.0.1:30000", quote(url));
  }
  ServerUrl server{.tls = tls, .port = tls ? "443" : "80"};
  size_t slash = std::min(rest.find('/'), rest.size());
  server.authority = rest.substr(0, slash);
  server.prefix = rest.substr(slash);
  while (server.prefix.ends_with('/')) server.prefix.pop_back();

  std::string_view host = server.authority, port;
  bool bracketed = host.starts_with('[');
  size_t host_end = bracketed ? host.find(']') : host.find(':');
  if (bracketed && host_end == host.npos) return invalid_argument("{}: ] is missing", quote(url));
  if (bracketed) {
    port = host.substr(host_end + 1);
    host = host.substr(1, host_end - 1);
  } else if (host_end != host.npos) {
    port = host.substr(host_end);
    host = host.substr(0, host_end);
  }
  if (host.empty()) return invalid_argument("{} names no host", quote(url));
  server.host = host;
  if (port.empty()) return server;
  if (port[0] != ':') return invalid_argument("{}: {} is not a port", quote(url), quote(port));
  TRY(check_port(port.substr(1), url));
  server.port = port.substr(1);
  return server;
}

}  // namespace banyan
