// POST /generate: SGLang's native endpoint. Streamed text is cumulative, as in SGLang.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/packed_json.h"
#include "base/signed.h"
#include "llm/llm_parts.h"
#include "server/adapters/request.h"
#include "server/generation.h"
#include "server/json/text.h"
#include "server/sglang/endpoints.h"
#include "server/token_text.h"

namespace banyan {
namespace {

// The log-probabilities that a prompt requests.
struct LogprobOptions {
  bool wanted = false;
  bool top = false;
  bool chosen = false;  // those of token_ids_logprob
  bool text = false;    // token texts as well as ids
  // The first token, if its logprob was requested: the engine has none for it.
  std::optional<TokenId> first_token;
};

// The three lists of one side, prompt or output, as the JSON text of their entries.
class LogprobLists {
 public:
  void add_unknown(const Tokenizer* tokenizer, TokenId token, const LogprobOptions& options) {
    separate();
    tokens_ += "[null,";
    append_token(tokenizer, token, options, tokens_);
    top_ += "null";
    chosen_ += "null";
  }

  void add(const Tokenizer* tokenizer, const TokenEvent& event, const LogprobOptions& options) {
    separate();
    append_entry(tokenizer, {event.token, event.logprob}, options, tokens_);
    if (options.top) append_list(tokenizer, event.top, options, top_);
    if (options.chosen) append_list(tokenizer, event.chosen, options, chosen_);
    ++count_;
  }

  int64_t count() const { return count_; }

  void append(std::string_view side, const LogprobOptions& options, std::string& out) const {
    auto list = [&](const char* name, const std::string& entries) {
      fmt::format_to(std::back_inserter(out), R"(,"{}_{}":[{}])", side, name, entries);
    };
    list("token_logprobs", tokens_);
    if (options.top) list("top_logprobs", top_);
    if (options.chosen) list("token_ids_logprobs", chosen_);
  }

 private:
  void separate() {
    if (tokens_.empty()) return;
    for (std::string* list : {&tokens_, &top_, &chosen_}) *list += ',';
  }

  static void append_token(const Tokenizer* tokenizer, TokenId token, const LogprobOptions& options,
                           std::string& out) {
    append_integer(out, token);
    out += ',';
    if (options.text) {
      append_string(out, token_text(tokenizer, token));
    } else {
      out += "null";
    }
    out += ']';
  }

  static void append_entry(const Tokenizer* tokenizer, TokenLogprob entry,
                           const LogprobOptions& options, std::string& out) {
    out += '[';
    append_logprob(out, entry.logprob);
    out += ',';
    append_token(tokenizer, entry.token, options, out);
  }

  static void append_list(const Tokenizer* tokenizer, std::span<const TokenLogprob> entries,
                          const LogprobOptions& options, std::string& out) {
    out += '[';
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out += ',';
      append_entry(tokenizer, entries[i], options, out);
    }
    out += ']';
  }

  std::string tokens_, top_, chosen_;
  int64_t count_ = 0;
};

void append_finish_reason(const Choice& choice, std::string& out) {
  const TextStream& stream = choice.stream;
  switch (stream.finish()) {
    case FinishReason::kNone:
      out += "null";
      return;
    case FinishReason::kStop:
      out += R"({"type":"stop","matched":)";
      if (stream.matched_text()) {
        append_string(out, *stream.matched_text());
      } else {
        append_integer(out, stream.matched_token().value_or(-1));
      }
      out += '}';
      return;
    case FinishReason::kLength:
      fmt::format_to(std::back_inserter(out), R"({{"type":"length","length":{}}})",
                     choice.max_new_tokens);
      return;
    default:
      fmt::format_to(std::back_inserter(out),
                     R"({{"type":"abort","message":"{}","status_code":null,"err_type":null}})",
                     stream.finish() == FinishReason::kTimeout ? "Deadline exceeded" : "Aborted");
  }
}

class GenerateAnswer final : public Answer {
 public:
  GenerateAnswer(std::vector<std::string> ids, std::vector<LogprobOptions> options, size_t samples,
                 bool stream, const RequestContext& context)
      : ids_(std::move(ids)),
        options_(std::move(options)),
        stream_(stream),
        tokenizer_(tokenizer_of(context.llm)),
        received_(context.received),
        states_(options_.size() * samples) {}

