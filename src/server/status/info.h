// Endpoints that report on the server: health, models, metrics. Handlers run on the I/O thread.
#pragma once

#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// The 503 for endpoints that need the model while it loads or the server drains.
void respond_unready(const Service& service, Responder& responder);

// 200 when requests are welcome, 503 while the model loads, the server is leaving or the engine
// makes no steps. Any answer shows that the process is alive.
void health(Service& service, HttpRequest request, ResponderPtr responder);
// Generates one token: 200 on success, 503 on failure. While the queue is full: 200 after the
// engine's next step.
void health_generate(Service& service, HttpRequest request, ResponderPtr responder);
void metrics(Service& service, HttpRequest request, ResponderPtr responder);

void list_models(Service& service, HttpRequest request, ResponderPtr responder);
void show_model(Service& service, HttpRequest request, ResponderPtr responder);
void model_info(Service& service, HttpRequest request, ResponderPtr responder);
void server_info(Service& service, HttpRequest request, ResponderPtr responder);
void flush_cache(Service& service, HttpRequest request, ResponderPtr responder);
void clear_cache_storage(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
