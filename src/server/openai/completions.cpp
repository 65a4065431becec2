// POST /v1/completions: prompts as text or token ids, one or many.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/packed_json.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/adapters/request.h"
#include "server/fields/infill.h"
#include "server/fields/prompts.h"
#include "server/generation.h"
#include "server/json/text.h"
#include "server/json/writer.h"
#include "server/openai/endpoints.h"
#include "server/openai/format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

// Log-probabilities in the legacy format: parallel lists, stored as the JSON text of their entries.
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

  // Writes what was added since the last call; `with_top`: alternatives were requested.
  void write_and_clear(JsonWriter& writer, bool with_top) {
    auto list = [&](const char* name, const std::string& entries) {
      writer.key(name).begin_list().raw(entries).end_list();
    };
    writer.begin_object();
    list("tokens", tokens_);
    list("token_logprobs", logprobs_);
    if (with_top) {
      list("top_logprobs", top_);
    } else {
      writer.field("top_logprobs", nullptr);
    }
    list("text_offset", offsets_);
    writer.end_object();
    for (std::string* entries : {&tokens_, &logprobs_, &top_, &offsets_}) entries->clear();
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
  std::optional<int> logprobs;  // number of alternatives
  bool skip_special_tokens = true;
  bool stream = false;
  bool token_ids = false;              // return the ids of prompts and outputs
  std::optional<int> prompt_logprobs;  // vLLM's: number of alternatives per prompt token
  UsageOptions usage;
  size_t samples = 1;   // per prompt
  size_t returned = 1;  // per prompt; less than `samples` with best_of
};

struct EchoedPrompt {
  std::string text;
  TokenId first_token = 0;  // the engine reports no log-probability for it
  std::string ids;          // as JSON text, if requested
};

// vLLM's prompt_logprobs: for each position, the prompt's token and the likeliest ones, by id.
void append_prompt_logprob(const Tokenizer* tokenizer, const TokenEvent& event, int top,
                           std::string& out) {
  JsonWriter writer(out);
  writer.begin_object();
  auto add = [&](TokenId id, float logprob, std::optional<size_t> rank) {
    writer.key(std::to_string(id)).begin_object().key("logprob").logprob(logprob).key("rank");
    rank ? writer.number(static_cast<int64_t>(*rank)) : writer.null();
    writer.field("decoded_token", token_text(tokenizer, id)).end_object();
  };
  std::optional<size_t> own_rank;
  for (size_t i = 0; i < event.top.size(); ++i) {
    if (event.top[i].token == event.token) own_rank = i + 1;
  }
  add(event.token, event.logprob, own_rank);
  for (size_t i = 0; i < std::min(event.top.size(), as_size(top)); ++i) {
    if (event.top[i].token != event.token) add(event.top[i].token, event.top[i].logprob, i + 1);
  }
  writer.end_object();
}

std::string ids_text(std::span<const TokenId> ids) {
  return fmt::format("[{}]", fmt::join(ids, ","));
}

class CompletionAnswer final : public Answer {
 public:
  CompletionAnswer(std::string head, CompletionOptions options, const Tokenizer* tokenizer)
      : head_(std::move(head)), options_(options), tokenizer_(tokenizer) {}

