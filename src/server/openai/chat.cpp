// POST /v1/chat/completions: a conversation through the model's chat template.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "server/chat.h"
#include "server/generation.h"
#include "server/json_text.h"
#include "server/openai/endpoints.h"
#include "server/openai/format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

struct ChatOptions {
  bool logprobs = false;
  bool stream = false;
  bool stream_reasoning = true;  // as it comes; else in one piece
  MessageParserOptions parser;
  std::string call_ids;       // how the ids of calls begin
  bool legacy_calls = false;  // as function_call, which tool_calls have replaced
  bool token_ids = false;     // of the prompt and the outputs
  std::string prompt_ids;     // as JSON text
  UsageOptions usage;
  size_t samples = 1;
};

void append_token(const Tokenizer* tokenizer, TokenId id, float logprob, std::string& out) {
  std::string bytes = tokenizer == nullptr ? std::string() : tokenizer->token_bytes(id);
  out += R"({"token":)";
  append_string(out, valid_text(bytes));
  out += R"(,"logprob":)";
  append_logprob(out, logprob);
  out += R"(,"bytes":[)";
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i > 0) out += ',';
    append_integer(out, static_cast<unsigned char>(bytes[i]));
  }
  out += ']';
}

void append_logprob_entry(const Tokenizer* tokenizer, const TokenEvent& event, std::string& out) {
  append_token(tokenizer, event.token, event.logprob, out);
  out += R"(,"top_logprobs":[)";
  for (size_t i = 0; i < event.top.size(); ++i) {
    if (i > 0) out += ',';
    append_token(tokenizer, event.top[i].token, event.top[i].logprob, out);
    out += '}';
  }
  out += "]}";
}

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(std::string head, ChatOptions options, const Tokenizer* tokenizer)
      : head_(std::move(head)), options_(std::move(options)), tokenizer_(tokenizer) {
    for (size_t i = 0; i < options_.samples; ++i) states_.emplace_back(options_.parser);
  }

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    if (options_.logprobs && delta.counted) {
      if (!state.logprobs.empty()) state.logprobs += ',';
      append_logprob_entry(tokenizer_, event, state.logprobs);
    }
    if (options_.token_ids && delta.counted) {
      if (!state.ids.empty()) state.ids += ',';
      append_integer(state.ids, event.token);
    }
    MessageDelta message = state.parser.take(choice, delta);
    if (options_.parser.keep_reasoning) {  // harmony's comes apart all the same
      message.content.insert(0, std::exchange(message.reasoning, {}));
    }
    if (options_.stream) {
      stream(choice, std::move(message), state, frames);
    } else {
      state.message.add(std::move(message));
    }
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    append_last_events(frames, head_, options_.usage, usage(choices));
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body = head_;
    for (const Choice& choice : choices) {
      const State& state = states_[choice.index];
      fmt::format_to(std::back_inserter(body), R"({}{{"index":{},"message":)",
                     choice.index > 0 ? "," : "", choice.index);
      append_message(choice, state, body);
      body += R"(,"logprobs":)";
      append_logprobs(state.logprobs, body);
      if (options_.token_ids) body += R"(,"token_ids":[)" + state.ids + "]";
      body += ',';
      append_finish(body, choice.stream, called(state));
      body += '}';
    }
    append_end(body, options_.usage, usage(choices));
    return body;
  }

 private:
  struct State {
    explicit State(const MessageParserOptions& options) : parser(options) {}

    MessageStream parser;
    MessageDelta message;  // so far, where it is not streamed
    std::string logprobs;  // entries, as JSON text
    std::string ids;       // the same
    bool begun = false;
  };

  // What such an answer is said to have ended with.
  const char* called(const State& state) const {
    if (state.parser.calls() == 0) return nullptr;
    return options_.legacy_calls ? "function_call" : "tool_calls";
  }

  static Usage usage(const Choice& choice, const State& state) {
    Usage one = usage_of(choice);
    one.reasoning_tokens = state.parser.reasoning_tokens();
    return one;
  }
  Usage usage(std::span<const Choice> choices) const {
    Usage total = usage_of(choices, options_.samples);
    for (const State& state : states_) total.reasoning_tokens += state.parser.reasoning_tokens();
    return total;
  }

  void stream(const Choice& choice, MessageDelta message, State& state, std::string& frames) {
    bool done = choice.stream.done();
    if (!std::exchange(state.begun, true)) {
      append_chunk(choice, R"({"role":"assistant","content":""})", state, false, frames);
    }
    if (!options_.stream_reasoning) {  // held until something else comes
      state.message.reasoning += std::exchange(message.reasoning, {});
      if (done || !message.empty()) message.reasoning = std::exchange(state.message.reasoning, {});
    }
    if (!message.reasoning.empty()) {
      delta_ = "{";
      append_reasoning(message.reasoning, delta_);
      delta_ += '}';
      append_chunk(choice, delta_, state, false, frames);
    }
    bool only_logprobs = message.calls.empty() && !state.logprobs.empty();
    if (!message.content.empty() || only_logprobs) {
      delta_ = R"({"content":)";
      append_string(delta_, message.content);
      delta_ += '}';
      append_chunk(choice, delta_, state, false, frames);
    }
    for (const ToolCallDelta& call : message.calls) stream_call(choice, call, state, frames);
    if (done) append_chunk(choice, "{}", state, true, frames);
  }

  // The name and the arguments go out apart, as OpenAI sends them.
  void stream_call(const Choice& choice, const ToolCallDelta& call, State& state,
                   std::string& frames) {
    if (options_.legacy_calls) return stream_legacy_call(choice, call, state, frames);
    auto send = [&](const auto& append_fields) {
      delta_ = R"({"tool_calls":[{"index":)";
      append_integer(delta_, static_cast<int64_t>(call.index));
      append_fields();
      delta_ += "}]}";
      append_chunk(choice, delta_, state, false, frames);
    };
    if (!call.name.empty()) {
      send([&] {
        delta_ += ',';
        append_call(choice, {call.index, call.id, call.name, {}}, delta_);
      });
    }
    if (call.arguments.empty()) return;
    send([&] {
      delta_ += R"(,"function":{"arguments":)";
      append_string(delta_, call.arguments);
      delta_ += '}';
    });
  }

  void stream_legacy_call(const Choice& choice, const ToolCallDelta& call, State& state,
                          std::string& frames) {
    delta_ = R"({"function_call":)";
    append_function(call, delta_, !call.name.empty());
    delta_ += '}';
    append_chunk(choice, delta_, state, false, frames);
  }

  // {"name":...,"arguments":...}
  static void append_function(const ToolCallDelta& call, std::string& out, bool named = true) {
    out += '{';
    if (named) {
      out += R"("name":)";
      append_string(out, call.name);
      out += ',';
    }
    out += R"("arguments":)";
    append_string(out, call.arguments);
    out += '}';
  }

  // "id":...,"type":"function","function":{...}
  void append_call(const Choice& choice, const ToolCallDelta& call, std::string& out) const {
    std::string id = call.id;
    if (id.empty()) id = fmt::format("{}{}_{}", options_.call_ids, choice.index, call.index);
    out += R"("id":)";
    append_string(out, id);
    out += R"(,"type":"function","function":)";
    append_function(call, out);
  }

  // Under SGLang's name, which llama-server shares, and under vLLM's.
  static void append_reasoning(const std::string& reasoning, std::string& out) {
    out += R"("reasoning_content":)";
    append_string(out, reasoning);
    out += R"(,"reasoning":)";
    append_string(out, reasoning);
  }

  void append_message(const Choice& choice, const State& state, std::string& out) const {
    const MessageDelta& message = state.message;
    out += R"({"role":"assistant","content":)";
    bool nothing = message.content.empty() && !(message.calls.empty() && message.reasoning.empty());
    if (nothing) {
      out += "null";
    } else {
      append_string(out, message.content);
    }
    out += ',';
    if (message.reasoning.empty()) {
      out += R"("reasoning_content":null,"reasoning":null)";
    } else {
      append_reasoning(message.reasoning, out);
    }
    if (options_.legacy_calls && !message.calls.empty()) {
      out += R"(,"function_call":)";
      append_function(message.calls.front(), out);
    }
    out += R"(,"tool_calls":)";
    if (message.calls.empty() || options_.legacy_calls) {
      out += "null}";
      return;
    }
    for (const ToolCallDelta& call : message.calls) {
      out += call.index == 0 ? "[{" : ",{";
      out += R"("index":)";
      append_integer(out, static_cast<int64_t>(call.index));
      out += ',';
      append_call(choice, call, out);
      out += '}';
    }
    out += "]}";
  }

  void append_logprobs(std::string_view entries, std::string& out) const {
    if (!options_.logprobs) {
      out += "null";
      return;
    }
    out += R"({"content":[)";
    out += entries;
    out += "]}";
  }

  // The first chunk after a token has its log-probability.
  void append_chunk(const Choice& choice, std::string_view delta, State& state, bool last,
                    std::string& frames) const {
    frames += "data: ";
    frames += head_;
    frames += R"({"index":)";
    append_integer(frames, static_cast<int64_t>(choice.index));
    frames += R"(,"delta":)";
    frames += delta;
    frames += R"(,"logprobs":)";
    bool opens = delta.starts_with(R"({"role")");
    if (state.logprobs.empty() || opens) {
      frames += "null";
    } else {
      append_logprobs(std::exchange(state.logprobs, {}), frames);
    }
    if (options_.token_ids) {
      frames += R"(,"token_ids":[)" + (opens ? "" : std::exchange(state.ids, {})) + "]";
    }
    frames += ',';
    if (last) {
      append_finish(frames, choice.stream, called(state));
    } else {
      frames += R"("finish_reason":null,"matched_stop":null)";
    }
    frames += "}]";
    if (opens && options_.token_ids) {
      frames += R"(,"prompt_token_ids":[)" + options_.prompt_ids + "]";
    }
    if (options_.usage.continuous) {
      frames += R"(,"usage":)";
      append_usage(frames, usage(choice, state));
    }
    frames += "}\n\n";
  }

  const std::string head_;  // all up to the first choice
  const ChatOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<State> states_;
  std::string delta_;
};

