// Anthropic's Messages API; see routes.cpp for its paths. Handlers run on the I/O thread, body
// readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_message(const RequestContext& context, const Json& body);
Parsed<Json> count_message_tokens(const RequestContext& context, const Json& body);

void handle_messages(Service& service, HttpRequest request, ResponderPtr responder);
void handle_count_tokens(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
