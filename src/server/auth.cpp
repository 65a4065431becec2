#include "server/auth.h"

#include <algorithm>

namespace banyan {
namespace {

bool equal_in_constant_time(std::string_view given, std::string_view key) {
  unsigned difference = given.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    char expected = key.empty() ? '\0' : key[i % key.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return {};
  for (size_t i = 0; i < kScheme.size(); ++i) {
    if ((authorization[i] | 0x20) != kScheme[i]) return {};
  }
  std::string_view token = authorization.substr(kScheme.size());
  return token.substr(std::min(token.find_first_not_of(' '), token.size()));
}

// "" if the request carries none.
std::string_view key_of(const HttpRequest& request) {
  std::string_view bearer = bearer_token(request.header("authorization").value_or(""));
  return bearer.empty() ? request.header("x-api-key").value_or("") : bearer;
}

// The page contains no secret, and a browser cannot send a key before it has the page.
bool is_web_page(const ServerConfig& config, const HttpRequest& request) {
  return config.webui && request.path == "/";
}

}  // namespace

bool is_authorized(const ServerConfig& config, const HttpRequest& request) {
  if (config.api_keys.empty()) return true;
  bool probes = request.method == "GET" || request.method == "HEAD";
  if (probes && (request.path == "/health" || is_web_page(config, request))) return true;
  std::string_view bearer = bearer_token(request.header("authorization").value_or(""));
  std::string_view plain = request.header("x-api-key").value_or("");
  bool known = false;
  auto compare = [&](const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      known |= equal_in_constant_time(bearer, key);
      known |= equal_in_constant_time(plain, key);
    }
  };
  compare(config.api_keys);
  if (request.path == "/metrics") compare(config.metrics_keys);
  return known;
}

bool carries_key(const HttpRequest& request) {
  return !key_of(request).empty();
}

std::string client_of(const ServerConfig& config, const HttpRequest& request,
                      const std::string& address) {
  if (config.api_keys.empty()) return address;
  return std::string(key_of(request));
}

}  // namespace banyan
