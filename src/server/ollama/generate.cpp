// POST /api/chat and /api/generate: streamed unless the request sets stream to false.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "server/chat.h"
#include "server/fields/infill.h"
#include "server/ollama/endpoints.h"
#include "server/ollama/format.h"

namespace banyan {
namespace {

// Ollama's tool calls have neither ids nor types; add both, since templates may read them.
Result<Json> convert_message(const Json& given, const std::string& place) {
  if (!given.is_object()) {
    return invalid_argument("{} is {}, not an object with role and content", place, show(given));
  }
  Json message = given;
  auto rename = [&](const char* from, const char* to) {
    if (!message.contains(from)) return;
    message[to] = message[from];
    message.erase(from);
  };
  rename("thinking", "reasoning_content");
  rename("tool_name", "name");
  auto calls = message.find("tool_calls");
  if (calls == message.end() || !calls->is_array()) return message;
  for (size_t i = 0; i < calls->size(); ++i) {
    Json& call = (*calls)[i];
    if (!call.is_object()) return invalid_argument("{}.tool_calls[{}] is not an object", place, i);
    if (!call.contains("type")) call["type"] = "function";
    if (!call.contains("id")) call["id"] = fmt::format("call_{}", i);
  }
  return message;
}

void read_messages(const Json& given, RequestFields& fields, Json& messages) {
  if (!given.is_array()) {
    return fields.fail("messages", fmt::format(" is {}, not a list of messages", show(given)));
  }
  messages = Json::array();
  for (size_t i = 0; i < given.size(); ++i) {
    Result<Json> message = convert_message(given[i], fmt::format("[{}]", i));
    if (!message) return fields.fail("messages", message.error().message, message.error().code);
    messages.push_back(*std::move(message));
  }
}

struct OllamaText {
  std::string prompt, system, suffix;
  bool raw = false;
};

OllamaText read_ollama_text(RequestFields& fields, size_t bytes_max) {
  OllamaText text{.prompt = fields.string("prompt", bytes_max),
                  .system = fields.string("system", bytes_max),
                  .suffix = fields.string("suffix", bytes_max),
                  .raw = fields.flag("raw", false)};
  // Ollama's templates are in Go's language; `context` is the tokens of an earlier answer.
  fields.refuse({"template", "context"});
  if (text.raw && !text.system.empty()) {
    fields.fail("system", " cannot be combined with raw: the prompt is used as it is");
  }
  return text;
}

std::unique_ptr<Answer> answer_of(const GenerationPlan& plan, std::string model, bool chat,
                                  const MessageParserOptions& options,
                                  const RequestContext& context) {
  return std::make_unique<OllamaAnswer>(std::move(model), chat, plan.stream, options,
                                        context.received);
}

}  // namespace

Parsed<GenerationPlan> plan_ollama_chat(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string model = ollama_model(fields, context);
  const Json* messages = fields.find("messages");
  if (messages == nullptr || messages->empty()) {
    GenerationPlan loaded = plan_ollama_load(fields, context, std::move(model), true);
    TRY(fields.finish());
    return loaded;
  }
  ChatRequest chat;
  chat.options = TRY(read_ollama_options(fields, context));
  read_messages(*messages, fields, chat.prompt.messages);
  chat.tools = read_tools(fields);
  if (const Json* tools = fields.find("tools"); tools != nullptr && chat.tools.may_call()) {
    chat.prompt.tools = *tools;
  }
  read_ollama_think(fields, context, chat.prompt.variables);
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.stream = fields.flag("stream", true);
  TRY(fields.finish());
  MessageParserOptions options = TRY(plan_messages(context, std::move(chat), plan));
  plan.answer = answer_of(plan, std::move(model), true, options, context);
  return plan;
}

Parsed<GenerationPlan> plan_ollama_generate(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  std::string model = ollama_model(fields, context);
  OllamaText text = read_ollama_text(fields, kNewTokensMax);
  if (text.prompt.empty()) {
    GenerationPlan loaded = plan_ollama_load(fields, context, std::move(model), false);
    TRY(fields.finish());
    return loaded;
  }
  ChatRequest chat;
  chat.options = TRY(read_ollama_options(fields, context));
  read_ollama_think(fields, context, chat.prompt.variables);
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.stream = fields.flag("stream", true);
  TRY(fields.finish());
  MessageParserOptions options;
  if (!text.suffix.empty()) {
    auto ids = infill_prompt(tokenizer_of(context.llm), text.prompt, text.suffix);
    if (!ids) return std::unexpected(RequestError(ids.error(), "suffix"));
    chat.options.text.ids = *std::move(ids);
    TRY(plan.add_prompt(context.llm, chat.options));
  } else if (text.raw || (text.system.empty() && !context.llm.has_chat_template())) {
    chat.options.text.text = std::move(text.prompt);
    TRY(plan.add_prompt(context.llm, chat.options));
  } else {
    chat.prompt.messages = Json::array();
    if (!text.system.empty()) {
      chat.prompt.messages.push_back({{"role", "system"}, {"content", std::move(text.system)}});
    }
    chat.prompt.messages.push_back({{"role", "user"}, {"content", std::move(text.prompt)}});
    options = TRY(plan_messages(context, std::move(chat), plan));
  }
  plan.answer = answer_of(plan, std::move(model), false, options, context);
  return plan;
}

void handle_ollama_chat(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_ollama_chat);
}

void handle_ollama_generate(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_ollama_generate);
}

}  // namespace banyan
