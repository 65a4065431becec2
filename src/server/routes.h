// Maps requests to handlers. routes.cpp has the table, one line per endpoint.
#pragma once

#include <span>

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Called on the I/O thread, so it must be quick: work beyond some 100 us belongs in
// Service::run_on_worker. A handler may keep the responder and answer later.
using Handler = void (*)(Service& service, HttpRequest request, ResponderPtr responder);

// What must be there for a handler; without it the answer is 503, without an engine 501.
enum class Needs : uint8_t {
  kNothing,
  kModel,           // loaded, and not shutting down
  kEngine,          // and running in this process
  kEngineToTheEnd,  // likewise, while the server drains as well
};

struct Route {
  const char* method;
  const char* path;  // "/v1/models/{id}": {id} matches the rest of the path, slashes included
  Handler handler;
  Needs needs = Needs::kModel;
};

// The routes of `banyan serve`.
std::span<const Route> all_routes();

// Calls the matching handler of `routes`, or answers with 404, 405 or 503.
void dispatch(std::span<const Route> routes, Service& service, HttpRequest request,
              ResponderPtr responder);

}  // namespace banyan
