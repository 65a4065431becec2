// Ollama's API; see routes.cpp for its paths.
#pragma once

#include "server/generation.h"
#include "server/http/http.h"
#include "server/json/endpoint.h"
#include "server/service.h"

namespace banyan {

// The readers of bodies; see Planner and JsonEndpoint.
Parsed<GenerationPlan> plan_ollama_chat(const RequestContext& context, const Json& body);
Parsed<GenerationPlan> plan_ollama_generate(const RequestContext& context, const Json& body);
Parsed<Json> show_ollama_model(const RequestContext& context, const Json& body);

void handle_ollama_chat(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_generate(Service& service, HttpRequest request, ResponderPtr responder);
void handle_ollama_show(Service& service, HttpRequest request, ResponderPtr responder);
// Fetches a model into the hub's cache, where `banyan serve` finds it; this server goes on with its
// own.
void handle_ollama_pull(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_tags(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_ps(Service& service, HttpRequest request, ResponderPtr responder);
void ollama_version(Service& service, HttpRequest request, ResponderPtr responder);
// For what Ollama does and this server does not: says so.
void ollama_unsupported(Service& service, HttpRequest request, ResponderPtr responder);

}  // namespace banyan
