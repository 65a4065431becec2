// Endpoints that only llama.cpp's server has; see routes.cpp for the paths. Handlers run on the I/O
// thread, body readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_llama_completion(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_llama_embedding(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_infill(const RequestContext& context, const Json& body);
Parsed<Json> apply_template(const RequestContext& context, const Json& body);

void handle_llama_completion(Service& service, HttpRequest request, ResponderPtr responder);
void handle_llama_embedding(Service& service, HttpRequest request, ResponderPtr responder);
void handle_infill(Service& service, HttpRequest request, ResponderPtr responder);
void handle_apply_template(Service& service, HttpRequest request, ResponderPtr responder);
void llama_props(Service& service, HttpRequest request, ResponderPtr responder);
void llama_slots(Service& service, HttpRequest request, ResponderPtr responder);
// Answers 501 for known endpoints that are not supported, naming them.
void llama_unsupported(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
