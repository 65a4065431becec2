// Which names the server answers to and which web pages may use it. A page that somebody looks at
// on this machine or next to it can send requests here: with its own Origin, or under a name that
// its owner has made to resolve to our address (DNS rebinding), which the Host header shows.
//
// Immutable; safe from many threads at once.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/fields/reader.h"
#include "server/http/http.h"

namespace banyan {

// By what options say, beyond what is always so:
//   Host: names of the loopback interface, `--host` itself, and on an address that other machines
//     reach any literal address, which cannot be rebound. Without --allowed-hosts a server on such
//     an address takes every name, since it cannot know by which of them it is reached.
//   Origin: pages of this machine where only this machine is served, and pages of the very name
//     under which the request came, where that name is known.
class OriginRules {
 public:
  // `host` is as configured and `bound` what it stands for.
  OriginRules(std::string host, boost::asio::ip::address bound,
              std::vector<std::string> allowed_hosts, std::vector<std::string> allowed_origins);

  // Why the request is not computed: 403, naming the header and the option. Nothing if it may be.
  std::optional<Refusal> check(const HttpRequest& request) const;
  // The value for Access-Control-Allow-Origin, empty if pages may not read the answer.
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

// Whether `name` is one that --allowed-hosts takes: a name, .name for all below it, an address, *.
bool is_host_pattern(std::string_view name);
// Whether `origin` is one that --allowed-origins takes: scheme://host[:port], null, *.
bool is_origin(std::string_view origin);

}  // namespace banyan