  // Call in the order of the plan's prompts.
  void add_prompt(EchoedPrompt prompt) {
    prompts_.push_back(std::move(prompt));
    states_.resize(prompts_.size() * options_.samples);
  }

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    if (!std::exchange(state.begun, true)) begin(choice, state);
    if (delta.counted) {
      state.logprob_sum += event.logprob;
      ++state.tokens;
      if (options_.token_ids) state.ids.push_back(event.token);
    }
    if (options_.prompt_logprobs && event.from_prompt) {
      state.prompt_logprobs += state.prompt_logprobs.empty() ? "null," : ",";
      append_prompt_logprob(tokenizer_, event, *options_.prompt_logprobs, state.prompt_logprobs);
    }
    bool shown = delta.counted || (event.from_prompt && options_.echo);
    if (options_.logprobs && shown) {
      state.logprobs.add(tokenizer_, event, state.offset);
      state.offset += width(event.token, state);
    }
    state.text += delta.text;
    if (!options_.stream || !(delta.counted || choice.stream.done())) return;
    bool says_something = !state.text.empty() || options_.logprobs || choice.stream.done();
    if (!says_something) return;
    frames += "data: ";
    JsonWriter writer(frames);
    writer.begin_object().raw(head_).key("choices").begin_list();
    write_choice(choice, choice.index, state, writer);
    writer.end_list();
    if (options_.usage.continuous) write_usage(writer, usage_of(choice));
    writer.end_object();
    frames += "\n\n";
    state.text.clear();
  }

  void end(std::span<const Choice> choices, std::string& frames) override {
    append_last_events(frames, head_, options_.usage, usage_of(choices, options_.samples));
  }

  std::string whole(std::span<const Choice> choices) override {
    std::string body;
    JsonWriter writer(body);
    writer.begin_object().raw(head_).key("choices").begin_list();
    size_t index = 0;
    for (size_t first = 0; first < choices.size(); first += options_.samples) {
      for (size_t chosen : best(first)) {
        write_choice(choices[chosen], index++, states_[chosen], writer);
      }
    }
    writer.end_list();
    write_end(writer, options_.usage, usage_of(choices, options_.samples));
    writer.end_object();
    return body;
  }

 private:
  struct State {
    std::string text;
    ParallelLogprobs logprobs;
    int64_t offset = 0;  // in the choice's text, in characters
    double logprob_sum = 0;
    int64_t tokens = 0;
    std::vector<TokenId> ids;     // not sent yet
    std::string prompt_logprobs;  // entries, as JSON text
    bool begun = false, prompt_shown = false;
    bool at_start = true;  // of the text, where the first token may lose its space
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

  // The number of characters of the text that start with this token.
  int64_t width(TokenId id, State& state) const {
    if (tokenizer_ == nullptr) return 0;
    if (options_.skip_special_tokens && tokenizer_->is_special(id)) return 0;
    if (!std::exchange(state.at_start, false)) return characters_begun(tokenizer_->token_bytes(id));
    auto text = tokenizer_->decode(std::span(&id, 1));
    return text ? characters_begun(*text) : 0;
  }

  // The returned samples of a prompt: all, or those with the highest mean log-probability.
  std::vector<size_t> best(size_t first) const {
    std::vector<size_t> order(options_.samples);
    for (size_t i = 0; i < order.size(); ++i) order[i] = first + i;
    if (options_.returned == options_.samples) return order;
    auto mean = [&](size_t i) {
      double tokens = std::max<int64_t>(1, states_[i].tokens);
      return states_[i].logprob_sum / tokens;
    };
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return mean(a) > mean(b); });
    order.resize(options_.returned);
    return order;
  }

  void write_choice(const Choice& choice, size_t index, State& state, JsonWriter& writer) const {
    writer.begin_object().field("index", index).field("text", state.text).key("logprobs");
    if (options_.logprobs) {
      state.logprobs.write_and_clear(writer, *options_.logprobs > 0);
    } else {
      writer.null();
    }
    if (options_.token_ids) write_ids(choice, state, writer);
    if (options_.prompt_logprobs) {
      bool none = state.prompt_logprobs.empty();  // a prompt of one token
      writer.key("prompt_logprobs").begin_list();
      writer.raw(none ? "null" : state.prompt_logprobs).end_list();
    }
    write_finish(writer, choice.stream);
    writer.end_object();
  }

  // Writes the ids since the last event; the first event also has the prompt's.
  void write_ids(const Choice& choice, State& state, JsonWriter& writer) const {
    if (!std::exchange(state.prompt_shown, true)) {
      writer.key("prompt_token_ids").raw(prompts_[choice.prompt].ids);
    }
    writer.key("token_ids").raw(ids_text(state.ids));
    state.ids.clear();
  }

  const std::string head_;  // the members before the choices
  const CompletionOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<EchoedPrompt> prompts_;
  std::vector<State> states_;
};

