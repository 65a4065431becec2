// Endpoints that rank and compare texts; see routes.cpp for their paths. Handlers run on the I/O
// thread, body readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner.
Parsed<GenerationPlan> plan_rerank(const RequestContext& context, const Json& body);
// vLLM's /v1/score: how well texts match. SGLang's body has other fields, and its own reader.
Parsed<GenerationPlan> plan_pair_score(const RequestContext& context, const Json& body);

void handle_rerank(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
