#include "server/http/origin.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>

#include "base/quote.h"

namespace banyan {
namespace {

using boost::asio::ip::address;
using boost::beast::iequals;

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

// Navigation to the page at /, which cannot be framed and only acts on clicks in it.
bool follows_link(const HttpRequest& request) {
  return request.method == "GET" && request.path == "/" &&
         request.header("sec-fetch-mode") == "navigate" &&
         request.header("sec-fetch-dest") == "document";
}

bool has_star(const std::vector<std::string>& names) {
  return std::ranges::find(names, "*") != names.end();
}

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == text.npos;
}

bool is_loopback(const address& a) {
  if (a.is_v6() && a.to_v6().is_v4_mapped()) {
    return make_address_v4(boost::asio::ip::v4_mapped, a.to_v6()).is_loopback();
  }
  return a.is_loopback();
}

// Browsers resolve localhost and its subdomains to loopback themselves.
bool is_loopback_name(std::string_view name) {
  return iequals(name, "localhost") ||
         (name.size() > 10 && iequals(name.substr(name.size() - 10), ".localhost"));
}

// "https://a.example:8443" without its scheme; nothing if it is not an origin.
std::optional<std::string_view> authority_of(std::string_view origin) {
  size_t colon = origin.find("://");
  if (colon == origin.npos || colon == 0) return std::nullopt;
  return origin.substr(colon + 3);
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.starts_with("*.")) pattern.remove_prefix(1);
  if (!pattern.starts_with('.')) return iequals(name, pattern);
  return name.size() > pattern.size() &&
         iequals(name.substr(name.size() - pattern.size()), pattern);
}

}  // namespace

// A host without its port, parsed as an address if it is one.
struct OriginRules::HostName {
  std::string name;
  std::optional<address> literal;

  bool is_loopback() const {
    return literal ? banyan::is_loopback(*literal) : is_loopback_name(name);
  }
};

OriginRules::OriginRules(std::string host, address bound, std::vector<std::string> allowed_hosts,
                         std::vector<std::string> allowed_origins)
    : host_(std::move(host)),
      bound_(std::move(bound)),
      allowed_hosts_(std::move(allowed_hosts)),
      allowed_origins_(std::move(allowed_origins)),
      any_host_(has_star(allowed_hosts_) ||
                (allowed_hosts_.empty() && !banyan::is_loopback(bound_))),
      any_origin_(has_star(allowed_origins_)) {}

std::optional<OriginRules::HostName> OriginRules::parse_host(std::string_view authority) {
  HostName host;
  std::string_view port;
  if (authority.starts_with('[')) {
    size_t end = authority.find(']');
    if (end == authority.npos) return std::nullopt;
    host.name = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else {
    size_t colon = std::min(authority.find(':'), authority.size());
    host.name = authority.substr(0, colon);
    port = authority.substr(colon);
    if (!consists_of(host.name, kNameCharacters)) return std::nullopt;
  }
  if (!port.empty() && (port[0] != ':' || port.find_first_not_of(kDigits, 1) != port.npos)) {
    return std::nullopt;
  }
  boost::system::error_code ec;
  address literal = boost::asio::ip::make_address(host.name, ec);
  if (!ec) host.literal = literal;
  if (ec && authority.starts_with('[')) return std::nullopt;
  if (host.name.ends_with('.')) host.name.pop_back();  // the DNS root
  if (host.name.empty()) return std::nullopt;
  return host;
}

// Whether the name is known to be ours.
bool OriginRules::knows(const HostName& host) const {
  if (host.is_loopback() || iequals(host.name, host_)) return true;
  if (host.literal && (*host.literal == bound_ || !banyan::is_loopback(bound_))) return true;
  return std::ranges::any_of(allowed_hosts_, [&](const std::string& pattern) {
    std::optional<HostName> exact = parse_host(pattern);
    bool same_address = exact && exact->literal && exact->literal == host.literal;
    return pattern != "*" && (same_address || matches_pattern(host.name, pattern));
  });
}

bool OriginRules::allows_host(std::string_view authority) const {
  if (any_host_) return true;
  std::optional<HostName> host = parse_host(authority);
  return host && knows(*host);
}

bool OriginRules::allows_origin(std::string_view origin, std::string_view authority) const {
  if (any_origin_) return true;
  auto same = [&](const std::string& allowed) { return iequals(allowed, origin); };
  if (std::ranges::any_of(allowed_origins_, same)) return true;
  std::optional<std::string_view> from = authority_of(origin);
  if (!from) return false;
  std::optional<HostName> host = parse_host(*from);
  if (!host) return false;
  if (banyan::is_loopback(bound_) && host->is_loopback()) return true;
  return iequals(*from, authority) && knows(*host);
}

std::optional<Refusal> OriginRules::check(const HttpRequest& request) const {
  std::optional<std::string_view> host = request.header("host");
  if (host && !allows_host(*host)) {
    return Refusal{403, fmt::format("Host {} is not a name of this server; --allowed-hosts NAME "
                                    "adds one, * takes all",
                                    quote(*host))};
  }
  std::optional<std::string_view> origin = request.header("origin");
  if (origin && !allows_origin(*origin, host.value_or(""))) {
    return Refusal{403, fmt::format("web pages of Origin {} may not use this server; "
                                    "--allowed-origins ORIGIN lets them, * lets all",
                                    quote(*origin))};
  }
  // Images and links send no Origin, but browsers send Sec-Fetch-Site.
  bool foreign = request.header("sec-fetch-site") == "cross-site" && !follows_link(request);
  if (!origin && foreign && !any_origin_) {
    return Refusal{403,
                   "Sec-Fetch-Site cross-site: web pages of other sites may not use this "
                   "server; --allowed-origins lets those that send their Origin, * lets all"};
  }
  return std::nullopt;
}

std::string OriginRules::readable_by(const HttpRequest& request) const {
  std::string_view origin = request.header("origin").value_or("");
  if (origin.empty() || !allows_origin(origin, request.header("host").value_or(""))) return "";
  return any_origin_ ? "*" : std::string(origin);
}

bool is_host_pattern(std::string_view name) {
  if (name == "*") return true;
  if (name.starts_with("*.")) name.remove_prefix(2);
  boost::system::error_code ec;
  boost::asio::ip::make_address(std::string(name), ec);
  return !ec || consists_of(name, kNameCharacters);
}

bool is_origin(std::string_view origin) {
  if (origin == "*" || origin == "null") return true;
  std::optional<std::string_view> authority = authority_of(origin);
  return authority && !authority->empty() &&
         authority->find_first_of("/?#@*\" ,") == authority->npos;
}

}  // namespace banyan
