// Ollama's model endpoints; the only model is the one being served.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "server/fields/infill.h"
#include "server/ollama/endpoints.h"
#include "server/ollama/format.h"
#include "server/timestamp.h"

namespace banyan {
namespace {

// LlamaForCausalLM gives "llama".
std::string family_of(const EngineInfo& info) {
  std::string family = info.architecture.substr(0, info.architecture.find("For"));
  std::ranges::transform(family, family.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return family;
}

std::string parameter_size(int64_t parameters) {
  double count = parameters;
  if (count >= 1e9) return fmt::format("{:.1f}B", count / 1e9);
  return count >= 1e6 ? fmt::format("{:.1f}M", count / 1e6) : fmt::format("{:.1f}K", count / 1e3);
}

Json details_of(const EngineInfo& info) {
  auto most = std::ranges::max_element(info.weights, {}, &WeightSummary::bytes);
  std::string family = family_of(info);
  return {{"parent_model", ""},
          {"format", "safetensors"},
          {"family", family},
          {"families", Json::array({family})},
          {"parameter_size", parameter_size(info.parameters_total)},
          {"quantization_level", most == info.weights.end() ? "" : most->format}};
}

Json model_of(const Service& service) {
  const EngineInfo& info = service.engine_info();
  return {
      {"name", service.model_name()}, {"model", service.model_name()}, {"size", info.weight_bytes},
      {"digest", info.state_digest},  {"details", details_of(info)},
  };
}

Json capabilities_of(const RequestContext& context) {
  if (context.llm.is_embedding_model()) return Json::array({"embedding"});
  Json list = Json::array({"completion"});
  if (context.syntax.tool_calls != nullptr) list.push_back("tools");
  if (context.syntax.reasoning != nullptr) list.push_back("thinking");
  const Tokenizer* tokenizer = tokenizer_of(context.llm);
  if (tokenizer != nullptr && find_infill_tokens(*tokenizer)) list.push_back("insert");
  return list;
}

std::string parameters_of(const SamplingParams& sampling) {
  return fmt::format("temperature {}\ntop_k {}\ntop_p {}\nmin_p {}\nrepeat_penalty {}",
                     sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p,
                     sampling.repetition_penalty);
}

}  // namespace

Parsed<Json> show_ollama_model(const RequestContext& context, const Json& body) {
  Json named = body;  // older clients send "name"
  if (named.is_object() && !named.contains("model") && named.contains("name")) {
    named["model"] = named["name"];
  }
  RequestFields fields(named);
  ollama_model(fields, context);
  TRY(fields.finish());
  const EngineInfo& info = context.llm.info();
  const Tokenizer* tokenizer = tokenizer_of(context.llm);
  std::string family = family_of(info);
  using std::chrono::system_clock;
  return Json{{"modelfile", ""},
              {"parameters", parameters_of(context.llm.recommended_sampling())},
              {"template", tokenizer == nullptr ? "" : tokenizer->chat_template().value_or("")},
              {"details", details_of(info)},
              {"model_info",
               {{"general.architecture", family},
                {"general.parameter_count", info.parameters_total},
                {family + ".context_length", info.context_length_tokens},
                {family + ".embedding_length", info.hidden},
                {family + ".block_count", info.layers.size()},
                {family + ".vocab_size", info.vocabulary}}},
              {"capabilities", capabilities_of(context)},
              {"modified_at", rfc3339(system_clock::from_time_t(context.created_s))}};
}

void handle_ollama_show(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), show_ollama_model);
}

void ollama_tags(Service& service, HttpRequest, ResponderPtr responder) {
  Json model = model_of(service);
  model["modified_at"] = rfc3339(service.started_at());
  responder->respond(200, Json{{"models", Json::array({std::move(model)})}});
}

void ollama_ps(Service& service, HttpRequest, ResponderPtr responder) {
  Json model = model_of(service);
  constexpr auto kYear = std::chrono::hours(24 * 365);  // loaded as long as the server runs
  model["expires_at"] = rfc3339(std::chrono::system_clock::now() + kYear);
  model["size_vram"] = 0;
  model["context_length"] = service.engine_info().context_length_tokens;
  responder->respond(200, Json{{"models", Json::array({std::move(model)})}});
}

void ollama_version(Service& service, HttpRequest, ResponderPtr responder) {
  responder->respond(200, Json{{"version", service.config().version}});
}

void ollama_unsupported(Service&, HttpRequest request, ResponderPtr responder) {
  responder->respond_error(400, request.path +
                                    " is not supported yet: this server runs the one model that it "
                                    "was started with");
}

}  // namespace banyan