// An older client's functions and function_call, as tools and tool_choice.
void read_functions(RequestFields& fields, ChatRequest& chat) {
  const Json& functions = *fields.find("functions");
  if (!functions.is_array()) {
    return fields.fail("functions", fmt::format(" is {}, not a list", show(functions)));
  }
  if (fields.find("tools") != nullptr) {
    return fields.fail("functions", " and tools are both given; tools have replaced functions");
  }
  Json tools = {{"tools", Json::array()}, {"parallel_tool_calls", false}};
  for (const Json& function : functions) {
    tools["tools"].push_back({{"type", "function"}, {"function", function}});
  }
  if (const Json* choice = fields.find("function_call")) {
    tools["tool_choice"] = *choice;
    if (choice->is_object()) {
      tools["tool_choice"] = {{"type", "function"}, {"function", *choice}};
    }
  }
  RequestFields converted(tools);
  chat.tools = read_tools(converted);
  if (auto done = converted.finish(); !done) {
    bool choice = done.error().param.starts_with("tool_choice");
    fields.fail(choice ? "function_call" : "functions", ": " + done.error().error.message,
                done.error().error.code);
  }
  if (chat.tools.may_call()) chat.prompt.tools = tools["tools"];
}

// What such clients say of calls, as templates know it.
void convert_function_messages(Json& messages) {
  if (!messages.is_array()) return;
  for (Json& message : messages) {
    if (!message.is_object()) continue;
    if (message.value("role", Json()) == "function") message["role"] = "tool";
    auto call = message.find("function_call");
    if (call == message.end() || !call->is_object()) continue;
    Json converted = {{"id", "call_0"}, {"type", "function"}, {"function", *call}};
    message.erase("function_call");
    message["tool_calls"] = Json::array({std::move(converted)});
  }
}

