// POST /v1/chat/completions: a conversation through the model's chat template.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/error.h"
#include "llm/chat_prompt.h"
#include "server/generation.h"
#include "server/json_text.h"
#include "server/openai.h"
#include "server/openai_format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

struct ChatOptions {
  bool logprobs = false;
  bool stream = false;
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
      : head_(std::move(head)),
        options_(options),
        tokenizer_(tokenizer),
        states_(options.samples) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    if (options_.logprobs && delta.counted) {
      if (!state.logprobs.empty()) state.logprobs += ',';
      append_logprob_entry(tokenizer_, event, state.logprobs);
    }
    if (!options_.stream) {
      state.text += delta.text;
      return;
    }
    if (!std::exchange(state.begun, true)) {
      append_chunk(choice, R"({"role":"assistant","content":""})", {}, false, frames);
    }
    bool done = choice.stream.done();
    if (!delta.text.empty() || !state.logprobs.empty()) {
      content_ = R"({"content":)";
      append_string(content_, delta.text);
      content_ += '}';
      append_chunk(choice, content_, state.logprobs, false, frames);
      state.logprobs.clear();
    }
    if (done) append_chunk(choice, "{}", {}, true, frames);
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    append_last_events(frames, head_, options_.usage, usage_of(choices, options_.samples));
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body = head_;
    for (const Choice& choice : choices) {
      const State& state = states_[choice.index];
      fmt::format_to(std::back_inserter(body),
                     R"({}{{"index":{},"message":)"
                     R"({{"role":"assistant","content":)",
                     choice.index > 0 ? "," : "", choice.index);
      append_string(body, state.text);
      body += R"(,"tool_calls":null},"logprobs":)";
      append_logprobs(state.logprobs, body);
      body += ',';
      append_finish(body, choice.stream);
      body += '}';
    }
    append_end(body, options_.usage, usage_of(choices, options_.samples));
    return body;
  }

 private:
  struct State {
    std::string text;
    std::string logprobs;  // entries, as JSON text
    bool begun = false;
  };

  void append_logprobs(std::string_view entries, std::string& out) const {
    if (!options_.logprobs) {
      out += "null";
      return;
    }
    out += R"({"content":[)";
    out += entries;
    out += "]}";
  }

  void append_chunk(const Choice& choice, std::string_view delta, std::string_view logprobs,
                    bool last, std::string& frames) const {
    frames += "data: ";
    frames += head_;
    frames += R"({"index":)";
    append_integer(frames, static_cast<int64_t>(choice.index));
    frames += R"(,"delta":)";
    frames += delta;
    frames += R"(,"logprobs":)";
    if (logprobs.empty()) {
      frames += "null";
    } else {
      append_logprobs(logprobs, frames);
    }
    frames += ',';
    if (last) {
      append_finish(frames, choice.stream);
    } else {
      frames += R"("finish_reason":null,"matched_stop":null)";
    }
    frames += "}]";
    if (options_.usage.continuous) {
      frames += R"(,"usage":)";
      append_usage(frames, usage_of(choice));
    }
    frames += "}\n\n";
  }

  const std::string head_;  // all up to the first choice
  const ChatOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<State> states_;
  std::string content_;
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

ChatPrompt read_chat(RequestFields& fields, const Json& body) {
  ChatPrompt chat;
  auto copy = [&](const char* name, Json& to) {
    if (const Json* value = fields.find(name)) to = *value;
  };
  if (fields.find("messages") == nullptr) fields.fail("messages", " is missing");
  copy("messages", chat.messages);
  if (body.is_object() && body.value("tool_choice", Json()) != "none") copy("tools", chat.tools);
  copy("documents", chat.documents);
  copy("chat_template_kwargs", chat.variables);
  read_reasoning(fields, chat.variables);
  chat.add_generation_prompt = fields.flag("add_generation_prompt", true);
  chat.continue_final_message = fields.flag("continue_final_message", false);
  return chat;
}

PromptRequest read_options(RequestFields& fields, const RequestContext& context,
                           ChatOptions& options) {
  constexpr SamplingNames kNew = {"max_completion_tokens", "min_tokens", "seed"};
  bool is_new = fields.find("max_completion_tokens") != nullptr;
  const EngineConfig& limits = context.llm.config();
  PromptRequest request = read_sampling(fields, is_new ? kNew : kOpenAiNames,
                                        context.llm.recommended_sampling(), limits, context.json);
  if (request.max_new_tokens == 0) {
    fields.fail(is_new ? "max_completion_tokens" : "max_tokens", " is 0, it must be 1 or more");
  }
  read_scheduling(fields, request.text);
  options.samples = static_cast<size_t>(request.samples);
  options.stream = fields.flag("stream", false);
  options.usage = read_usage_options(fields, options.stream);
  options.logprobs = fields.flag("logprobs", false);
  request.text.top_logprobs =
      static_cast<int>(fields.integer("top_logprobs", 0, 0, limits.top_logprobs_max));
  if (request.text.top_logprobs > 0 && !options.logprobs) {
    fields.fail("top_logprobs", " needs logprobs to be true");
  }
  return request;
}

}  // namespace

Parsed<GenerationPlan> plan_chat(const RequestContext& context, const Json& body) {
  const Llm& llm = context.llm;
  RequestFields fields(body);
  ChatOptions options;
  PromptRequest request = read_options(fields, context, options);
  ChatPrompt chat = read_chat(fields, body);
  refuse_openai_fields(fields);
  fields.refuse({"echo"});
  std::string model = answered_model(fields, context);
  GenerationPlan plan;
  plan.rids = read_rids(fields, "chatcmpl-" + context.request_id);
  plan.stream = options.stream;
  TRY(fields.finish());

  auto text = render_chat(llm, std::move(chat));
  if (!text) return std::unexpected(RequestError(text.error(), "messages"));
  request.text.text = std::move(*text);
  request.text.add_special_tokens = false;
  TRY(plan.add_prompt(llm, request));
  TRY(plan.check_rids());
  std::string head =
      answer_head(context, {.id = plan.rids[0],
                            .object = options.stream ? "chat.completion.chunk" : "chat.completion",
                            .model = model,
                            .warnings = plan.warnings});
  plan.answer = std::make_unique<ChatAnswer>(std::move(head), options, llm.tokenizer());
  return plan;
}

void handle_chat_completions(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_chat);
}

}  // namespace banyan
