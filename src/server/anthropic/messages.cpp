// POST /v1/messages and /v1/messages/count_tokens.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "llm/llm_parts.h"
#include "server/adapters/request.h"
#include "server/anthropic/endpoints.h"
#include "server/anthropic/format.h"
#include "server/anthropic/request.h"
#include "server/chat.h"
#include "server/error.h"
#include "server/json/writer.h"
#include "server/openai/format.h"

namespace banyan {
namespace {

struct MessageHead {
  std::string id, model;
  std::string call_ids;    // prefix of tool call ids
  int64_t max_tokens = 0;  // as requested
  bool edits = false;      // context_management has edits, none of which applies
  Json warnings;           // what is not enforced or offered; null: none
};

// input_tokens does not include cached tokens.
void write_usage(JsonWriter& writer, const Choice& choice, int64_t thinking_tokens) {
  int64_t cached = choice.stream.cached_tokens();
  writer.key("usage")
      .begin_object()
      .field("input_tokens", choice.prompt_tokens - cached)
      .field("cache_creation_input_tokens", 0)
      .field("cache_read_input_tokens", cached)
      .field("output_tokens", choice.stream.output_tokens())
      .key("output_tokens_details")
      .begin_object()
      .field("thinking_tokens", thinking_tokens)
      .end_object()
      .end_object();
}

// "stop_reason" and "stop_sequence"; null while the answer runs or if it was cut off.
void write_stop(JsonWriter& writer, const Choice& choice, int64_t max_tokens, bool calls) {
  const TextStream& stream = choice.stream;
  const char* reason = nullptr;
  if (stream.finish() == FinishReason::kLength) {
    bool cut = choice.max_new_tokens < max_tokens;
    reason = cut ? "model_context_window_exceeded" : "max_tokens";
  }
  if (stream.finish() == FinishReason::kStop) {
    reason = stream.matched_text() ? "stop_sequence" : calls ? "tool_use" : "end_turn";
  }
  writer.key("stop_reason");
  reason == nullptr ? writer.null() : writer.text(reason);
  writer.key("stop_sequence");
  stream.matched_text() ? writer.text(*stream.matched_text()) : writer.null();
}

class AnthropicAnswer final : public Answer {
 public:
  AnthropicAnswer(MessageHead head, const MessageParserOptions& options, bool stream)
      : head_(std::move(head)), parser_(options), stream_(stream) {}

  void take(const Choice& choice, const TokenEvent&, TextDelta delta,
            std::string& frames) override {
    MessageDelta message = parser_.take(choice, delta);
    if (!stream_) return message_.add(std::move(message));
    if (!std::exchange(begun_, true)) begin(choice, frames);
    if (!message.reasoning.empty()) {
      open(Block::kThinking, frames);
      add_delta("thinking_delta", "thinking", message.reasoning, frames);
    }
    if (!message.content.empty()) {
      open(Block::kText, frames);
      add_delta("text_delta", "text", message.content, frames);
    }
    for (const ToolCallDelta& call : message.calls) stream_call(call, frames);
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    close(frames);
    append_typed_event(frames, "message_delta", [&](JsonWriter& writer) {
      writer.key("delta").begin_object();
      write_stop(writer, choices[0], head_.max_tokens, parser_.calls() > 0);
      writer.end_object();
      write_usage(writer, choices[0], parser_.reasoning_tokens());
      write_edits(writer);
    });
    append_typed_event(frames, "message_stop", [](JsonWriter&) {});
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body;
    JsonWriter writer(body);
    writer.begin_object();
    write_head(writer);
    writer.key("content").begin_list();
    if (!message_.reasoning.empty()) {
      writer.begin_object().field("type", "thinking").field("thinking", message_.reasoning);
      writer.field("signature", "").end_object();
    }
    if (!message_.content.empty()) {
      writer.begin_object().field("type", "text").field("text", message_.content).end_object();
    }
    for (const ToolCallDelta& call : message_.calls) {
      write_call(writer, call);
      writer.key("input").json(input_of(call.arguments)).end_object();
    }
    writer.end_list();
    write_stop(writer, choices[0], head_.max_tokens, parser_.calls() > 0);
    write_usage(writer, choices[0], parser_.reasoning_tokens());
    write_edits(writer);
    writer.end_object();
    return body;
  }

