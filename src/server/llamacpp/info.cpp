// llama.cpp's /props and /slots, and its template rendering endpoint.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "server/chat.h"
#include "server/fields/tools.h"
#include "server/json/endpoint.h"
#include "server/llamacpp/endpoints.h"
#include "server/llamacpp/format.h"
#include "server/openai/custom_tools.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

std::string special_text(const std::optional<SpecialToken>& token) {
  return token ? token->text : "";
}

}  // namespace

Parsed<Json> apply_template(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ToolRequest tools = read_openai_tools(fields);
  ChatPrompt chat = read_openai_chat(fields, tools);
  TRY(fields.finish());
  return Json{{"prompt", TRY(render_prompt(context, std::move(chat)))}};
}

void handle_apply_template(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), apply_template);
}

void llama_props(Service& service, HttpRequest, ResponderPtr responder) {
  const EngineConfig& engine = service.engine_config();
  const Tokenizer* tokenizer = tokenizer_of(service.llm());
  constexpr uint32_t kAnySeed = 0xffffffff;  // llama.cpp's value for a random seed
  const RequestDefaults& defaults = service.config().defaults;
  SamplingParams sampling = defaults.apply(llama_sampling());
  sampling.seed = defaults.seed.value_or(kAnySeed);
  int64_t predict = defaults.max_new_tokens.value_or(-1);
  GenerationOptions options{.max_new_tokens = predict < 0 ? kNewTokensMax : predict};
  Json settings = {{"id", 0},
                   {"n_ctx", service.engine_info().context_length_tokens},
                   {"params", llama_settings(sampling, options)}};
  Json props = {{"default_generation_settings", std::move(settings)},
                {"total_slots", engine.running_max},
                {"model_alias", service.model_name()},
                {"model_path", engine.model_path},
                {"modalities", {{"vision", false}, {"audio", false}}},
                {"build_info", "banyan " + service.config().version},
                {"is_sleeping", false}};
  if (tokenizer != nullptr) {
    props["chat_template"] = tokenizer->chat_template().value_or("");
    props["bos_token"] = special_text(tokenizer->special().bos);
    props["eos_token"] = special_text(tokenizer->special().eos);
  }
  responder->respond(200, props);
}

// Each running sequence occupies a slot; running_max is the number of slots.
void llama_slots(Service& service, HttpRequest, ResponderPtr responder) {
  if (!service.config().slots) {
    return responder->respond_error(501, "/slots is switched off by --no-slots");
  }
  int64_t running = service.engine_stats().running;
  Json slots = Json::array();
  for (int64_t id = 0; id < std::max<int64_t>(running, service.engine_config().running_max); ++id) {
    slots.push_back({{"id", id},
                     {"n_ctx", service.engine_info().context_length_tokens},
                     {"speculative", service.engine_config().jump_forward},
                     {"is_processing", id < running}});
  }
  responder->respond(200, slots);
}

void llama_unsupported(Service&, HttpRequest request, ResponderPtr responder) {
  responder->respond_error(
      501, request.path + " is not supported: the cache is keyed by prefixes; it has no slots");
}

}  // namespace banyan