  void take(const Choice& choice, const TokenEvent& event, TextDelta delta,
            std::string& frames) override {
    State& state = states_[choice.index];
    append_escaped(state.text, delta.text);
    if (delta.counted) {
      if (!state.ids.empty()) state.ids += ',';
      append_integer(state.ids, event.token);
    }
    take_logprobs(choice, event, delta.counted, state);
    bool done = choice.stream.done();
    if (done) state.latency_s = seconds_since_received();
    state.unsaid |= !delta.text.empty();
    if (!stream_ || !(done || (state.unsaid && !choice.behind))) return;
    state.unsaid = false;
    frames += "data: ";
    append_choice(choice, states_.size() > 1, frames);
    frames += "\n\n";
  }

  void end(std::span<const Choice>, std::string& frames) override { frames += "data: [DONE]\n\n"; }

  std::string whole(std::span<const Choice> choices) override {
    std::string body;
    for (const Choice& choice : choices) {
      if (choice.index > 0) body += ',';
      append_choice(choice, false, body);
    }
    return one_of_one() ? body : "[" + body + "]";
  }

  // Unenforced parts of the grammars.
  void set_warnings(const std::vector<std::string>& warnings) {
    if (!warnings.empty()) warnings_ = R"(,"warnings":)" + Json(warnings).dump();
  }
  // A batch is answered with a list, even for one prompt.
  void set_batch() { batch_ = true; }

 private:
  struct State {
    std::string text;  // escaped
    std::string ids;
    LogprobLists input, output;
    bool begun = false;
    bool unsaid = false;  // text that no event has carried yet
    double latency_s = 0;
  };

  bool one_of_one() const { return !batch_ && states_.size() == 1; }

  double seconds_since_received() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - received_).count();
  }

  void take_logprobs(const Choice& choice, const TokenEvent& event, bool counted, State& state) {
    const LogprobOptions& options = options_[choice.prompt];
    if (!options.wanted) return;
    if (!std::exchange(state.begun, true) && options.first_token) {
      state.input.add_unknown(tokenizer_, *options.first_token, options);
    }
    if (event.from_prompt) {
      state.input.add(tokenizer_, event, options);
    } else if (counted) {
      state.output.add(tokenizer_, event, options);
    }
  }

  void append_choice(const Choice& choice, bool with_index, std::string& out) const {
    const State& state = states_[choice.index];
    const LogprobOptions& options = options_[choice.prompt];
    out += R"({"text":")";
    out += state.text;
    out += R"(","output_ids":[)";
    out += state.ids;
    out += R"(],"meta_info":{"id":)";
    append_string(out, ids_[ids_.size() > 1 ? choice.index : 0]);
    out += R"(,"finish_reason":)";
    append_finish_reason(choice, out);
    fmt::format_to(std::back_inserter(out),
                   R"(,"prompt_tokens":{},"weight_version":"default","num_retractions":0,)"
                   R"("completion_tokens":{},"cached_tokens":{})",
                   choice.prompt_tokens, choice.stream.output_tokens(),
                   choice.stream.cached_tokens());
    append_speculation(choice.stream, out);
    out += warnings_;
    if (options.wanted) {
      state.input.append("input", options, out);
      state.output.append("output", options, out);
      out += R"(,"output_token_logprobs_length":)";
      append_integer(out, state.output.count());
    }
    if (choice.stream.done()) {
      fmt::format_to(std::back_inserter(out), R"(,"e2e_latency":{:.6f})", state.latency_s);
    }
    out += '}';
    if (with_index) {
      out += R"(,"index":)";
      append_integer(out, static_cast<int64_t>(choice.index));
    }
    out += '}';
  }

  // Under SGLang's names; nothing without drafts.
  static void append_speculation(const TextStream& stream, std::string& out) {
    if (stream.drafts() == 0) return;
    double drafts = stream.drafts();
    double proposed = stream.draft_tokens();
    double accepted = stream.accepted_draft_tokens();
    fmt::format_to(std::back_inserter(out),
                   R"(,"spec_verify_ct":{},"spec_draft_token_num":{},"spec_accept_token_num":{},)"
                   R"("spec_accept_rate":{:.4f},"spec_accept_length":{:.4f})",
                   stream.drafts(), stream.draft_tokens(), stream.accepted_draft_tokens(),
                   accepted / proposed, 1 + accepted / drafts);
  }

  const std::vector<std::string> ids_;         // one, or one per choice
  const std::vector<LogprobOptions> options_;  // per prompt
  const bool stream_;
  const Tokenizer* tokenizer_;
  const std::chrono::steady_clock::time_point received_;
  bool batch_ = false;
  std::string warnings_;  // as JSON text
  std::vector<State> states_;
};

