// POST /v1/chat/completions: a conversation rendered by the model's chat template.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/adapters/request.h"
#include "server/chat.h"
#include "server/generation.h"
#include "server/generation_times.h"
#include "server/json/text.h"
#include "server/json/writer.h"
#include "server/llamacpp/format.h"
#include "server/openai/custom_input.h"
#include "server/openai/custom_tools.h"
#include "server/openai/endpoints.h"
#include "server/openai/format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

struct ChatOptions {
  bool logprobs = false;
  bool stream = false;
  bool include_reasoning = true;
  bool stream_reasoning = true;  // as it is generated; else in one piece
  MessageParserOptions parser;
  std::string call_ids;       // prefix of tool call ids
  ToolNames custom;           // names of custom tools
  bool legacy_calls = false;  // answer with function_call, the predecessor of tool_calls
  bool token_ids = false;     // return the ids of prompt and outputs
  std::string prompt_ids;     // as JSON text
  UsageOptions usage;
  size_t samples = 1;
  bool timings = false;  // llama.cpp's timings, in every chunk and at the end
  bool verbose = false;
  std::string prompt;  // detokenized; sent if `verbose`
  std::chrono::steady_clock::time_point received;
};

// {"token", "logprob", "bytes"; the caller adds the rest.
void begin_token(const Tokenizer* tokenizer, TokenId id, float logprob, JsonWriter& writer) {
  std::string bytes = tokenizer == nullptr ? std::string() : tokenizer->token_bytes(id);
  writer.begin_object().field("token", valid_text(bytes)).key("logprob").logprob(logprob);
  writer.key("bytes").begin_list();
  for (unsigned char byte : bytes) writer.number(int64_t{byte});
  writer.end_list();
}

// Appends an entry to a list in JSON text.
void append_logprob_entry(const Tokenizer* tokenizer, const TokenEvent& event, std::string& out) {
  if (!out.empty()) out += ',';
  JsonWriter writer(out);
  begin_token(tokenizer, event.token, event.logprob, writer);
  writer.key("top_logprobs").begin_list();
  for (const TokenLogprob& top : event.top) {
    begin_token(tokenizer, top.token, top.logprob, writer);
    writer.end_object();
  }
  writer.end_list().end_object();
}

