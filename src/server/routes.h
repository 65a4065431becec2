// Which handler answers which request. The table is in routes.cpp; an endpoint is one line of it.
#pragma once

#include <span>

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Called on the I/O thread, so it must be quick: what takes longer than some 100 us goes to
// Service::run_on_worker. The responder may be kept and answered later.
using Handler = void (*)(Service& service, HttpRequest request, ResponderPtr responder);

struct Route {
  const char* method;
  const char* path;  // "/v1/models/{id}": the last part stands for all the rest, slashes too
  Handler handler;
  bool needs_model = true;  // answered with 503 for it while the model loads or the server drains
};

// What `banyan serve` offers.
std::span<const Route> all_routes();

// Finds the handler in `routes` and calls it; answers itself with 404, 405, 503.
void dispatch(std::span<const Route> routes, Service& service, HttpRequest request,
              ResponderPtr responder);

}  // namespace banyan
