#include "server/fields/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <random>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "base/signed.h"
#include "llm/dry_breakers.h"
#include "llm/llm_parts.h"
#include "llm/stop_regex.h"
#include "server/fields/constraint.h"
#include "server/fields/samplers.h"

namespace banyan {
namespace {

constexpr float kBiasMax = 100;
constexpr size_t kBiasTextBytesMax = 256;
constexpr int64_t kWindowMax = 1 << 30;  // of penalties, in tokens
constexpr std::array kThinkingBudgetNames = {"thinking_token_budget", "reasoning_budget_tokens",
                                             "thinking_budget_tokens"};

uint64_t random_seed() {
  thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

void add_logit_bias(RequestFields& fields, const std::string& name, const Json& value,
                    PromptRequest& request) {
  TokenId id = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  bool is_id = error == std::errc() && end == name.data() + name.size();
  if (name.empty() || name.size() > kBiasTextBytesMax || (is_id && id < 0)) {
    return fields.fail("logit_bias",
                       fmt::format(": {} is neither a token id nor a text of 1 to {} bytes",
                                   quote(name), kBiasTextBytesMax));
  }
  double number = value.is_number() ? value.get<double>() : kBiasMax * 2;
  if (number < -kBiasMax || number > kBiasMax) {
    return fields.fail("logit_bias", fmt::format(" of {} is {}; it must be a number from {} to {}",
                                                 name, show(value), -kBiasMax, kBiasMax));
  }
  if (is_id) {
    request.text.sampling.logit_bias.emplace_back(id, number);
  } else {
    request.text_bias.emplace_back(name, number);
  }
}

// {"50256": -100}: token ids as in OpenAI's clients. Or llama.cpp's [[50256, -100]], where false
// means minus infinity. llama.cpp also accepts texts instead of ids.
void read_logit_bias(RequestFields& fields, const EngineConfig& limits, PromptRequest& request) {
  const Json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_structured()) {
    return fields.fail("logit_bias", fmt::format(" is {}; it must be an object of token ids and "
                                                 "numbers",
                                                 show(*bias)));
  }
  if (std::ssize(*bias) > limits.logit_bias_max) {
    return fields.fail("logit_bias", fmt::format(" has {} entries, the limit is {}", bias->size(),
                                                 limits.logit_bias_max));
  }
  auto add = [&](const std::string& name, const Json& value) {
    add_logit_bias(fields, name, value == false ? Json(-kBiasMax) : value, request);
  };
  if (bias->is_object()) {
    for (const auto& [name, value] : bias->items()) add(name, value);
    return;
  }
  for (const Json& pair : *bias) {
    if (!pair.is_array() || pair.size() != 2) {
      return fields.fail("logit_bias", fmt::format(": {} is not [token id, number]", show(pair)));
    }
    std::optional<int64_t> id = as_integer(pair[0]);
    std::string name = id ? std::to_string(*id) : pair[0].dump();
    add(pair[0].is_string() ? pair[0].get<std::string>() : name, pair[1]);
  }
}

// llama.cpp's DRY parameters.
void read_dry(RequestFields& fields, const EngineConfig& limits, SamplingParams& s) {
  constexpr float kMultiplierMax = 100, kBaseMax = 100;
  s.dry_multiplier = fields.number("dry_multiplier", s.dry_multiplier, 0, kMultiplierMax);
  s.dry_base = fields.number("dry_base", s.dry_base, 1, kBaseMax);
  s.dry_allowed_length =
      static_cast<int>(fields.integer("dry_allowed_length", s.dry_allowed_length, 0, kWindowMax));
  s.dry_penalty_last_n =
      static_cast<int>(fields.integer("dry_penalty_last_n", s.dry_penalty_last_n, -1, kWindowMax));
  if (fields.find("dry_sequence_breakers") == nullptr) return;
  s.dry_sequence_breakers = fields.strings("dry_sequence_breakers",
                                           as_size(limits.stop_strings_max), kDryBreakerBytesMax);
}

// Which of two names of an option is given: `usual` if neither is. Both are an error.
const char* one_of_names(RequestFields& fields, const char* usual, const char* a, const char* b) {
  bool has_a = fields.find(a) != nullptr, has_b = fields.find(b) != nullptr;
  if (has_a && has_b && *fields.find(a) != *fields.find(b)) {
    fields.fail(b, fmt::format(" and {} are both given, and differ; give only one of them", a));
  }
  if (has_a == has_b) return usual;
  return has_a ? a : b;
}

// The limits of an output, the longest also under llama.cpp's name.
void read_lengths(RequestFields& fields, const SamplingNames& names, const RequestDefaults& silent,
                  GenerationOptions& options) {
  const char* max_name =
      one_of_names(fields, names.max_new_tokens, names.max_new_tokens, "n_predict");
  bool llama = names.llama_numbers || max_name == std::string_view("n_predict");
  options.max_new_tokens =
      fields.integer(max_name, silent.max_new_tokens.value_or(names.max_new_tokens_default),
                     llama ? -2 : 0, kNewTokensMax);
  if (options.max_new_tokens < 0) options.max_new_tokens = kNewTokensMax;  // also the defaults' -1
  options.min_new_tokens = fields.integer(names.min_new_tokens, 0, 0, kNewTokensMax);
  if (options.min_new_tokens > options.max_new_tokens) {
    fields.fail(names.min_new_tokens,
                fmt::format(" is {}, more than {} = {}", options.min_new_tokens, max_name,
                            options.max_new_tokens));
  }
}

SamplingParams read_params(RequestFields& fields, const SamplingNames& names,
                           const SamplingParams& defaults, const EngineConfig& limits) {
  constexpr float kTemperatureMax = 100, kTopPMin = 1e-6f, kPenaltyMax = 2, kRepetitionMin = 0.01f,
                  kRepetitionMax = 100;
  SamplingParams s = defaults;
  s.temperature = fields.number("temperature", s.temperature, 0, kTemperatureMax);
  s.top_p = fields.number("top_p", s.top_p, kTopPMin, 1);
  int64_t top_k = fields.integer("top_k", s.top_k, -1, 1 << 30);
  s.top_k = static_cast<int>(std::max<int64_t>(top_k, 0));  // -1 also means all
  s.min_p = fields.number("min_p", s.min_p, 0, 1);
  s.typical_p = fields.number("typical_p", s.typical_p, kTopPMin, 1);
  s.xtc_probability = fields.number("xtc_probability", s.xtc_probability, 0, 1);
  s.xtc_threshold = fields.number("xtc_threshold", s.xtc_threshold, 0, 1);
  s.frequency_penalty =
      fields.number("frequency_penalty", s.frequency_penalty, -kPenaltyMax, kPenaltyMax);
  s.presence_penalty =
      fields.number("presence_penalty", s.presence_penalty, -kPenaltyMax, kPenaltyMax);
  s.repetition_penalty = fields.number(
      one_of_names(fields, names.repetition_penalty, "repetition_penalty", "repeat_penalty"),
      s.repetition_penalty, kRepetitionMin, kRepetitionMax);
  s.repeat_last_n =
      static_cast<int>(fields.integer("repeat_last_n", s.repeat_last_n, -1, kWindowMax));
  read_dry(fields, limits, s);
  return s;
}

uint64_t read_seed(RequestFields& fields, const SamplingNames& names,
                   const RequestDefaults& silent) {
  std::optional<uint64_t> seed = fields.bits_if(names.seed);
  bool given = seed && !(names.llama_numbers && *seed == ~uint64_t{0});
  if (given) return *seed;
  if (silent.seed && !seed) return *silent.seed;
  return silent.drawn_seed ? *silent.drawn_seed : random_seed();
}

// Includes the numbers under llama.cpp's names, which its clients read.
std::unexpected<RequestError> too_long(int64_t prompt_tokens, int64_t context_tokens) {
  RequestError error({ErrorCode::kInvalidArgument,
                      fmt::format("the prompt has {} tokens, which exceeds the available context "
                                  "size of {}",
                                  prompt_tokens, context_tokens)},
                     "prompt", "context_length_exceeded");
  error.details = {{"n_prompt_tokens", prompt_tokens}, {"n_ctx", context_tokens}};
  return std::unexpected(std::move(error));
}

// Applies a text's bias to each of its tokens.
Status add_text_bias(const Llm& llm, const PromptRequest& request, SamplingParams& sampling) {
  const Tokenizer* tokenizer = tokenizer_of(llm);
  for (const auto& [text, bias] : request.text_bias) {
    if (tokenizer == nullptr) {
      return unsupported("logit_bias of {} needs a tokenizer; the model has none", quote(text));
    }
    constexpr EncodeOptions kAsText = {.add_special_tokens = false, .parse_special = false};
    for (TokenId id : TRY(tokenizer->encode(text, kAsText))) {
      sampling.logit_bias.emplace_back(id, bias);
    }
  }
  return {};
}

}  // namespace

std::optional<int64_t> read_thinking_budget(RequestFields& fields, const RequestDefaults& silent) {
  std::optional<int64_t> budget = silent.thinking_tokens_max;
  for (const char* name : kThinkingBudgetNames) {
    if (auto given = fields.integer_if(name, -1, kNewTokensMax)) budget = given;
  }
  if (budget && *budget < 0) budget.reset();
  return budget;
}

void refuse_thinking_budget(RequestFields& fields) {
  for (const char* name : kThinkingBudgetNames) {
    const Json* budget = fields.find(name);
    if (budget == nullptr || *budget == -1) continue;
    fields.fail(name, " is only supported in chats, where reasoning is marked",
                ErrorCode::kUnsupported);
  }
}

PromptRequest read_sampling(RequestFields& fields, const SamplingNames& names,
                            const SamplingParams& defaults, const EngineConfig& limits,
                            const JsonSchemaOptions& json, const RequestDefaults& silent) {
  PromptRequest request;
  request.text.sampling = read_params(fields, names, silent.apply(defaults), limits);
  const Json* samplers = fields.find("samplers");
  bool by_default = samplers != nullptr && *samplers == Json::array();
  if (!by_default || names.no_samplers_is_none) read_samplers(fields, request.text.sampling);
  request.text.sampling.seed = read_seed(fields, names, silent);
  read_logit_bias(fields, limits, request);
  request.samples = fields.integer("n", 1, 1, kSamplesMax);
  request.thinking_tokens_max = read_thinking_budget(fields, silent);
  GenerationOptions& options = request.text.options;
  read_lengths(fields, names, silent, options);
  options.stop = fields.strings(names.stop, as_size(limits.stop_strings_max),
                                as_size(limits.stop_string_bytes_max));
  options.stop_regex = fields.strings("stop_regex", kStopRegexesMax, kStopRegexBytesMax);
  options.stop_token_ids = fields.token_ids("stop_token_ids", as_size(limits.stop_token_ids_max));
  options.ignore_eos = fields.flag("ignore_eos", false);
  options.skip_special_tokens = fields.flag("skip_special_tokens", true);
  options.keep_stop =
      fields.flag("no_stop_trim", false) || fields.flag("include_stop_str_in_output", false);
  if (std::optional<Constraint> constraint = read_constraint(fields, json)) {
    options.grammar = std::move(constraint->grammar);
    request.grammar_field = std::move(constraint->field);
  }
  request.tokens = read_token_wishes(fields);
  // Refuse other fields that would change the output.
  fields.refuse_unsupported();
  fields.refuse({"use_beam_search", "watermark", "adaptive_target"});
  // llama.cpp samplers that are not supported, with their "off" values.
  fields.accept_only({{"mirostat", "[0]"},
                      {"dynatemp_range", "[0]"},
                      {"top_n_sigma", "[-1, 0]"},
                      {"length_penalty", "[1]"},
                      {"early_stopping", "[false]"},
                      {"spaces_between_special_tokens", "[true]"}});
  return request;
}

void read_scheduling(RequestFields& fields, GenerationOptions& options) {
  constexpr int64_t kPriorityMax = int64_t{1} << 30, kDraftTokensMax = 1024;
  options.priority = static_cast<int>(fields.integer("priority", 0, -kPriorityMax, kPriorityMax));
  options.cache_salt = fields.string("cache_salt", kNameBytesMax);
  options.extra_key = fields.string("extra_key", kNameBytesMax);
  // The second is llama.cpp's name; the dot is part of the key.
  for (const char* name : {"draft_tokens_max", "speculative.n_max"}) {
    if (auto drafts = fields.integer_if(name, 0, kDraftTokensMax)) {
      options.draft_tokens_max = static_cast<int>(*drafts);
    }
  }
  std::string drafter = fields.string("speculation", kNameBytesMax);
  if (drafter == "none") {
    options.draft_tokens_max = 0;
  } else if (drafter != "auto") {
    options.drafter = std::move(drafter);
  }
}

Parsed<GenerateRequest> to_engine(const Llm& llm, const PromptRequest& request,
                                  std::shared_ptr<const CompiledGrammar> compiled) {
  GenerateRequest tokens = TRY(to_tokens(llm, request.text, std::move(compiled)));
  TRY(add_text_bias(llm, request, tokens.sampling));
  const EngineInfo& info = llm.info();
  int64_t context = std::min(info.context_length_tokens, info.total_tokens_max);
  if (tokens.prompt.empty()) {
    return std::unexpected(
        RequestError({ErrorCode::kInvalidArgument, "the prompt has no tokens"}, "prompt"));
  }
  auto prompt = std::ssize(tokens.prompt);
  GenerationOptions& options = tokens.options;
  if (prompt + std::min<int64_t>(options.max_new_tokens, 1) > context) {
    return too_long(prompt, context);
  }
  // Output that does not fit ends with the context, as in a local run.
  int64_t room = context - prompt;
  if (options.min_new_tokens <= options.max_new_tokens) {
    options.min_new_tokens = std::min(options.min_new_tokens, room);
  }
  options.max_new_tokens = std::min(options.max_new_tokens, room);
  return tokens;
}

}  // namespace banyan