  void fail(const RequestError& error, std::string& frames) override {
    int status = http_status(error.error.code);
    Json body = anthropic_error(status, error.error.message, error.code);
    frames += "event: error\ndata: " + dump_json(body) + "\n\n";
  }

 private:
  enum class Block : uint8_t { kNone, kThinking, kText, kCall };

  void write_head(JsonWriter& writer) const {
    writer.field("id", head_.id).field("type", "message").field("role", "assistant");
    writer.field("model", head_.model);
    if (!head_.warnings.is_null()) writer.field("warnings", head_.warnings);
  }

  void write_edits(JsonWriter& writer) const {
    if (head_.edits) writer.field("context_management", Json{{"applied_edits", Json::array()}});
  }

  // {"type": "tool_use", "id", "name"; the caller adds the input.
  void write_call(JsonWriter& writer, const ToolCallDelta& call) const {
    std::string id = call.id.empty() ? head_.call_ids + std::to_string(call.index) : call.id;
    writer.begin_object().field("type", "tool_use").field("id", id).field("name", call.name);
  }

  // The arguments as an object. A call truncated by the length limit has none; its text is kept.
  static Json input_of(const std::string& arguments) {
    Json input = Json::parse(arguments, nullptr, false);
    if (input.is_object()) return input;
    return arguments.empty() ? Json::object() : Json{{"INVALID_JSON", arguments}};
  }

  void begin(const Choice& choice, std::string& frames) const {
    append_typed_event(frames, "message_start", [&](JsonWriter& writer) {
      writer.key("message").begin_object();
      write_head(writer);
      writer.key("content").begin_list().end_list();
      writer.field("stop_reason", nullptr).field("stop_sequence", nullptr);
      write_usage(writer, choice, parser_.reasoning_tokens());
      writer.end_object();
    });
    append_typed_event(frames, "ping", [](JsonWriter&) {});
  }

  template <class Fill>
  void add_event(const char* type, std::string& frames, Fill fill) const {
    append_typed_event(frames, type, [&](JsonWriter& writer) {
      writer.field("index", index_);
      fill(writer);
    });
  }

  void add_delta(const char* type, const char* name, std::string_view text,
                 std::string& frames) const {
    add_event("content_block_delta", frames, [&](JsonWriter& writer) {
      writer.key("delta").begin_object().field("type", type).field(name, text).end_object();
    });
  }

  // Continues the open block if it has this kind, else starts a new one.
  void open(Block block, std::string& frames) {
    if (block_ == block) return;
    close(frames);
    block_ = block;
    add_event("content_block_start", frames, [&](JsonWriter& writer) {
      writer.key("content_block").begin_object();
      if (block == Block::kThinking) {
        writer.field("type", "thinking").field("thinking", "").field("signature", "");
      } else {
        writer.field("type", "text").field("text", "");
      }
      writer.end_object();
    });
  }

  void close(std::string& frames) {
    if (block_ == Block::kNone) return;
    if (block_ == Block::kThinking) add_delta("signature_delta", "signature", "", frames);
    add_event("content_block_stop", frames, [](JsonWriter&) {});
    block_ = Block::kNone;
    ++index_;
  }

  void stream_call(const ToolCallDelta& call, std::string& frames) {
    if (!call.name.empty()) {
      close(frames);
      block_ = Block::kCall;
      add_event("content_block_start", frames, [&](JsonWriter& writer) {
        writer.key("content_block");
        write_call(writer, call);
        writer.key("input").begin_object().end_object().end_object();
      });
    }
    if (call.arguments.empty()) return;
    add_delta("input_json_delta", "partial_json", call.arguments, frames);
  }

