// POST /completion (also /completions) and /infill: llama.cpp's native generation API.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "base/packed_json.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/adapters/request.h"
#include "server/error.h"
#include "server/fields/infill.h"
#include "server/generation_times.h"
#include "server/json/writer.h"
#include "server/llamacpp/endpoints.h"
#include "server/llamacpp/format.h"
#include "server/openai/format.h"
#include "server/token_text.h"

namespace banyan {
namespace {

struct LlamaOptions {
  std::string model;
  bool stream = false;
  bool return_tokens = false;
  bool timings_per_token = false;
  bool many = false;           // several prompts or samples: the whole answer is a list
  int64_t context_tokens = 0;  // maximum of prompt and output together
  Json settings;
  std::vector<std::string> prompts;          // detokenized
  std::vector<std::string> response_fields;  // fields to keep in the answer; empty: all
  Json warnings;                             // unenforced parts of a schema; null: none
};

// Finds a nested member: "generation_settings/n_predict". Null if absent.
const Json* find_nested(const Json& object, std::string_view path) {
  const Json* found = &object;
  while (true) {
    size_t end = std::min(path.find('/'), path.size());
    std::string name(path.substr(0, end));
    if (!found->is_object() || !found->contains(name)) return nullptr;
    found = &(*found)[name];
    if (end == path.size()) return found;
    path.remove_prefix(end + 1);
  }
}

const char* stop_type(const TextStream& stream) {
  if (stream.finish() == FinishReason::kLength) return "limit";
  if (stream.finish() != FinishReason::kStop) return "none";
  return stream.matched_text() ? "word" : "eos";
}

class LlamaAnswer final : public Answer {
 public:
  LlamaAnswer(LlamaOptions options, size_t choices, const RequestContext& context)
      : options_(std::move(options)),
        tokenizer_(tokenizer_of(context.llm)),
        states_(choices, State(context.received)) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    state.times.take(event);
    if (event.is_progress()) {
      return append_event(frames, [&](JsonWriter& writer) {
        write_part(writer, choice, state);
        write_progress(writer, choice, event, state.times);
      });
    }
    state.text += delta.text;
    state.has_new_line |= delta.text.find('\n') != delta.text.npos;
    if (delta.counted) {
      state.tokens.push_back(event.token);
      if (with_probabilities()) add_probability(event, state);
    }
    if (!options_.stream) return;
    bool says = !state.text.empty() || !state.probabilities.empty();
    if (says) {
      append_event(frames, [&](JsonWriter& writer) { write_part(writer, choice, state); });
    }
    if (choice.stream.done()) {
      frames += "data: " + last(choice, state) + "\n\n";
    }
  }

  void end(std::span<const Choice>, std::string&) override {}  // the last event has everything

  std::string whole(std::span<const Choice> choices) override {
    std::string body;
    JsonWriter writer(body);
    if (options_.many) writer.begin_list();
    for (const Choice& choice : choices) {
      writer.raw(last(choice, states_[choice.index]));
    }
    if (options_.many) writer.end_list();
    return body;
  }

  void fail(const RequestError& error, std::string& frames) override {
    int status = http_status(error.error.code);
    Json body = llama_error(status, error.error.message, error.code);
    if (error.details.is_object()) body["error"].update(error.details);
    frames += "data: " + dump_json(body) + "\n\n";
  }

 private:
  struct State {
    explicit State(std::chrono::steady_clock::time_point received) : times(received) {}

    std::string text;  // not sent yet
    std::vector<TokenId> tokens;
    std::string probabilities;  // entries, as JSON text
    bool has_new_line = false;
    GenerationTimes times;
  };

  bool with_probabilities() const { return options_.settings["n_probs"] != 0; }

  template <class Fill>
  static void append_event(std::string& frames, Fill fill) {
    frames += "data: ";
    JsonWriter writer(frames);
    writer.begin_object();
    fill(writer);
    writer.end_object();
    frames += "\n\n";
  }

