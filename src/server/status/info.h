// Endpoints that tell of the server itself: health, models, figures.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// The answer of whatever needs the model while there is none: loading or draining.
void respond_unready(const Service& service, Responder& responder);

// 200 when requests are welcome, 503 while the model loads and while the server drains. That it
// answers at all says that the process lives.
void health(Service& service, HttpRequest request, ResponderPtr responder);
// 200 once one token has been generated; 503 if that fails.
void health_generate(Service& service, HttpRequest request, ResponderPtr responder);
void metrics(Service& service, HttpRequest request, ResponderPtr responder);

void list_models(Service& service, HttpRequest request, ResponderPtr responder);
void show_model(Service& service, HttpRequest request, ResponderPtr responder);
void model_info(Service& service, HttpRequest request, ResponderPtr responder);
void server_info(Service& service, HttpRequest request, ResponderPtr responder);
void flush_cache(Service& service, HttpRequest request, ResponderPtr responder);
void clear_cache_storage(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
