// POST /v1/chat/completions: a conversation through the model's chat template.
#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "llm/chat_prompt.h"
#include "llm/llm_parts.h"
#include "llm/messages/message_parser.h"
#include "server/fields/tools.h"
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
  bool separate_reasoning = true;  // from the content
  bool stream_reasoning = true;    // as it comes; else in one piece
  MessageParserOptions parser;
  std::string call_ids;  // how the ids of calls begin
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
    MessageDelta message;
    bool reasoned = state.parser.in_reasoning().value_or(false);
    if (!delta.text.empty()) state.parser.push(delta.text, message);
    if (delta.counted) state.count_token(reasoned);
    if (choice.stream.done()) state.parser.finish(message);
    if (!options_.separate_reasoning) {
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
      body += ',';
      append_finish(body, choice.stream, state.parser.calls() > 0);
      body += '}';
    }
    append_end(body, options_.usage, usage(choices));
    return body;
  }

 private:
  struct State {
    explicit State(const MessageParserOptions& options) : parser(options) {}

    // A token is reasoning's if some of its text is, marks included. Tokens of text that may yet be
    // either wait for what it turns out to be.
    void count_token(bool reasoned) {
      ++undecided_tokens;
      std::optional<bool> reasons = parser.in_reasoning();
      if (!reasons && !reasoned) return;
      if (reasoned || *reasons) reasoning_tokens += undecided_tokens;
      undecided_tokens = 0;
    }

    MessageParser parser;
    int64_t reasoning_tokens = 0, undecided_tokens = 0;
    MessageDelta message;  // so far, where it is not streamed
    std::string logprobs;  // entries, as JSON text
    bool begun = false;
  };

  static Usage usage(const Choice& choice, const State& state) {
    Usage one = usage_of(choice);
    one.reasoning_tokens = state.reasoning_tokens;
    return one;
  }
  Usage usage(std::span<const Choice> choices) const {
    Usage total = usage_of(choices, options_.samples);
    for (const State& state : states_) total.reasoning_tokens += state.reasoning_tokens;
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

  // "id":...,"type":"function","function":{...}
  void append_call(const Choice& choice, const ToolCallDelta& call, std::string& out) const {
    std::string id = call.id;
    if (id.empty()) id = fmt::format("{}{}_{}", options_.call_ids, choice.index, call.index);
    out += R"("id":)";
    append_string(out, id);
    out += R"(,"type":"function","function":{"name":)";
    append_string(out, call.name);
    out += R"(,"arguments":)";
    append_string(out, call.arguments);
    out += '}';
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
    out += R"(,"tool_calls":)";
    if (message.calls.empty()) {
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
    frames += ',';
    if (last) {
      append_finish(frames, choice.stream, state.parser.calls() > 0);
    } else {
      frames += R"("finish_reason":null,"matched_stop":null)";
    }
    frames += "}]";
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

// reasoning_effort says whether to think at all, to templates that ask; an explicit variable wins.
void read_reasoning(RequestFields& fields, Json& variables) {
  std::string effort = fields.string("reasoning_effort", kNameBytesMax);
  if (effort.empty() || !variables.is_object()) return;
  auto set_default = [&](const char* name, Json value) {
    if (!variables.contains(name)) variables[name] = std::move(value);
  };
  set_default("reasoning_effort", effort);
  set_default("enable_thinking", effort != "none");
  set_default("thinking", effort != "none");
}

ChatPrompt read_chat(RequestFields& fields, const ToolRequest& tools) {
  ChatPrompt chat;
  auto copy = [&](const char* name, Json& to) {
    if (const Json* value = fields.find(name)) to = *value;
  };
  if (fields.find("messages") == nullptr) fields.fail("messages", " is missing");
  copy("messages", chat.messages);
  if (tools.may_call()) copy("tools", chat.tools);
  copy("documents", chat.documents);
  copy("chat_template_kwargs", chat.variables);
  read_reasoning(fields, chat.variables);
  read_chat_style(fields, chat);
  return chat;
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
  options.samples = static_cast<size_t>(request.samples);
  options.stream = fields.flag("stream", false);
  options.usage = read_usage_options(fields, options.stream);
  options.logprobs = fields.flag("logprobs", false);
  options.separate_reasoning = fields.flag("separate_reasoning", true);
  options.stream_reasoning = fields.flag("stream_reasoning", true);
  request.text.options.top_logprobs =
      static_cast<int>(fields.integer("top_logprobs", 0, 0, limits.top_logprobs_max));
  if (request.text.options.top_logprobs > 0 && !options.logprobs) {
    fields.fail("top_logprobs", " needs logprobs to be true");
  }
  return request;
}

// What is looked for in the answer to `prompt`, and what it must follow.
std::expected<void, RequestError> set_syntax(const ChatSyntax& model, std::string_view prompt,
                                             const ToolRequest& tools, ChatOptions& options,
                                             PromptRequest& request) {
  ChatSyntax syntax = model;
  bool required = tools.choice == ToolRequest::Choice::kRequired;
  // A call that is forced needs no agreement with the model: any format will do.
  if (required && syntax.tool_calls == nullptr) {
    syntax.tool_calls = find_tool_call_format("hermes", {}).value();
  }
  ReasoningStart start = ReasoningStart::kOutside;
  if (syntax.reasoning != nullptr) start = reasoning_start(*syntax.reasoning, prompt);
  auto grammar = chat_grammar(syntax, start, tools, request.text.options.grammar);
  if (!grammar) return std::unexpected(RequestError(grammar.error(), "tools"));
  request.text.options.grammar = *std::move(grammar);
  if (tools.may_call() && request.grammar_field.empty()) request.grammar_field = "tools";

  if (!tools.may_call()) syntax.tool_calls = nullptr;
  if (syntax.has_special_marks()) request.text.options.skip_special_tokens = false;
  options.parser = {.syntax = syntax,
                    .start = start,
                    .tools = tools.tools,
                    .calls_end_reasoning = !request.text.options.grammar,
                    .keep_reasoning = !options.separate_reasoning};
  return {};
}

}  // namespace

Parsed<GenerationPlan> plan_chat(const RequestContext& context, const Json& body) {
  const Llm& llm = context.llm;
  RequestFields fields(body);
  ChatOptions options;
  PromptRequest request = read_options(fields, context, options);
  ToolRequest tools = read_tools(fields);
  ChatPrompt chat = read_chat(fields, tools);
  refuse_openai_fields(fields);
  fields.refuse({"echo"});
  std::string model = answered_model(fields, context);
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, "chatcmpl-" + context.request_id);
  plan.stream = options.stream;
  TRY(fields.finish());

  auto text = render_chat(llm, std::move(chat));
  if (!text) return std::unexpected(RequestError(text.error(), "messages"));
  request.text.text = std::move(*text);
  request.text.add_special_tokens = false;
  TRY(set_syntax(context.syntax, request.text.text, tools, options, request));
  options.call_ids = "call_" + context.request_id + "_";
  TRY(plan.add_prompt(llm, request));
  TRY(plan.check_rids());
  std::string head =
      answer_head(context, {.id = plan.rids[0],
                            .object = options.stream ? "chat.completion.chunk" : "chat.completion",
                            .model = model,
                            .warnings = plan.warnings});
  plan.answer =
      std::make_unique<ChatAnswer>(std::move(head), std::move(options), tokenizer_of(llm));
  return plan;
}

void handle_chat_completions(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_chat);
}

}  // namespace banyan
