// OpenAI's Responses API; see routes.cpp for its paths. Handlers run on the I/O thread, body
// readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner.
Parsed<GenerationPlan> plan_response(const RequestContext& context, const Json& body);
Parsed<Json> count_response_tokens(const RequestContext& context, const Json& body);

void handle_responses(Service& service, HttpRequest request, ResponderPtr responder);
// GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items, POST .../cancel.
void handle_count_response_tokens(Service& service, HttpRequest request, ResponderPtr responder);
void show_response(Service& service, HttpRequest request, ResponderPtr responder);
void delete_response(Service& service, HttpRequest request, ResponderPtr responder);
void cancel_response(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
