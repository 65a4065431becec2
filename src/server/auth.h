// Who may ask, before it is looked at what is asked.
#pragma once

#include "server/config.h"
#include "server/http/http.h"

namespace banyan {

// Whether the request carries one of the keys, as "Authorization: Bearer KEY" or "X-Api-Key: KEY",
// or needs none. GET /health needs none, so that a probe can tell whether the server is up, and
// neither does the page at /, which tells nothing and asks for the key; nothing else is exempt.
// Takes the same time for every wrong key of one length.
bool is_authorized(const ServerConfig& config, const HttpRequest& request);

// Who asks, for queues that are fair: by the key, where one is needed, else by the address.
std::string client_of(const ServerConfig& config, const HttpRequest& request,
                      const std::string& address);

}  // namespace banyan