  void write_token(JsonWriter& writer, TokenId id, float logprob) const {
    std::string bytes = tokenizer_ == nullptr ? std::string() : tokenizer_->token_bytes(id);
    writer.begin_object().field("id", id).field("token", valid_text(bytes));
    writer.key("bytes").begin_list();
    for (unsigned char byte : bytes) writer.number(int64_t{byte});
    writer.end_list().key("logprob").logprob(logprob);
  }

  void add_probability(const TokenEvent& event, State& state) const {
    if (!state.probabilities.empty()) state.probabilities += ',';
    std::string entry;
    JsonWriter writer(entry);
    write_token(writer, event.token, event.logprob);
    writer.key("top_logprobs").begin_list();
    for (const TokenLogprob& top : event.top) {
      write_token(writer, top.token, top.logprob);
      writer.end_object();
    }
    writer.end_list().end_object();
    state.probabilities += entry;
  }

  // Writes the members that both kinds of event and the whole answer start with. Clears the held
  // text.
  void write_content(JsonWriter& writer, const Choice& choice, State& state,
                     bool with_tokens) const {
    writer.field("index", choice.index).field("content", std::exchange(state.text, {}));
    writer.key("tokens").begin_list();
    if (with_tokens) {
      for (TokenId id : state.tokens) writer.number(int64_t{id});
    }
    writer.end_list();
    if (options_.stream) state.tokens.clear();
    writer.field("id_slot", -1);
    writer.field("tokens_predicted", choice.stream.output_tokens());
    writer.field("tokens_evaluated", choice.prompt_tokens);
    if (state.probabilities.empty()) return;
    writer.key("completion_probabilities").raw("[" + std::exchange(state.probabilities, {}) + "]");
  }

  // The final event or answer of a choice, reduced to the requested fields.
  std::string last(const Choice& choice, State& state) const {
    std::string text;
    JsonWriter writer(text);
    writer.begin_object();
    write_last(writer, choice, state);
    writer.end_object();
    if (options_.response_fields.empty()) return text;
    Json all = Json::parse(text), kept = Json::object();
    for (const std::string& name : options_.response_fields) {
      if (const Json* value = find_nested(all, name)) kept[name] = *value;
    }
    return dump_json(kept);
  }

  void write_part(JsonWriter& writer, const Choice& choice, State& state) const {
    write_content(writer, choice, state, true);
    writer.field("stop", false);
    if (options_.timings_per_token) write_timings(writer, choice, state.times);
  }

  bool ends_with_context(const Choice& choice) const {
    return choice.stream.finish() == FinishReason::kLength &&
           choice.prompt_tokens + choice.stream.output_tokens() >= options_.context_tokens;
  }

  void write_last(JsonWriter& writer, const Choice& choice, State& state) const {
    const TextStream& stream = choice.stream;
    write_content(writer, choice, state, options_.return_tokens || options_.stream);
    writer.field("stop", true).field("model", options_.model);
    if (!options_.warnings.is_null()) writer.field("warnings", options_.warnings);
    writer.field("generation_settings", options_.settings);
    writer.field("prompt", options_.prompts[choice.prompt]);
    writer.field("has_new_line", state.has_new_line).field("truncated", ends_with_context(choice));
    writer.field("stop_type", stop_type(stream));
    writer.field("stopping_word", stream.matched_text().value_or(""));
    // The last token's state is not computed.
    int64_t computed = std::max<int64_t>(0, stream.output_tokens() - 1);
    writer.field("tokens_cached", choice.prompt_tokens + computed);
    write_timings(writer, choice, state.times);
  }

