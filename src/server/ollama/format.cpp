#include "server/ollama/format.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/quote.h"
#include "server/adapters/request.h"
#include "server/timestamp.h"

namespace banyan {
namespace {

constexpr std::string_view kLatest = ":latest";

void read_format(RequestFields& fields, const JsonSchemaOptions& json, PromptRequest& request) {
  const Json* format = fields.find("format");
  if (format == nullptr || *format == "") return;
  GrammarSource source{.json = json};
  if (format->is_object()) {
    source.kind = GrammarSource::Kind::kJsonSchema;
    source.text = dump_json(*format);
  } else if (*format == "json") {
    source.kind = GrammarSource::Kind::kJsonObject;
  } else {
    return fields.fail("format",
                       fmt::format(" is {}; it must be \"json\" or a JSON schema", show(*format)));
  }
  if (request.text.options.grammar) {
    return fields.fail("format", fmt::format(" and {} are both given; give only one of them",
                                             request.grammar_field));
  }
  request.text.options.grammar = std::move(source);
  request.grammar_field = "format";
}

int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

}  // namespace

Json ollama_error(int, std::string_view message, std::string_view) {
  return {{"error", message}};
}

std::string ollama_model(RequestFields& fields, const RequestContext& context) {
  std::string model = fields.string("model", kNameBytesMax);
  if (model.empty()) fields.fail("model", " is missing");
  std::string_view name = model;
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  if (!context.may_be_called(name) && !context.may_be_called(model)) {
    fields.fail_as(
        "model_not_found", "model",
        fmt::format(" {} not found; this server has {}", quote(model), quote(context.model_name)),
        ErrorCode::kNotFound);
  }
  return model;
}

Parsed<PromptRequest> read_ollama_options(RequestFields& fields, const RequestContext& context) {
  constexpr SamplingNames kNames = {.max_new_tokens = "num_predict",
                                    .min_new_tokens = "min_tokens",
                                    .seed = "seed",
                                    .max_new_tokens_default = kNewTokensMax,
                                    .repetition_penalty = "repeat_penalty",
                                    .llama_numbers = true};
  TRY(fields.finish());
  const Json* given = fields.find("options");
  static const Json kNone = Json::object();
  const Json& options = given == nullptr ? kNone : *given;
  RequestFields inner(options, "options.");
  PromptRequest request = read_sampling(inner, kNames, context.llm.recommended_sampling(),
                                        context.llm.config(), context.json, context.defaults);
  inner.accept_only({{"tfs_z", "[1]"}, {"penalize_newline", "[true]"}});
  if (request.samples != 1) inner.fail("n", " is more than 1; there is one answer");
  int64_t context_length = context.llm.info().context_length_tokens;
  int64_t wanted = inner.integer("num_ctx", context_length, 1, kNewTokensMax);
  TRY(inner.finish());
  if (wanted > context_length) {
    static std::once_flag said;  // not with every request of a client that is set up so
    std::call_once(said, [&] {
      spdlog::warn("num_ctx is {}; the context stays at {} (--context-length)", wanted,
                   context_length);
    });
  }
  read_format(fields, context.json, request);
  fields.refuse_unsupported();
  request.text.options.adapter = read_adapter(fields, context);
  fields.refuse({"logprobs"});
  fields.accept_only({{"top_logprobs", "[0]"}});
  TRY(fields.finish());
  return request;
}

void read_ollama_think(RequestFields& fields, const RequestContext& context, Json& variables) {
  const Json* think = fields.find("think");
  if (think == nullptr) return;
  if (!think->is_boolean() && !think->is_string()) {
    return fields.fail("think", fmt::format(" is {}; it must be true, false, \"low\", \"medium\" "
                                            "or \"high\"",
                                            show(*think)));
  }
  bool thinks = *think != false;
  if (thinks && context.syntax.reasoning == nullptr) {
    return fields.fail("think", ": the model does not support thinking", ErrorCode::kUnsupported);
  }
  if (think->is_string()) {
    set_reasoning_effort(variables, fields.string("think", kNameBytesMax));
  } else {
    set_thinking(variables, thinks);
  }
}

GenerationPlan plan_ollama_load(RequestFields& fields, const RequestContext& context,
                                std::string model, bool chat) {
  const Json* keep_alive = fields.find("keep_alive");
  if (keep_alive != nullptr && (*keep_alive == 0 || *keep_alive == "0")) {
    fields.fail("keep_alive",
                " is 0, which asks to unload the model; it stays as long as the "
                "server runs",
                ErrorCode::kUnsupported);
  }
  GenerationPlan plan(context.compiled);
  plan.rids = {context.request_id};
  plan.answer = std::make_unique<OllamaAnswer>(std::move(model), chat, false,
                                               MessageParserOptions{}, context.received);
  return plan;
}

// Begins {"model", "created_at", ...
void OllamaAnswer::begin(JsonWriter& writer) const {
  writer.begin_object().field("model", model_);
  writer.field("created_at", rfc3339(std::chrono::system_clock::now()));
}

void OllamaAnswer::write_message(JsonWriter& writer, const MessageDelta& message) const {
  if (chat_) writer.key("message").begin_object().field("role", "assistant");
  writer.field(chat_ ? "content" : "response", message.content);
  if (!message.reasoning.empty()) writer.field("thinking", message.reasoning);
  if (!message.calls.empty()) {
    writer.key("tool_calls").begin_list();
    for (const ToolCallDelta& call : message.calls) {
      writer.begin_object().key("function").begin_object();
      writer.field("index", call.index).field("name", call.name);
      writer.key("arguments").raw(call.arguments.empty() ? "{}" : call.arguments);
      writer.end_object().end_object();
    }
    writer.end_list();
  }
  if (chat_) writer.end_object();
}

void OllamaAnswer::write_end(JsonWriter& writer, std::span<const Choice> choices) const {
  const char* reason = "load";
  if (!choices.empty()) reason = to_string(choices[0].stream.finish());
  writer.field("done", true).field("done_reason", reason);
  if (choices.empty()) return;
  writer.field("total_duration", nanoseconds(times_.total_s()));
  writer.field("load_duration", 0);
  writer.field("prompt_eval_count", choices[0].prompt_tokens);
  writer.field("prompt_eval_duration", nanoseconds(times_.prompt_s()));
  writer.field("eval_count", choices[0].stream.output_tokens());
  writer.field("eval_duration", nanoseconds(times_.predicted_s()));
}

// Ollama's arguments are an object. A call truncated by the length limit has none; its text becomes
// content.
void OllamaAnswer::settle_calls() {
  std::erase_if(message_.calls, [&](const ToolCallDelta& call) {
    bool complete =
        call.arguments.empty() || Json::parse(call.arguments, nullptr, false).is_object();
    if (!complete) message_.content += call.name + call.arguments;
    return !complete;
  });
}

void OllamaAnswer::take(const Choice& choice, const TokenEvent& event, TextDelta delta,
                        std::string& frames) {
  times_.take(event);
  MessageDelta message = parser_.take(choice, delta);
  if (!stream_) return message_.add(std::move(message));
  message_.add({.reasoning = {}, .content = {}, .calls = std::exchange(message.calls, {})});
  if (choice.stream.done()) {  // tool calls are sent whole
    settle_calls();
    message.content += std::exchange(message_.content, {});
    message.calls = std::exchange(message_.calls, {});
  }
  if (message.empty()) return;
  JsonWriter writer(frames);
  begin(writer);
  write_message(writer, message);
  writer.field("done", false).end_object();
  frames += '\n';
}

void OllamaAnswer::end(std::span<const Choice> choices, std::string& frames) {
  JsonWriter writer(frames);
  begin(writer);
  write_message(writer, {});
  write_end(writer, choices);
  writer.end_object();
  frames += '\n';
}

std::string OllamaAnswer::whole(std::span<const Choice> choices) {
  settle_calls();
  std::string body;
  JsonWriter writer(body);
  begin(writer);
  write_message(writer, message_);
  write_end(writer, choices);
  writer.end_object();
  return body;
}

void OllamaAnswer::fail(const RequestError& error, std::string& frames) {
  frames += dump_json(ollama_error(0, error.error.message, error.code)) + "\n";
}

}  // namespace banyan