// One prompt's fields of the body: its entry of each field that may be a list.
struct PromptFields {
  Json options = Json::object();  // return_logprob, ...
  Json sampling = Json::object();
};

constexpr std::array<const char*, 4> kPerPrompt = {"return_logprob", "logprob_start_len",
                                                   "top_logprobs_num", "token_ids_logprob"};

class Reader {
 public:
  Reader(const RequestContext& context, const Json& body) : context_(context), fields_(body) {}

  Parsed<GenerationPlan> read();

 private:
  void read_prompts();
  void add_prompts(const char* name, bool (*is_one)(const Json&));
  PromptFields share_of(size_t prompt);
  Parsed<std::pair<PromptRequest, LogprobOptions>> read_prompt(size_t prompt);
  std::vector<std::string> answer_ids(const GenerationPlan& plan) const;

  const RequestContext& context_;
  RequestFields fields_;
  std::vector<TextRequest> prompts_;
  bool batch_ = false;
};

bool is_text(const Json& value) {
  return value.is_string();
}

bool is_ids(const Json& value) {
  if (is_packed(value)) return true;
  return value.is_array() &&
         (value.empty() || !(value.front().is_array() || is_packed(value.front())));
}

void Reader::add_prompts(const char* name, bool (*is_one)(const Json&)) {
  const Json& value = *fields_.find(name);
  batch_ = !is_one(value);
  if (batch_ && (!value.is_array() || value.empty() || std::ssize(value) > kSequencesMax)) {
    return fields_.fail(name, fmt::format(" is {}; it must be one prompt or 1 to {} of them",
                                          show(value), kSequencesMax));
  }
  auto add = [&](const Json& prompt) {
    TextRequest& request = prompts_.emplace_back();
    if (prompt.is_string() && is_one == is_text) {
      request.text = prompt;
      return;
    }
    if (is_one == is_text) return fields_.fail(name, ": " + show(prompt) + " is not a text");
    auto ids = read_token_ids(prompt, "", as_size(context_.llm.config().prompt_tokens_max));
    if (!ids) return fields_.fail(name, ids.error().message);
    if (ids->empty()) return fields_.fail(name, " has a prompt without tokens");
    request.ids = std::move(*ids);
  };
  if (!batch_) return add(value);
  for (const Json& prompt : value) add(prompt);
}

void Reader::read_prompts() {
  bool text = fields_.find("text") != nullptr, ids = fields_.find("input_ids") != nullptr;
  if (text == ids) {
    return fields_.fail("text", text ? " and input_ids are both given; one of them is the prompt"
                                     : " or input_ids must be given");
  }
  if (text) {
    add_prompts("text", is_text);
  } else {
    add_prompts("input_ids", is_ids);
  }
}

// In a batch, a field's list has one entry per prompt. token_ids_logprob is itself a list.
PromptFields Reader::share_of(size_t prompt) {
  PromptFields share;
  auto entry = [&](const char* name, const Json& value, bool is_list) -> const Json& {
    if (!is_list) return value;
    if (batch_ && value.size() == prompts_.size()) return value[prompt];
    fields_.fail(name, fmt::format(" has {} entries for {} prompts", value.size(),
                                   batch_ ? prompts_.size() : size_t{1}));
    return value;
  };
  for (const char* name : kPerPrompt) {
    const Json* value = fields_.find(name);
    if (value == nullptr) continue;
    bool nested = value->is_array() && std::ranges::any_of(*value, [](const Json& one) {
                    return one.is_array() || one.is_null();
                  });
    bool is_list = std::string_view(name) == "token_ids_logprob" ? nested : value->is_array();
    share.options[name] = entry(name, *value, is_list);
  }
  if (const Json* value = fields_.find("sampling_params")) {
    share.sampling = entry("sampling_params", *value, value->is_array());
  }
  return share;
}

