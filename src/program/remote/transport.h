// The connection of a remote backend to its server.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/http_client.h"
#include "program/backend.h"

namespace banyan {

// Sends a request. The sinks are called on a thread of the transport, never from within this call.
// The returned function cancels the exchange.
using Transport = std::function<Backend::Cancel(ClientRequest request, ClientSinks sinks)>;

// The headers of every request; none without a key.
Result<HttpClient::Headers> auth_headers(const std::string& api_key);

// HTTP on its own thread, which lives as long as the transport.
Result<Transport> http_transport(const std::string& url, const std::string& api_key);

}  // namespace banyan