  const MessageHead head_;
  MessageStream parser_;
  const bool stream_;
  MessageDelta message_;  // accumulated for an unstreamed answer
  bool begun_ = false;
  Block block_ = Block::kNone;
  int64_t index_ = 0;  // of the open block, or of the next one
};

// {"type": "json_schema", "schema": ...}, under its current and its previous name.
void read_output_format(RequestFields& fields, const JsonSchemaOptions& json,
                        PromptRequest& request) {
  const Json* format = fields.find("output_format");
  const char* name = "output_format";
  const Json* config = fields.find("output_config");
  if (config != nullptr && config->is_object() && config->contains("format")) {
    format = &(*config)["format"];
    name = "output_config.format";
  }
  if (format == nullptr || format->is_null()) return;
  bool fits = format->is_object() && format->value("type", Json()) == "json_schema" &&
              format->contains("schema") && (*format)["schema"].is_object();
  if (!fits) {
    return fields.fail(name, fmt::format(R"( is {}; it must be {{"type": "json_schema", )"
                                         R"("schema": ...}})",
                                         show(*format)));
  }
  if (request.text.options.grammar) {
    return fields.fail(
        name, fmt::format(" and {} are both given; give only one of them", request.grammar_field));
  }
  request.text.options.grammar = GrammarSource{.kind = GrammarSource::Kind::kJsonSchema,
                                               .text = dump_json((*format)["schema"]),
                                               .json = json};
  request.grammar_field = name;
}

PromptRequest read_message_options(RequestFields& fields, const RequestContext& context) {
  constexpr SamplingNames kNames = {.max_new_tokens = "max_tokens",
                                    .min_new_tokens = "min_tokens",
                                    .seed = "seed",
                                    .max_new_tokens_default = kNewTokensMax,
                                    .stop = "stop_sequences"};
  PromptRequest request = read_sampling(fields, kNames, context.llm.recommended_sampling(),
                                        context.llm.config(), context.json, context.defaults);
  if (fields.find("max_tokens") == nullptr) fields.fail("max_tokens", " is missing");
  if (request.text.options.max_new_tokens == 0) {
    fields.fail("max_tokens", " is 0; it must be 1 or more");
  }
  if (request.samples != 1) fields.fail("n", " is more than 1; a message is one answer");
  read_scheduling(fields, request.text.options);
  request.text.options.adapter = read_adapter(fields, context);
  read_output_format(fields, context.json, request);
  fields.refuse({"container", "mcp_servers"});
  fields.accept_only({{"service_tier", R"(["auto","standard_only"])"}});
  return request;
}

}  // namespace

Parsed<GenerationPlan> plan_message(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ChatRequest chat;
  chat.options = read_message_options(fields, context);
  read_anthropic_chat(fields, chat);
  bool edits = read_context_edits(fields, context.llm.info().context_length_tokens);
  std::string model = answered_model(fields, context);
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, "msg_" + context.request_id);
  plan.stream = fields.flag("stream", false);
  TRY(fields.finish());
  int64_t max_tokens = chat.options.text.options.max_new_tokens;
  MessageParserOptions options = TRY(plan_messages(context, std::move(chat), plan));
  MessageHead head = {.id = plan.rids[0],
                      .model = std::move(model),
                      .call_ids = "toolu_" + context.request_id + "_",
                      .max_tokens = max_tokens,
                      .edits = edits,
                      .warnings = {}};
  if (!plan.warnings.empty()) head.warnings = plan.warnings;
  plan.answer = std::make_unique<AnthropicAnswer>(std::move(head), options, plan.stream);
  return plan;
}

Parsed<Json> count_message_tokens(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ChatRequest chat;
  read_anthropic_chat(fields, chat);
  bool edits = read_context_edits(fields, context.llm.info().context_length_tokens);
  answered_model(fields, context);
  TRY(fields.finish());
  Json answer = {{"input_tokens", TRY(count_prompt_tokens(context, std::move(chat.prompt)))}};
  if (edits) answer["context_management"] = {{"original_input_tokens", answer["input_tokens"]}};
  return answer;
}

void handle_messages(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_message);
}

void handle_count_tokens(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), count_message_tokens);
}

}  // namespace banyan