Parsed<std::pair<PromptRequest, LogprobOptions>> Reader::read_prompt(size_t prompt) {
  const EngineConfig& limits = context_.llm.config();
  PromptFields share = share_of(prompt);
  TRY(fields_.finish());
  RequestFields sampling(share.sampling, "sampling_params.");
  SamplingNames names = kSglangNames;
  // Null means as many as the context holds.
  bool unlimited =
      share.sampling.is_object() && share.sampling.value("max_new_tokens", Json(0)).is_null();
  if (unlimited) names.max_new_tokens_default = kNewTokensMax;
  PromptRequest request =
      read_sampling(sampling, names, {}, limits, context_.json, context_.defaults);
  refuse_thinking_budget(sampling);
  TRY(sampling.finish());
  request.text.text = std::move(prompts_[prompt].text);
  request.text.ids = std::move(prompts_[prompt].ids);
  read_scheduling(fields_, request.text.options);
  request.text.options.adapter =
      read_adapter_of(fields_, context_, prompt, batch_ ? prompts_.size() : 0);

  RequestFields fields(share.options);
  LogprobOptions options{.wanted = fields.flag("return_logprob", false),
                         .text = fields_.flag("return_text_in_logprobs", false)};
  int64_t begin = fields.integer("logprob_start_len", -1, -1, limits.prompt_tokens_max);
  auto top = fields.integer("top_logprobs_num", 0, 0, limits.top_logprobs_max);
  std::vector<TokenId> chosen =
      fields.token_ids("token_ids_logprob", as_size(limits.top_logprobs_max));
  TRY(fields.finish());
  if (options.wanted) {
    options.top = top > 0;
    options.chosen = !chosen.empty();
    request.text.options.top_logprobs = static_cast<int>(top);
    request.text.options.logprob_token_ids = std::move(chosen);
    // Without new tokens only the prompt's can be meant.
    if (begin < 0 && request.text.options.max_new_tokens == 0) begin = 0;
    if (begin >= 0) request.text.options.prompt_logprobs_begin = begin;
  }
  return std::pair(std::move(request), options);
}

// `id` of each choice: the request's, or in a batch the prompt's own or a numbered one.
std::vector<std::string> Reader::answer_ids(const GenerationPlan& plan) const {
  if (plan.choices.size() == 1) return plan.rids;
  std::vector<std::string> ids;
  for (const Choice& choice : plan.choices) {
    bool own = plan.rids.size() > 1;
    const std::string& rid = plan.rids[own ? choice.prompt : 0];
    bool numbered = !own || plan.samples > 1;
    ids.push_back(numbered ? fmt::format("{}_{}", rid, choice.index) : rid);
  }
  return ids;
}

Parsed<GenerationPlan> Reader::read() {
  GenerationPlan plan(context_.compiled);
  plan.stream = fields_.flag("stream", false);
  plan.rids = fields_.strings("rid", kSequencesMax, kNameBytesMax);
  if (plan.rids.empty()) plan.rids = {context_.request_id};
  fields_.refuse_unsupported();
  fields_.refuse({"return_flat_raw_top_logprobs", "return_flat_raw_output_top_logprobs"});
  read_prompts();
  TRY(fields_.finish());

  std::vector<LogprobOptions> options;
  int64_t samples = 0;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    auto [request, logprobs] = TRY(read_prompt(i));
    if (i > 0 && request.samples != samples) {
      fields_.fail("sampling_params", ": n must be the same for all prompts");
    }
    samples = request.samples;
    if (std::ssize(prompts_) * samples > kSequencesMax) {
      fields_.fail("sampling_params", fmt::format(": {} prompts times n = {}; the limit is {}",
                                                  prompts_.size(), samples, kSequencesMax));
    }
    TRY(fields_.finish());
    TRY(plan.add_prompt(context_.llm, request));
    if (request.text.options.prompt_logprobs_begin == 0) {
      logprobs.first_token = plan.requests.back().prompt.front();
    }
    options.push_back(logprobs);
  }
  TRY(plan.check_rids());
  auto answer = std::make_unique<GenerateAnswer>(answer_ids(plan), std::move(options), plan.samples,
                                                 plan.stream, context_);
  if (batch_) answer->set_batch();
  answer->set_warnings(plan.warnings);
  plan.answer = std::move(answer);
  return plan;
}

}  // namespace

Parsed<GenerationPlan> plan_generate(const RequestContext& context, const Json& body) {
  return Reader(context, body).read();
}

void handle_generate(Service& service, HttpRequest request, ResponderPtr responder) {
  generate(service, std::move(request), std::move(responder), plan_generate);
}

}  // namespace banyan
