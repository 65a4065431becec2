// Parses a server URL: "http://host:port/prefix", or https. Stateless; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct ServerUrl {
  bool tls = false;         // https
  std::string host;         // IPv6 addresses without brackets
  std::string port = "80";  // 1 to 65535; of https 443
  std::string prefix;       // precedes every path: "" or "/some/where"
  std::string authority;    // for the Host header, "host:port"
};

// http:// may be omitted. Refuses schemes but these two, user names, queries, and characters that
// are not allowed in a request line.
Result<ServerUrl> parse_server_url(std::string_view url);

}  // namespace banyan
