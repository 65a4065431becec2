// Authentication. Runs before anything else of a request is looked at. Stateless; thread-safe.
#pragma once

#include "server/config.h"
#include "server/http/http.h"

namespace banyan {

// True if the request carries one of the API keys, as "Authorization: Bearer KEY" or "X-Api-Key:
// KEY", or needs none; GET /metrics takes a metrics key too. Only two paths need none: GET /health,
// so that probes work, and the page at
// /, which reveals nothing and prompts for the key. Takes the same time for every wrong key of one
// length.
bool is_authorized(const ServerConfig& config, const HttpRequest& request);

// Whether the request carries a key at all, right or wrong.
bool carries_key(const HttpRequest& request);

// The client's identity for fair queueing: the API key where one is required, else the address.
std::string client_of(const ServerConfig& config, const HttpRequest& request,
                      const std::string& address);

}  // namespace banyan
