#include "server/routes.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "server/adapters/endpoints.h"
#include "server/anthropic/endpoints.h"
#include "server/embed/endpoints.h"
#include "server/error.h"
#include "server/llamacpp/endpoints.h"
#include "server/ollama/endpoints.h"
#include "server/openai/endpoints.h"
#include "server/openai/responses/endpoints.h"
#include "server/sglang/endpoints.h"
#include "server/status/decode_limit.h"
#include "server/status/info.h"
#include "server/status/kv_events.h"
#include "server/status/profile.h"
#include "server/status/tree_info.h"
#include "server/webui.h"
#include "server/worker/endpoints.h"

namespace banyan {
namespace {

using enum Needs;

// clang-format off
constexpr auto kRoutes = std::to_array<Route>({
    {"GET", "/", web_page, kNothing},
    {"GET", "/health", health, kNothing},
    {"GET", "/ping", health, kNothing},
    {"GET", "/health_generate", health_generate},
    {"GET", "/metrics", metrics, kNothing},
    {"GET", "/v1/models", list_models},
    {"GET", "/v1/models/{id}", show_model},
    {"POST", "/v1/completions", handle_completions},
    {"POST", "/v1/chat/completions", handle_chat_completions},
    {"POST", "/v1/embeddings", handle_embeddings},
    {"POST", "/v1/chat/completions/input_tokens", handle_count_chat_tokens},
    {"POST", "/v1/responses", handle_responses},
    {"POST", "/v1/responses/input_tokens", handle_count_response_tokens},
    {"GET", "/v1/responses/{id}", show_response},
    {"DELETE", "/v1/responses/{id}", delete_response},
    {"POST", "/v1/responses/{id}", cancel_response},
    {"POST", "/v1/messages", handle_messages},
    {"POST", "/v1/messages/count_tokens", handle_count_tokens},
    {"POST", "/api/chat", handle_ollama_chat},
    {"POST", "/api/generate", handle_ollama_generate},
    {"GET", "/api/tags", ollama_tags},
    {"POST", "/api/show", handle_ollama_show},
    {"GET", "/api/ps", ollama_ps},
    {"GET", "/api/version", ollama_version},
    {"POST", "/api/embed", handle_ollama_embed},
    {"POST", "/api/embeddings", handle_ollama_embeddings},
    {"POST", "/api/pull", handle_ollama_pull},
    {"POST", "/api/push", ollama_unsupported},
    {"POST", "/api/create", ollama_unsupported},
    {"POST", "/api/copy", ollama_unsupported},
    {"DELETE", "/api/delete", ollama_unsupported},
    {"POST", "/completion", handle_llama_completion},
    {"POST", "/completions", handle_llama_completion},
    {"POST", "/infill", handle_infill},
    {"POST", "/apply-template", handle_apply_template},
    {"GET", "/props", llama_props},
    {"GET", "/slots", llama_slots},
    {"POST", "/slots/{id}", llama_unsupported},
    {"GET", "/lora-adapters", llama_adapters},
    {"POST", "/lora-adapters", set_llama_adapters, kEngine},
    {"POST", "/v1/load_lora_adapter", load_adapter, kEngine},
    {"POST", "/v1/unload_lora_adapter", unload_adapter, kEngine},
    {"POST", "/load_lora_adapter", load_adapter, kEngine},
    {"POST", "/unload_lora_adapter", unload_adapter, kEngine},
    {"POST", "/embedding", handle_llama_embedding},
    {"POST", "/embeddings", handle_llama_embedding},
    {"POST", "/rerank", handle_rerank},
    {"POST", "/reranking", handle_rerank},
    {"POST", "/v1/rerank", handle_rerank},
    {"POST", "/v1/reranking", handle_rerank},
    {"POST", "/v2/rerank", handle_rerank},
    {"POST", "/chat/completions", handle_chat_completions},
    {"POST", "/chat/completions/input_tokens", handle_count_chat_tokens},
    {"POST", "/responses", handle_responses},
    {"GET", "/models", list_models},
    {"GET", "/v1/health", health, kNothing},
    {"POST", "/generate", handle_generate},
    {"PUT", "/generate", handle_generate},
    {"POST", "/abort_request", handle_abort_request},
    {"POST", "/tokenize", handle_tokenize},
    {"POST", "/v1/tokenize", handle_tokenize},
    {"POST", "/detokenize", handle_detokenize},
    {"POST", "/v1/detokenize", handle_detokenize},
    {"POST", "/parse_function_call", handle_parse_function_call},
    {"POST", "/separate_reasoning", handle_separate_reasoning},
    {"POST", "/encode", handle_encode},
    {"POST", "/v1/score", handle_score},
    {"POST", "/score", handle_score},
    {"GET", "/get_model_info", model_info},
    {"GET", "/model_info", model_info},
    {"GET", "/get_server_info", server_info},
    {"GET", "/server_info", server_info},
    {"POST", "/worker/generate", worker_generate, kEngine},
    {"POST", "/worker/states", worker_states, kEngineToTheEnd},
    {"GET", "/worker/info", worker_info, kNothing},
    {"GET", "/radix_tree", radix_tree_info, kEngine},
    {"GET", "/kv/events", kv_events, kEngine},
    {"GET", "/start_profile", start_profile, kEngine},
    {"POST", "/start_profile", start_profile, kEngine},
    {"GET", "/stop_profile", stop_profile, kEngine},
    {"POST", "/stop_profile", stop_profile, kEngine},
    {"GET", "/decode_limit", decode_limit, kEngine},
    {"GET", "/flush_cache", flush_cache, kEngine},
    {"POST", "/flush_cache", flush_cache, kEngine},
    {"POST", "/clear_hicache_storage_backend", clear_cache_storage, kEngine},
});
// clang-format on

// Whether `path` matches `pattern`; the text of {name} goes to `argument`.
bool matches(std::string_view pattern, std::string_view path, std::string_view& argument) {
  size_t brace = pattern.find('{');
  if (brace == pattern.npos) return pattern == path;
  if (!path.starts_with(pattern.substr(0, brace)) || path.size() == brace) return false;
  argument = path.substr(brace);
  return true;
}

bool answers(const Route& route, std::string_view method) {
  std::string_view own = route.method;
  return own == method || (own == "GET" && method == "HEAD");
}

void not_found(const HttpRequest& request, Responder& responder, std::string allowed) {
  if (allowed.empty()) {
    return responder.respond_error(404, "there is nothing at " + request.path, {}, "unknown_url");
  }
  HttpHeaders more = {{"Allow", allowed}};
  std::string message = request.path + " takes " + allowed + ", not " + request.method;
  responder.respond(405, error_json(405, message, {}, "method_not_allowed", request.path), more);
}

}  // namespace

void dispatch(std::span<const Route> routes, Service& service, HttpRequest request,
              ResponderPtr responder) {
  // A trailing slash is ignored, as FastAPI does.
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();
  std::string allowed;
  for (const Route& route : routes) {
    std::string_view argument;
    if (!matches(route.path, request.path, argument)) continue;
    if (!answers(route, request.method)) {
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    bool drains = service.state() == Service::State::kDraining;
    bool unready = service.state() != Service::State::kReady;
    if (route.needs != kNothing && unready && !(drains && route.needs == kEngineToTheEnd)) {
      return respond_unready(service, *responder);
    }
    bool needs_engine = route.needs == kEngine || route.needs == kEngineToTheEnd;
    if (needs_engine && service.engine() == nullptr) {
      return responder->respond_error(
          501, request.path + " needs the engine, and this is a router; ask one of its workers", {},
          "no_engine");
    }
    request.path_argument = argument;
    return route.handler(service, std::move(request), std::move(responder));
  }
  not_found(request, *responder, std::move(allowed));
}

std::span<const Route> all_routes() {
  return kRoutes;
}

}  // namespace banyan
