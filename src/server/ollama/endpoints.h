// Ollama's API; see routes.cpp for its paths. Handlers run on the I/O thread, body readers on a
// worker.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// Body readers; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_ollama_chat(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_ollama_generate(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_ollama_embed(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_ollama_embeddings(const RequestContext& context, const Json& body);
Parsed<Json> show_ollama_model(const RequestContext& context, const Json& body);

void handle_ollama_chat(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_generate(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_embed(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_embeddings(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_show(Service& service, HttpRequest request, ResponderPtr responder);
// Downloads a model into the hub cache for a later `banyan serve`. This server keeps its own model.
void handle_ollama_pull(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_tags(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_ps(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_version(Service& service, HttpRequest request, ResponderPtr responder);
// Answers with an error for Ollama features that this server lacks.
void ollama_unsupported(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