PromptRequest read_options(RequestFields& fields, const RequestContext& context,
                           ChatOptions& options) {
  bool is_new = fields.find("max_completion_tokens") != nullptr;
  const SamplingNames names = {is_new ? "max_completion_tokens" : "max_tokens", "min_tokens",
                               "seed", kNewTokensMax};
  const EngineConfig& limits = context.llm.config();
  PromptRequest request =
      read_sampling(fields, names, context.llm.recommended_sampling(), limits, context.json);
  if (request.text.options.max_new_tokens == 0) {
    fields.fail(names.max_new_tokens, " is 0, it must be 1 or more");
  }
  read_scheduling(fields, request.text.options);
  request.text.options.prediction = read_prediction(fields);
  options.samples = static_cast<size_t>(request.samples);
  options.stream = fields.flag("stream", false);
  options.usage = read_usage_options(fields, options.stream);
  options.logprobs = fields.flag("logprobs", false);
  options.stream_reasoning = fields.flag("stream_reasoning", true);
  request.text.options.top_logprobs =
      static_cast<int>(fields.integer("top_logprobs", 0, 0, limits.top_logprobs_max));
  if (request.text.options.top_logprobs > 0 && !options.logprobs) {
    fields.fail("top_logprobs", " needs logprobs to be true");
  }
  return request;
}

}  // namespace

Parsed<GenerationPlan> plan_chat(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ChatOptions options;
  ChatRequest chat;
  chat.options = read_options(fields, context, options);
  chat.tools = read_tools(fields);
  chat.prompt = read_openai_chat(fields, chat.tools);
  const Json* functions = fields.find("functions");
  options.legacy_calls = functions != nullptr && !functions->empty();
  if (options.legacy_calls) {
    read_functions(fields, chat);
    convert_function_messages(chat.prompt.messages);
  } else {
    fields.accept_only({{"function_call", R"(["none","auto"])"}});
  }
  options.token_ids = fields.flag("return_token_ids", false);
  chat.separate_reasoning = fields.flag("separate_reasoning", true);
  refuse_openai_fields(fields);
  fields.refuse({"echo", "suffix", "prompt_logprobs"});
  std::string model = answered_model(fields, context);
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, "chatcmpl-" + context.request_id);
  plan.stream = options.stream;
  TRY(fields.finish());
  options.parser = TRY(plan_messages(context, std::move(chat), plan));
  if (options.token_ids && !plan.requests.empty()) {
    options.prompt_ids = fmt::format("{}", fmt::join(plan.requests[0].prompt, ","));
  }
  options.call_ids = "call_" + context.request_id + "_";
  std::string head =
      answer_head(context, {.id = plan.rids[0],
                            .object = options.stream ? "chat.completion.chunk" : "chat.completion",
                            .model = model,
                            .warnings = plan.warnings});
  if (options.token_ids && !options.stream) {  // before the choices
    std::string_view choices = R"(,"choices":[)";
    head.insert(head.size() - choices.size(),
                R"(,"prompt_token_ids":[)" + options.prompt_ids + "]");
  }
  plan.answer =
      std::make_unique<ChatAnswer>(std::move(head), std::move(options), tokenizer_of(context.llm));
  return plan;
}

void handle_chat_completions(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_chat);
}

}  // namespace banyan