  const LlamaOptions options_;
  const Tokenizer* tokenizer_;
  std::vector<State> states_;
};

// One prompt: a text, token ids, or a list of both, in which only the first text gets special
// tokens in front.
Result<TextRequest> read_prompt(const Json& prompt, const RequestContext& context) {
  TextRequest read;
  if (prompt.is_string()) {
    read.text = prompt;
    return read;
  }
  if (prompt.is_object()) {
    auto text = prompt.find("prompt_string");
    if (text == prompt.end() || !text->is_string()) {
      return invalid_argument("prompt is {}, as an object it must have a prompt_string",
                              show(prompt));
    }
    if (prompt.contains("multimodal_data") && !prompt["multimodal_data"].empty()) {
      return unsupported("prompt.multimodal_data: only text is supported");
    }
    read.text = *text;
    return read;
  }
  auto tokens_max = as_size(context.llm.config().prompt_tokens_max);
  if (is_packed(prompt)) {
    read.ids = TRY(read_token_ids(prompt, "prompt", tokens_max));
    return read;
  }
  if (!prompt.is_array() || prompt.empty()) {
    return invalid_argument("prompt is {}; it must be a text or a list of token ids and texts",
                            show(prompt));
  }
  if (prompt.size() > tokens_max) {
    return invalid_argument("prompt has {} entries, the limit is {}", prompt.size(), tokens_max);
  }
  for (size_t i = 0; i < prompt.size(); ++i) {
    std::vector<TokenId> ids;
    if (prompt[i].is_string()) {
      const auto& text = prompt[i].get_ref<const std::string&>();
      ids = TRY(context.llm.encode(text, i == 0));
    } else {
      ids = TRY(read_token_ids(Json::array({prompt[i]}), "prompt", 1));
    }
    read.ids.insert(read.ids.end(), ids.begin(), ids.end());
  }
  return read;
}

// A list of ids, or of ids and texts, is one prompt; any other list is one prompt per entry.
bool is_one_prompt(const Json& prompt) {
  return !prompt.is_array() ||
         std::ranges::any_of(prompt, [](const Json& part) { return part.is_number(); });
}

// Reads everything but the prompt.
PromptRequest read_llama_options(RequestFields& fields, const RequestContext& context,
                                 LlamaOptions& options) {
  bool aliased = fields.find("max_tokens") != nullptr;  // n_predict is read, too
  SamplingNames names = {.max_new_tokens = aliased ? "max_tokens" : "n_predict",
                         .min_new_tokens = "min_tokens",
                         .seed = "seed",
                         .max_new_tokens_default = -1,
                         .repetition_penalty = "repeat_penalty",
                         .llama_numbers = true,
                         .no_samplers_is_none = true};
  const EngineConfig& limits = context.llm.config();
  PromptRequest request =
      read_sampling(fields, names, llama_sampling(), limits, context.json, context.defaults);
  if (auto samples = fields.integer_if("n_cmpl", 1, kSamplesMax)) request.samples = *samples;
  read_scheduling(fields, request.text.options);
  request.text.options.adapter = read_adapter(fields, context);
  request.text.options.top_logprobs =
      static_cast<int>(fields.integer("n_probs", 0, 0, limits.top_logprobs_max));
  // A unique key neither reads nor leaves cache entries that other requests could use.
  if (!fields.flag("cache_prompt", true)) request.text.options.extra_key = context.request_id;
  options.model = answered_model(fields, context);
  options.stream = fields.flag("stream", false);
  options.return_tokens = fields.flag("return_tokens", false);
  options.timings_per_token = fields.flag("timings_per_token", false);
  options.response_fields = fields.strings("response_fields", 256, kNameBytesMax);
  request.text.options.prompt_progress = fields.flag("return_progress", false);
  fields.refuse({"post_sampling_probs", "grammar_lazy", "grammar_triggers"});
  fields.accept_only({{"min_keep", "[0]"}});
  constexpr int64_t kIndentMax = 1 << 20, kMillisecondsMax = int64_t{1} << 40;
  request.text.options.indent_min = fields.integer("n_indent", 0, 0, kIndentMax);
  int64_t milliseconds = fields.integer("t_max_predict_ms", -1, -1, kMillisecondsMax);
  request.text.options.line_time_s = 1e-3 * std::max<int64_t>(milliseconds, 0);
  refuse_thinking_budget(fields);
  return request;
}

Parsed<GenerationPlan> plan_prompts(const RequestContext& context, RequestFields& fields,
                                    PromptRequest request, std::vector<TextRequest> prompts,
                                    LlamaOptions options) {
  GenerationPlan plan(context.compiled);
  plan.rids = read_rids(fields, context.request_id);
  plan.stream = options.stream;
  TRY(fields.finish());
  options.context_tokens = context.llm.info().context_length_tokens;
  const Tokenizer* tokenizer = tokenizer_of(context.llm);
  std::vector<TokenId> never;
  if (request.text.options.ignore_eos && tokenizer != nullptr) never = tokenizer->special().eos_ids;
  options.settings = llama_settings(request.text.sampling, request.text.options, never);
  options.settings["stream"] = options.stream;
  for (TextRequest& prompt : prompts) {
    request.text.text = std::move(prompt.text);
    request.text.ids = std::move(prompt.ids);
    TRY(plan.add_prompt(context.llm, request));
    std::span<const TokenId> tokens = plan.requests.back().prompt;
    options.prompts.push_back(tokenizer == nullptr ? "" : tokenizer->decode(tokens).value_or(""));
  }
  TRY(plan.check_rids());
  if (!plan.warnings.empty()) options.warnings = plan.warnings;
  plan.answer = std::make_unique<LlamaAnswer>(std::move(options), plan.choices.size(), context);
  return plan;
}

}  // namespace

