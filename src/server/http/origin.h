// Checks the Host and Origin headers: which names the server answers to and which web pages may use
// it.
//
// Any page open on this machine or nearby can send requests here from its own Origin. It can also
// use a name that its owner points at our address (DNS rebinding); the Host header reveals that.
//
// Immutable; thread-safe.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"
#include "server/http/request_reader.h"

namespace banyan {

// Always allowed, besides what the options add:
// - Host: names of the loopback interface and `--host` itself. On an address that other machines
//   can reach, also any literal address, since it cannot be rebound. Without --allowed-hosts a
//   server on such an address accepts every name, since it cannot know the names that lead to it.
// - Origin: pages of this machine if only this machine is served, and pages from the very name of
//   the request's Host header, if that name is known.
class OriginRules {
 public:
  // `host` is the configured name and `bound` the address it resolved to.
  OriginRules(std::string host, boost::asio::ip::address bound,
              std::vector<std::string> allowed_hosts, std::vector<std::string> allowed_origins);

  // Why the request is refused: 403, naming the header and the option. Nothing if it is allowed.
  std::optional<Refusal> check(const HttpRequest& request) const;
  // Value of Access-Control-Allow-Origin; empty if pages may not read the answer.
  std::string readable_by(const HttpRequest& request) const;

 private:
  struct HostName;

  static std::optional<HostName> parse_host(std::string_view authority);
  bool knows(const HostName& host) const;
  bool allows_host(std::string_view authority) const;
  bool allows_origin(std::string_view origin, std::string_view authority) const;

  std::string host_;
  boost::asio::ip::address bound_;
  std::vector<std::string> allowed_hosts_, allowed_origins_;
  bool any_host_ = false, any_origin_ = false;
};

// Whether --allowed-hosts accepts `name`: a host name, .name for all names below it, an address, or
// *.
bool is_host_pattern(std::string_view name);
// Whether --allowed-origins accepts `origin`: scheme://host[:port], null, or *.
bool is_origin(std::string_view origin);

}  // namespace banyan