class ChatAnswer final : public Answer {
 public:
  ChatAnswer(std::string head, ChatOptions options, const Tokenizer* tokenizer)
      : head_(std::move(head)), options_(std::move(options)), tokenizer_(tokenizer) {
    for (size_t i = 0; i < options_.samples; ++i) states_.emplace_back(options_);
  }

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    state.times.take(event);
    if (event.is_progress()) return stream_progress(choice, event, state, frames);
    int64_t reasoned = state.parser.reasoning_tokens();
    MessageDelta message = state.parser.take(choice, delta);
    bool left_out = !options_.include_reasoning && state.parser.reasoning_tokens() > reasoned;
    if (delta.counted && !left_out) note_token(event, state);
    if (!options_.include_reasoning) message.reasoning.clear();
    if (options_.parser.keep_reasoning) {  // harmony's is always separated
      message.content.insert(0, std::exchange(message.reasoning, {}));
    }
    if (options_.stream) {
      stream(choice, std::move(message), state, frames);
    } else {
      state.message.add(std::move(message));
    }
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    append_last_events(frames, head_, options_.usage, usage(choices), extras(choices));
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body;
    JsonWriter writer(body);
    writer.begin_object().raw(head_);
    if (options_.token_ids) write_ids(writer, "prompt_token_ids", options_.prompt_ids);
    writer.key("choices").begin_list();
    for (const Choice& choice : choices) {
      const State& state = states_[choice.index];
      writer.begin_object().field("index", choice.index).key("message");
      write_message(writer, choice, state);
      write_logprobs(writer, options_.logprobs, state.logprobs);
      if (options_.token_ids) write_ids(writer, "token_ids", state.ids);
      write_finish(writer, choice.stream, called(state));
      writer.end_object();
    }
    writer.end_list();
    write_end(writer, options_.usage, usage(choices));
    if (std::string more = extras(choices); !more.empty()) writer.raw(more);
    writer.end_object();
    return body;
  }

 private:
  struct State {
    explicit State(const ChatOptions& options) : parser(options.parser), times(options.received) {}

    MessageStream parser;
    MessageDelta message;  // accumulated for an unstreamed answer
    std::string logprobs;  // entries, as JSON text
    std::string ids;       // the same
    bool begun = false;
    GenerationTimes times;
    std::optional<CustomInput> input;  // of the call being streamed
    size_t input_call = 0;             // its index in the answer
  };

  void note_token(const TokenEvent& event, State& state) const {
    if (options_.logprobs) append_logprob_entry(tokenizer_, event, state.logprobs);
    if (!options_.token_ids) return;
    if (!state.ids.empty()) state.ids += ',';
    append_integer(state.ids, event.token);
  }

  // llama.cpp's extra members of an answer, where requested.
  std::string extras(std::span<const Choice> choices) const {
    std::string members;
    JsonWriter writer(members);
    if (options_.timings) write_timings(writer, choices[0], states_[0].times);
    if (options_.verbose && !options_.stream) {
      writer.key("__verbose").begin_object().field("prompt", options_.prompt).end_object();
    }
    return members;
  }

  // The finish_reason of an answer with tool calls.
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

  void begin(const Choice& choice, State& state, std::string& frames) const {
    if (std::exchange(state.begun, true)) return;
    append_chunk(choice, state, Chunk::kFirst, frames, [](JsonWriter& delta) {
      delta.field("role", "assistant").field("content", nullptr);
    });
  }

  void stream_progress(const Choice& choice, const TokenEvent& event, State& state,
                       std::string& frames) const {
    begin(choice, state, frames);
    frames += "data: ";
    JsonWriter writer(frames);
    writer.begin_object().raw(head_).key("choices").begin_list().begin_object();
    writer.field("index", choice.index).key("delta").begin_object().end_object();
    writer.field("finish_reason", nullptr).end_object().end_list();
    write_progress(writer, choice, event, state.times);
    writer.end_object();
    frames += "\n\n";
  }

  void stream(const Choice& choice, MessageDelta message, State& state, std::string& frames) {
    bool done = choice.stream.done();
    begin(choice, state, frames);
    if (!options_.stream_reasoning) {  // held until the reasoning ends
      state.message.reasoning += std::exchange(message.reasoning, {});
      if (done || !message.empty()) message.reasoning = std::exchange(state.message.reasoning, {});
    }
    if (!message.reasoning.empty()) {
      append_chunk(choice, state, Chunk::kMiddle, frames,
                   [&](JsonWriter& delta) { write_reasoning(delta, message.reasoning); });
    }
    bool only_logprobs = message.calls.empty() && !state.logprobs.empty();
    if (!message.content.empty() || only_logprobs) {
      append_chunk(choice, state, Chunk::kMiddle, frames,
                   [&](JsonWriter& delta) { delta.field("content", message.content); });
    }
    for (const ToolCallDelta& call : message.calls) stream_call(choice, call, state, frames);
    if (done) end_input(choice, state, frames);
    if (done) append_chunk(choice, state, Chunk::kLast, frames, [](JsonWriter&) {});
  }

  // The name and the arguments are sent in separate chunks, as OpenAI does.
  void stream_call(const Choice& choice, const ToolCallDelta& call, State& state,
                   std::string& frames) {
    bool named = !call.name.empty();
    if (options_.legacy_calls) {
      return append_chunk(choice, state, Chunk::kMiddle, frames, [&](JsonWriter& delta) {
        delta.key("function_call");
        write_function(delta, call, named);
      });
    }
    if (named) {
      end_input(choice, state, frames);
      append_call_chunk(choice, state, call.index, frames, [&](JsonWriter& delta) {
        write_call(delta, choice, {call.index, call.id, call.name, {}});
      });
      if (options_.custom.contains(call.name)) {
        state.input.emplace();
        state.input_call = call.index;
      }
    }
    if (state.input) return stream_input(choice, state.input->take(call.arguments), state, frames);
    if (call.arguments.empty()) return;
    append_call_chunk(choice, state, call.index, frames, [&](JsonWriter& delta) {
      delta.key("function").begin_object().field("arguments", call.arguments).end_object();
    });
  }

  void stream_input(const Choice& choice, const std::string& text, State& state,
                    std::string& frames) {
    if (text.empty()) return;
    append_call_chunk(choice, state, state.input_call, frames, [&](JsonWriter& delta) {
      delta.key("custom").begin_object().field("input", text).end_object();
    });
  }

  void end_input(const Choice& choice, State& state, std::string& frames) {
    if (!state.input) return;
    stream_input(choice, state.input->finish(), state, frames);
    state.input.reset();
  }

  // `fill` writes the members of the call.
  template <class Fill>
  void append_call_chunk(const Choice& choice, State& state, size_t index, std::string& frames,
                         Fill fill) const {
    append_chunk(choice, state, Chunk::kMiddle, frames, [&](JsonWriter& delta) {
      delta.key("tool_calls").begin_list().begin_object().field("index", index);
      fill(delta);
      delta.end_object().end_list();
    });
  }

  // {"name":...,"arguments":...}
  static void write_function(JsonWriter& writer, const ToolCallDelta& call, bool named = true) {
    writer.begin_object();
    if (named) writer.field("name", call.name);
    writer.field("arguments", call.arguments).end_object();
  }

  // "id":...,"type":"function","function":{...}, or the same with "custom".
  void write_call(JsonWriter& writer, const Choice& choice, const ToolCallDelta& call) const {
    std::string id = call.id;
    if (id.empty()) id = fmt::format("{}{}_{}", options_.call_ids, choice.index, call.index);
    writer.field("id", id);
    if (options_.custom.contains(call.name)) {
      writer.field("type", "custom").key("custom").begin_object().field("name", call.name);
      writer.field("input", custom_input(call.arguments)).end_object();
      return;
    }
    writer.field("type", "function").key("function");
    write_function(writer, call);
  }

  // Under the name of SGLang and llama-server, and under vLLM's.
  static void write_reasoning(JsonWriter& writer, const std::string& reasoning) {
    writer.field("reasoning_content", reasoning).field("reasoning", reasoning);
  }

  void write_message(JsonWriter& writer, const Choice& choice, const State& state) const {
    const MessageDelta& message = state.message;
    writer.begin_object().field("role", "assistant").key("content");
    bool nothing = message.content.empty() && !(message.calls.empty() && message.reasoning.empty());
    nothing ? writer.null() : writer.text(message.content);
    if (message.reasoning.empty()) {
      writer.field("reasoning_content", nullptr).field("reasoning", nullptr);
    } else {
      write_reasoning(writer, message.reasoning);
    }
    bool calls = !message.calls.empty();
    if (options_.legacy_calls && calls) {
      writer.key("function_call");
      write_function(writer, message.calls.front());
    }
    writer.key("tool_calls");
    if (!calls || options_.legacy_calls) {
      writer.null().end_object();
      return;
    }
    writer.begin_list();
    for (const ToolCallDelta& call : message.calls) {
      writer.begin_object().field("index", call.index);
      write_call(writer, choice, call);
      writer.end_object();
    }
    writer.end_list().end_object();
  }

  static void write_ids(JsonWriter& writer, const char* name, std::string_view ids) {
    writer.key(name).begin_list().raw(ids).end_list();
  }

  static void write_logprobs(JsonWriter& writer, bool wanted, std::string_view entries) {
    writer.key("logprobs");
    if (!wanted) {
      writer.null();
      return;
    }
    writer.begin_object().key("content").begin_list().raw(entries).end_list().end_object();
  }

  enum class Chunk : uint8_t { kFirst, kMiddle, kLast };

  // `fill` writes the members of the delta. The first chunk of a token carries its log-probability.
  template <class Fill>
  void append_chunk(const Choice& choice, State& state, Chunk chunk, std::string& frames,
                    Fill fill) const {
    bool first = chunk == Chunk::kFirst;
    frames += "data: ";
    JsonWriter writer(frames);
    writer.begin_object().raw(head_).key("choices").begin_list().begin_object();
    writer.field("index", choice.index).key("delta").begin_object();
    fill(writer);
    writer.end_object();
    std::string logprobs, ids;
    if (!first) {
      logprobs.swap(state.logprobs);
      ids.swap(state.ids);
    }
    write_logprobs(writer, !logprobs.empty(), logprobs);
    if (options_.token_ids) write_ids(writer, "token_ids", ids);
    if (chunk == Chunk::kLast) {
      write_finish(writer, choice.stream, called(state));
    } else {
      writer.field("finish_reason", nullptr).field("matched_stop", nullptr);
    }
    writer.end_object().end_list();
    if (first && options_.token_ids) write_ids(writer, "prompt_token_ids", options_.prompt_ids);
    if (options_.timings && !first) write_timings(writer, choice, state.times);
    if (options_.usage.continuous) write_usage(writer, usage(choice, state));
    writer.end_object();
    frames += "\n\n";
  }

  const std::string head_;  // the members before the choices
  const ChatOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<State> states_;
};

