// POST /v1/completions: prompts as text or token ids, one or many.
#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "base/error.h"
#include "llm/llm_parts.h"
#include "server/generation.h"
#include "server/json_text.h"
#include "server/openai/endpoints.h"
#include "server/openai/format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

// Log-probabilities in the old shape: parallel lists, kept as the JSON text of their entries.
class ParallelLogprobs {
 public:
  void add_unknown(std::string_view token, int64_t offset) {
    begin(token, offset);
    logprobs_ += "null";
    top_ += "null";
  }

  void add(const Tokenizer* tokenizer, const TokenEvent& event, int64_t offset) {
    begin(token_name(tokenizer, event.token), offset);
    append_logprob(logprobs_, event.logprob);
    top_ += '{';
    bool listed = false;
    for (const TokenLogprob& top : event.top) {
      listed |= top.token == event.token;
      add_top(token_name(tokenizer, top.token), top.logprob);
    }
    if (!listed) add_top(token_name(tokenizer, event.token), event.logprob);
    top_ += '}';
  }

  // What was added since the last time; `with_top`: alternatives were asked for.
  void append_and_clear(std::string& out, bool with_top) {
    fmt::format_to(
        std::back_inserter(out),
        R"({{"tokens":[{}],"token_logprobs":[{}],"top_logprobs":{}{}{},"text_offset":[{}]}})",
        tokens_, logprobs_, with_top ? "[" : "", with_top ? top_ : "null", with_top ? "]" : "",
        offsets_);
    for (std::string* list : {&tokens_, &logprobs_, &top_, &offsets_}) list->clear();
  }

 private:
  void begin(std::string_view token, int64_t offset) {
    if (!tokens_.empty()) {
      for (std::string* list : {&tokens_, &logprobs_, &top_, &offsets_}) *list += ',';
    }
    append_string(tokens_, token);
    append_integer(offsets_, offset);
  }

  void add_top(std::string_view token, float logprob) {
    if (top_.back() != '{') top_ += ',';
    append_string(top_, token);
    top_ += ':';
    append_logprob(top_, logprob);
  }

  std::string tokens_, logprobs_, top_, offsets_;
};

struct CompletionOptions {
  bool echo = false;
  std::optional<int> logprobs;  // how many alternatives
  bool skip_special_tokens = true;
  bool stream = false;
  UsageOptions usage;
  size_t samples = 1;
};

struct EchoedPrompt {
  std::string text;
  TokenId first_token = 0;  // the engine has no log-probability of it
};

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(std::string head, CompletionOptions options, const Tokenizer* tokenizer)
      : head_(std::move(head)), options_(options), tokenizer_(tokenizer) {}

  // In the order of the plan's prompts.
  void add_prompt(EchoedPrompt prompt) {
    prompts_.push_back(std::move(prompt));
    states_.resize(prompts_.size() * options_.samples);
  }

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    if (!std::exchange(state.begun, true)) begin(choice, state);
    if (options_.logprobs && (delta.counted || event.from_prompt)) {
      state.logprobs.add(tokenizer_, event, state.offset);
      state.offset += width(event.token, state);
    }
    state.text += delta.text;
    if (!options_.stream || !(delta.counted || choice.stream.done())) return;
    bool says_something = !state.text.empty() || options_.logprobs || choice.stream.done();
    if (!says_something) return;
    frames += "data: ";
    frames += head_;
    append_choice(choice, state, frames);
    frames += ']';
    if (options_.usage.continuous) {
      frames += R"(,"usage":)";
      append_usage(frames, usage_of(choice));
    }
    frames += "}\n\n";
    state.text.clear();
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    append_last_events(frames, head_, options_.usage, usage_of(choices, options_.samples));
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body = head_;
    for (const Choice& choice : choices) {
      if (choice.index > 0) body += ',';
      append_choice(choice, states_[choice.index], body);
    }
    append_end(body, options_.usage, usage_of(choices, options_.samples));
    return body;
  }

 private:
  struct State {
    std::string text;
    ParallelLogprobs logprobs;
    int64_t offset = 0;  // in the choice's text, in characters
    bool begun = false;
    bool at_start = true;  // of the text: the first token's space may be dropped there
  };

  void begin(const Choice& choice, State& state) {
    if (!options_.echo) {
      state.at_start = false;
      return;
    }
    const EchoedPrompt& prompt = prompts_[choice.prompt];
    state.text = prompt.text;
    if (!options_.logprobs) return;
    state.logprobs.add_unknown(token_name(tokenizer_, prompt.first_token), 0);
    state.offset += width(prompt.first_token, state);
  }

  // How many characters of the text begin with this token.
  int64_t width(TokenId id, State& state) const {
    if (tokenizer_ == nullptr) return 0;
    if (options_.skip_special_tokens && tokenizer_->is_special(id)) return 0;
    if (!std::exchange(state.at_start, false)) return characters_begun(tokenizer_->token_bytes(id));
    auto text = tokenizer_->decode(std::span(&id, 1));
    return text ? characters_begun(*text) : 0;
  }

  void append_choice(const Choice& choice, State& state, std::string& out) const {
    out += R"({"index":)";
    append_integer(out, static_cast<int64_t>(choice.index));
    out += R"(,"text":)";
    append_string(out, state.text);
    out += R"(,"logprobs":)";
    if (options_.logprobs) {
      state.logprobs.append_and_clear(out, *options_.logprobs > 0);
    } else {
      out += "null";
    }
    out += ',';
    append_finish(out, choice.stream);
    out += '}';
  }

  const std::string head_;  // all up to the first choice
  const CompletionOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<EchoedPrompt> prompts_;
  std::vector<State> states_;
};

