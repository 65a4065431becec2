// How a remote backend reaches its server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/http_client.h"
#include "program/backend.h"

namespace banyan {

// Sends a request. The sinks are called from a thread of the transport's, never from within. The
// function that it returns ends the exchange early.
using Transport = std::function<Backend::Cancel(ClientRequest request, ClientSinks sinks)>;

// What a server gets with each request; none without a key.
Result<HttpClient::Headers> auth_headers(const std::string& api_key);

// HTTP, on a thread of its own, which lives as long as the transport.
Result<Transport> http_transport(const std::string& url, const std::string& api_key);

}  // namespace banyan