// Translates older clients' functions and function_call to tools and tool_choice.
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

// Translates such clients' messages to the form that templates expect.
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
  PromptRequest request = read_sampling(fields, names, context.llm.recommended_sampling(), limits,
                                        context.json, context.defaults);
  if (request.text.options.max_new_tokens == 0) {
    fields.fail(names.max_new_tokens, " is 0; it must be 1 or more");
  }
  read_scheduling(fields, request.text.options);
  request.text.options.adapter = read_adapter(fields, context);
  request.text.options.prediction = read_prediction(fields);
  options.samples = as_size(request.samples);
  options.stream = fields.flag("stream", false);
  options.usage = read_usage_options(fields, options.stream);
  options.logprobs = fields.flag("logprobs", false);
  options.include_reasoning = fields.flag("include_reasoning", true);
  options.stream_reasoning = fields.flag("stream_reasoning", true);
  options.timings = fields.flag("timings_per_token", false);
  request.text.options.prompt_progress = fields.flag("return_progress", false);
  options.verbose = fields.flag("verbose", context.verbose);
  options.received = context.received;
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
  chat.tools = read_openai_tools(fields);
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
  // What is left out must be separate.
  chat.separate_reasoning = fields.flag("separate_reasoning", true) || !options.include_reasoning;
  const Json* search = fields.find("web_search_options");
  if (search != nullptr && !search->is_object()) {
    fields.fail("web_search_options", fmt::format(" is {}, not an object", show(*search)));
  } else if (search != nullptr) {
    chat.tools.warnings.push_back(cannot_run("web_search_options", "web search"));
  }
  refuse_openai_fields(fields);
  fields.refuse({"echo", "suffix", "prompt_logprobs"});
  std::string model = answered_model(fields, context);
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, "chatcmpl-" + context.request_id);
  plan.stream = options.stream;
  TRY(fields.finish());
  options.custom = chat.tools.custom;
  options.parser = TRY(plan_messages(context, std::move(chat), plan));
  if (options.token_ids && !plan.requests.empty()) {
    options.prompt_ids = fmt::format("{}", fmt::join(plan.requests[0].prompt, ","));
  }
  if (options.verbose && !plan.requests.empty()) {
    options.prompt = tokenizer_of(context.llm)->decode(plan.requests[0].prompt).value_or("");
  }
  options.call_ids = "call_" + context.request_id + "_";
  std::string head =
      answer_head(context, {.id = plan.rids[0],
                            .object = options.stream ? "chat.completion.chunk" : "chat.completion",
                            .model = model,
                            .warnings = plan.warnings});
  plan.answer =
      std::make_unique<ChatAnswer>(std::move(head), std::move(options), tokenizer_of(context.llm));
  return plan;
}

Parsed<Json> count_chat_tokens(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  ToolRequest tools = read_openai_tools(fields);
  ChatPrompt prompt = read_openai_chat(fields, tools);
  answered_model(fields, context);
  TRY(fields.finish());
  return Json{{"object", "response.input_tokens"},
              {"input_tokens", TRY(count_prompt_tokens(context, std::move(prompt)))}};
}

void handle_count_chat_tokens(Service& service, HttpRequest request, ResponderPtr responder) {
  answer_json(service, std::move(request), std::move(responder), count_chat_tokens);
}

void handle_chat_completions(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_chat);
}

}  // namespace banyan
