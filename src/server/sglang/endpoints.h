// SGLang's own endpoints; see routes.cpp for their paths. Handlers run on the I/O thread, body
// readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_generate(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_encode(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_score(const RequestContext& context, const Json& body);
Parsed<Json> tokenize(const RequestContext& context, const Json& body);
Parsed<Json> detokenize(const RequestContext& context, const Json& body);
Parsed<Json> parse_function_call(const RequestContext& context, const Json& body);
Parsed<Json> separate_reasoning(const RequestContext& context, const Json& body);

void handle_generate(Service& service, HttpRequest request, ResponderPtr responder);
void handle_encode(Service& service, HttpRequest request, ResponderPtr responder);
void handle_abort_request(Service& service, HttpRequest request, ResponderPtr responder);
void handle_tokenize(Service& service, HttpRequest request, ResponderPtr responder);
void handle_detokenize(Service& service, HttpRequest request, ResponderPtr responder);
void handle_parse_function_call(Service& service, HttpRequest request, ResponderPtr responder);
void handle_separate_reasoning(Service& service, HttpRequest request, ResponderPtr responder);
// Also answers vLLM's requests to that path.
void handle_score(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