Parsed<GenerationPlan> plan_llama_completion(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  LlamaOptions options;
  PromptRequest request = read_llama_options(fields, context, options);
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) fields.fail("prompt", " is missing");
  TRY(fields.finish());
  std::vector<TextRequest> prompts;
  bool one = is_one_prompt(*prompt);
  if (!one && (prompt->empty() || std::ssize(*prompt) > kSequencesMax)) {
    return std::unexpected(RequestError(
        {ErrorCode::kInvalidArgument,
         fmt::format("prompt has {} entries; it must have 1 to {}", prompt->size(), kSequencesMax)},
        "prompt"));
  }
  if (one) prompts.push_back(TRY(read_prompt(*prompt, context)));
  for (size_t i = 0; !one && i < prompt->size(); ++i) {
    prompts.push_back(TRY(read_prompt((*prompt)[i], context)));
  }
  options.many = !one || request.samples > 1;
  return plan_prompts(context, fields, std::move(request), std::move(prompts), std::move(options));
}

namespace {

// [{"filename", "text"}]: further project files, placed in front of the text to infill.
std::vector<InfillFile> read_input_extra(RequestFields& fields) {
  constexpr size_t kFilesMax = 1024;
  std::vector<InfillFile> files;
  const Json* list = fields.find("input_extra");
  if (list == nullptr) return files;
  if (!list->is_array() || list->size() > kFilesMax) {
    fields.fail("input_extra", fmt::format(" is {}; it must be a list of at most {} files",
                                           show(*list), kFilesMax));
    return files;
  }
  for (const Json& entry : *list) {
    RequestFields file(entry, "input_extra.");
    if (file.find("text") == nullptr) file.fail("text", " is missing");
    std::string name = file.string("filename", kNameBytesMax);
    files.push_back({.name = name.empty() ? "tmp" : std::move(name),
                     .text = file.string("text", kNewTokensMax)});
    if (auto done = file.finish(); !done) {
      fields.fail("input_extra", ": " + done.error().error.message);
      break;
    }
  }
  return files;
}

}  // namespace

Parsed<GenerationPlan> plan_infill(const RequestContext& context, const Json& body) {
  RequestFields fields(body);
  LlamaOptions options;
  PromptRequest request = read_llama_options(fields, context, options);
  size_t bytes_max = kNewTokensMax;
  std::vector<InfillFile> files = read_input_extra(fields);
  std::string prefix = fields.string("input_prefix", bytes_max);
  std::string suffix = fields.string("input_suffix", bytes_max);
  prefix += fields.string("prompt", bytes_max);
  TRY(fields.finish());
  std::vector<TextRequest> prompts(1);
  prompts[0].ids = TRY(infill_prompt(tokenizer_of(context.llm), prefix, suffix, files));
  options.many = request.samples > 1;
  return plan_prompts(context, fields, std::move(request), std::move(prompts), std::move(options));
}

void handle_llama_completion(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_llama_completion);
}

void handle_infill(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_infill);
}

}  // namespace banyan
