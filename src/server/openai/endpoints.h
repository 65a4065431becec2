// OpenAI's generating endpoints; see routes.cpp for their paths. Handlers run on the I/O thread,
// body readers on a worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner.
Parsed<GenerationPlan> plan_completion(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_chat(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_openai_embeddings(const RequestContext& context, const Json& body);
Parsed<Json> count_chat_tokens(const RequestContext& context, const Json& body);

void handle_completions(Service& service, HttpRequest request, ResponderPtr responder);
void handle_count_chat_tokens(Service& service, HttpRequest request, ResponderPtr responder);
void handle_chat_completions(Service& service, HttpRequest request, ResponderPtr responder);
void handle_embeddings(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
