// Where a server is: "http://host:port/prefix" taken apart.
#pragma once

#include <string>
#include <string_view>

#include "banyan/status.h"

namespace banyan {

struct ServerUrl {
  std::string host;         // without the brackets of an IPv6 address
  std::string port = "80";  // a number from 1 to 65535
  std::string prefix;       // stands before every path: "" or "/some/where"
  std::string authority;    // for the Host header, "host:port"
};

// Refused: schemes other than http, which may be left out; user names; queries; what cannot stand
// in a request line.
Result<ServerUrl> parse_server_url(std::string_view url);

}  // namespace banyan
