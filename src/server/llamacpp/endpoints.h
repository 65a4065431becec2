// The paths that llama.cpp's server has of its own; see routes.cpp for them.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// The readers of bodies; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_llama_completion(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_infill(const RequestContext& context, const Json& body);
Parsed<Json> apply_template(const RequestContext& context, const Json& body);

void handle_llama_completion(Service& service, HttpRequest request, ResponderPtr responder);
void handle_infill(Service& service, HttpRequest request, ResponderPtr responder);
void handle_apply_template(Service& service, HttpRequest request, ResponderPtr responder);
void llama_props(Service& service, HttpRequest request, ResponderPtr responder);
void llama_slots(Service& service, HttpRequest request, ResponderPtr responder);
void llama_adapters(Service& service, HttpRequest request, ResponderPtr responder);
// What is known and not here: 501, by name.
void llama_unsupported(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