// best_of: the number of samples to generate, of which n are returned.
void read_best_of(RequestFields& fields, PromptRequest& prompt, CompletionOptions& options) {
  std::optional<int64_t> best_of = fields.integer_if("best_of", 1, kSamplesMax);
  options.returned = as_size(prompt.samples);
  if (best_of.value_or(prompt.samples) < prompt.samples) {
    fields.fail("best_of", fmt::format(" is {}, less than n = {}", *best_of, prompt.samples));
  }
  if (best_of && *best_of > prompt.samples && options.stream) {
    fields.fail("best_of",
                " must equal n when streaming, since the best are known only at the end");
  }
  prompt.samples = best_of.value_or(prompt.samples);
  options.samples = as_size(prompt.samples);
}

void read_logprob_options(RequestFields& fields, const EngineConfig& limits,
                          GenerationOptions& generation, CompletionOptions& options) {
  if (auto top = fields.integer_if("logprobs", 0, limits.top_logprobs_max)) {
    options.logprobs = generation.top_logprobs = static_cast<int>(*top);
    if (options.echo) generation.prompt_logprobs_begin = 0;
  }
  if (auto top = fields.integer_if("prompt_logprobs", 0, limits.top_logprobs_max)) {
    if (options.stream) fields.fail("prompt_logprobs", " cannot be streamed");
    options.prompt_logprobs = static_cast<int>(*top);
    generation.top_logprobs = std::max(generation.top_logprobs, *options.prompt_logprobs);
    generation.prompt_logprobs_begin = 0;
    if (options.logprobs && *options.logprobs < generation.top_logprobs) {
      fields.fail("prompt_logprobs",
                  fmt::format(" is {}, which is not supported to be more than "
                              "logprobs = {}",
                              *top, *options.logprobs),
                  ErrorCode::kUnsupported);
    }
  }
}

// suffix: the text that follows the completion, for models with infill tokens.
Status fill_in(const Llm& llm, std::string_view suffix, std::vector<PromptRequest>& prompts) {
  for (PromptRequest& prompt : prompts) {
    if (!prompt.text.ids.empty()) return invalid_argument("suffix needs a prompt that is a text");
    prompt.text.ids = TRY(infill_prompt(tokenizer_of(llm), prompt.text.text, suffix));
  }
  return {};
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
  PromptRequest prompt = read_sampling(fields, kOpenAiNames, llm.recommended_sampling(), limits,
                                       context.json, context.defaults);
  refuse_thinking_budget(fields);
  prompt.text.add_special_tokens = fields.flag("add_special_tokens", true);
  read_scheduling(fields, prompt.text.options);
  prompt.text.options.adapter = read_adapter(fields, context);
  prompt.text.options.prediction = read_prediction(fields);
  CompletionOptions options{.echo = fields.flag("echo", false),
                            .skip_special_tokens = prompt.text.options.skip_special_tokens,
                            .stream = fields.flag("stream", false),
                            .token_ids = fields.flag("return_token_ids", false)};
  read_logprob_options(fields, limits, prompt.text.options, options);
  options.usage = read_usage_options(fields, options.stream);
  read_best_of(fields, prompt, options);
  std::string suffix = fields.string("suffix", kNewTokensMax);
  if (!suffix.empty() && options.echo) fields.fail("suffix", " and echo are both given");
  refuse_openai_fields(fields);
  fields.accept_only({{"verbosity", R"(["medium"])"},
                      {"web_search_options", "[]"},
                      {"include_reasoning", "[true]"}});
  std::string model = answered_model(fields, context);
  std::string id = "cmpl-" + context.request_id;
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, id);
  plan.stream = options.stream;
  std::vector<PromptRequest> prompts;
  for (GivenPrompt& given : read_prompts(fields, "prompt", prompt.samples, limits)) {
    prompts.push_back(prompt);
    prompts.back().text.text = std::move(given.text);
    prompts.back().text.ids = std::move(given.ids);
  }
  TRY(fields.finish());
  if (!suffix.empty()) {
    if (Status filled = fill_in(llm, suffix, prompts); !filled) {
      return std::unexpected(RequestError(filled.error(), "suffix"));
    }
  }

  std::vector<EchoedPrompt> echoed;
  for (const PromptRequest& one : prompts) {
    TRY(plan.add_prompt(llm, one));
    echoed.push_back({.text = options.echo ? echoed_text(one, tokenizer_of(llm)) : std::string(),
                      .first_token = plan.requests.back().prompt.front(),
                      .ids = options.token_ids ? ids_text(plan.requests.back().prompt) : ""});
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