// The prompts, each as text or as ids. `fields` remembers what is wrong.
std::vector<PromptRequest> read_prompts(RequestFields& fields, const PromptRequest& options,
                                        const EngineConfig& limits) {
  std::vector<PromptRequest> prompts;
  auto ids_max = static_cast<size_t>(limits.prompt_tokens_max);
  auto add = [&](const Json& prompt) {
    PromptRequest& added = prompts.emplace_back(options);
    if (prompt.is_string()) {
      added.text.text = prompt;
      return;
    }
    auto ids = read_token_ids(prompt, "prompt", ids_max);
    if (!ids) return fields.fail("prompt", ids.error().message.substr(6));
    if (ids->empty()) return fields.fail("prompt", " has no tokens");
    added.text.ids = std::move(*ids);
  };
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) {
    fields.fail("prompt", " is missing");
  } else if (prompt->is_string() ||
             (prompt->is_array() && !prompt->empty() && prompt->front().is_number())) {
    add(*prompt);
  } else if (!prompt->is_array() || prompt->empty()) {
    fields.fail("prompt", fmt::format(" is {}, it must be a string, a list of strings, a list of "
                                      "token ids or a list of such lists",
                                      show(*prompt)));
  } else if (static_cast<int64_t>(prompt->size()) * options.samples > kSequencesMax) {
    fields.fail("prompt", fmt::format(" has {} entries, times n = {}; the limit is {} together",
                                      prompt->size(), options.samples, kSequencesMax));
  } else {
    for (const Json& one : *prompt) add(one);
  }
  return prompts;
}

void check_best_of(RequestFields& fields, int64_t samples) {
  std::optional<int64_t> best_of = fields.integer_if("best_of", 1, kSamplesMax);
  if (best_of.value_or(samples) == samples) return;
  fields.fail("best_of", fmt::format(" other than n = {} is not supported", samples),
              ErrorCode::kUnsupported);
}

std::string echoed_text(const PromptRequest& prompt, const Tokenizer* tokenizer) {
  if (prompt.text.ids.empty() || tokenizer == nullptr) return prompt.text.text;
  return tokenizer->decode(prompt.text.ids, true).value_or("");
}

}  // namespace

Parsed<GenerationPlan> plan_completion(const RequestContext& context, const Json& body) {
  const Llm& llm = context.llm;
  const EngineConfig& limits = llm.config();
  RequestFields fields(body);
  PromptRequest prompt =
      read_sampling(fields, kOpenAiNames, llm.recommended_sampling(), limits, context.json);
  prompt.text.add_special_tokens = fields.flag("add_special_tokens", true);
  read_scheduling(fields, prompt.text.options);
  CompletionOptions options{.echo = fields.flag("echo", false),
                            .skip_special_tokens = prompt.text.options.skip_special_tokens,
                            .stream = fields.flag("stream", false),
                            .samples = static_cast<size_t>(prompt.samples)};
  if (auto top = fields.integer_if("logprobs", 0, limits.top_logprobs_max)) {
    options.logprobs = prompt.text.options.top_logprobs = static_cast<int>(*top);
    if (options.echo) prompt.text.options.prompt_logprobs_begin = 0;
  }
  options.usage = read_usage_options(fields, options.stream);
  check_best_of(fields, prompt.samples);
  refuse_openai_fields(fields);
  std::string model = answered_model(fields, context);
  std::string id = "cmpl-" + context.request_id;
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, id);
  plan.stream = options.stream;
  std::vector<PromptRequest> prompts = read_prompts(fields, prompt, limits);
  TRY(fields.finish());

  std::vector<EchoedPrompt> echoed;
  for (const PromptRequest& one : prompts) {
    TRY(plan.add_prompt(llm, one));
    echoed.push_back({.text = options.echo ? echoed_text(one, tokenizer_of(llm)) : std::string(),
                      .first_token = plan.requests.back().prompt.front()});
  }
  TRY(plan.check_rids());
  std::string head = answer_head(context, {.id = plan.rids.size() == 1 ? plan.rids[0] : id,
                                           .object = "text_completion",
                                           .model = model,
                                           .warnings = plan.warnings});
  auto answer = std::make_unique<CompletionAnswer>(std::move(head), options, tokenizer_of(llm));
  for (EchoedPrompt& one : echoed) answer->add_prompt(std::move(one));
  plan.answer = std::move(answer);
  return plan;
}

void handle_completions(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_completion);
}

}  // namespace banyan
