#include "server/fields/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "llm/llm_parts.h"
#include "server/fields/constraint.h"

namespace banyan {
namespace {

constexpr float kBiasMax = 100;

uint64_t random_seed() {
  thread_local std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// {"50256": -100}: token ids as OpenAI's clients write them.
void read_logit_bias(RequestFields& fields, const EngineConfig& limits, SamplingParams& sampling) {
  const Json* bias = fields.find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) {
    return fields.fail("logit_bias", fmt::format(" is {}, it must be an object of token ids and "
                                                 "numbers",
                                                 show(*bias)));
  }
  if (static_cast<int64_t>(bias->size()) > limits.logit_bias_max) {
    return fields.fail("logit_bias", fmt::format(" has {} entries, the limit is {}", bias->size(),
                                                 limits.logit_bias_max));
  }
  for (const auto& [name, value] : bias->items()) {
    TokenId id = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || id < 0) {
      return fields.fail("logit_bias", fmt::format(": {} is not a token id", quote(name)));
    }
    double number = value.is_number() ? value.get<double>() : kBiasMax * 2;
    if (number < -kBiasMax || number > kBiasMax) {
      return fields.fail("logit_bias",
                         fmt::format(" of {} is {}, it must be a number from {} to {}", id,
                                     show(value), -kBiasMax, kBiasMax));
    }
    sampling.logit_bias.emplace_back(id, static_cast<float>(number));
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
  s.frequency_penalty =
      fields.number("frequency_penalty", s.frequency_penalty, -kPenaltyMax, kPenaltyMax);
  s.presence_penalty =
      fields.number("presence_penalty", s.presence_penalty, -kPenaltyMax, kPenaltyMax);
  s.repetition_penalty =
      fields.number("repetition_penalty", s.repetition_penalty, kRepetitionMin, kRepetitionMax);
  read_logit_bias(fields, limits, s);
  std::optional<uint64_t> seed = fields.bits_if(names.seed);
  s.seed = seed ? *seed : random_seed();
  return s;
}

std::unexpected<RequestError> too_long(std::string message) {
  return std::unexpected(RequestError({ErrorCode::kInvalidArgument, std::move(message)}, "prompt",
                                      "context_length_exceeded"));
}

}  // namespace

PromptRequest read_sampling(RequestFields& fields, const SamplingNames& names,
                            const SamplingParams& defaults, const EngineConfig& limits,
                            const JsonSchemaOptions& json) {
  PromptRequest request;
  request.text.sampling = read_params(fields, names, defaults, limits);
  request.samples = fields.integer("n", 1, 1, kSamplesMax);
  GenerationOptions& options = request.text.options;
  options.max_new_tokens =
      fields.integer(names.max_new_tokens, names.max_new_tokens_default, 0, kNewTokensMax);
  options.min_new_tokens = fields.integer(names.min_new_tokens, 0, 0, kNewTokensMax);
  options.stop = fields.strings("stop", static_cast<size_t>(limits.stop_strings_max),
                                static_cast<size_t>(limits.stop_string_bytes_max));
  options.stop_token_ids =
      fields.token_ids("stop_token_ids", static_cast<size_t>(limits.stop_token_ids_max));
  options.ignore_eos = fields.flag("ignore_eos", false);
  options.skip_special_tokens = fields.flag("skip_special_tokens", true);
  options.keep_stop =
      fields.flag("no_stop_trim", false) || fields.flag("include_stop_str_in_output", false);
  if (std::optional<Constraint> constraint = read_constraint(fields, json)) {
    options.grammar = std::move(constraint->grammar);
    request.grammar_field = std::move(constraint->field);
  }
  // The rest that would change the output.
  fields.refuse({"stop_regex", "custom_params", "custom_logit_processor", "bad_words",
                 "allowed_token_ids", "use_beam_search", "watermark", "thinking_token_budget",
                 "samplers", "adaptive_target"});
  // llama.cpp's samplers that are not here, and what says that they are off.
  fields.accept_only({{"mirostat", "[0]"},
                      {"dry_multiplier", "[0]"},
                      {"xtc_probability", "[0]"},
                      {"typical_p", "[1]"},
                      {"dynatemp_range", "[0]"},
                      {"top_n_sigma", "[-1, 0]"},
                      {"repeat_penalty", "[1]"},
                      {"length_penalty", "[1]"},
                      {"early_stopping", "[false]"},
                      {"spaces_between_special_tokens", "[true]"}});
  return request;
}

void read_scheduling(RequestFields& fields, GenerationOptions& options) {
  constexpr int64_t kPriorityMax = int64_t{1} << 30;
  options.priority = static_cast<int>(fields.integer("priority", 0, -kPriorityMax, kPriorityMax));
  options.cache_salt = fields.string("cache_salt", kNameBytesMax);
  options.extra_key = fields.string("extra_key", kNameBytesMax);
  options.adapter = fields.string("lora_path", kNameBytesMax);
}

Parsed<GenerateRequest> to_engine(const Llm& llm, const PromptRequest& request,
                                  std::shared_ptr<const CompiledGrammar> compiled) {
  GenerateRequest tokens = TRY(to_tokens(llm, request.text, std::move(compiled)));
  const EngineInfo& info = llm.info();
  int64_t context = std::min(info.context_length_tokens, info.total_tokens_max);
  if (tokens.prompt.empty()) {
    return std::unexpected(
        RequestError({ErrorCode::kInvalidArgument, "the prompt has no tokens"}, "prompt"));
  }
  auto prompt = static_cast<int64_t>(tokens.prompt.size());
  GenerationOptions& options = tokens.options;
  if (prompt + std::min<int64_t>(options.max_new_tokens, 1) > context) {
    return too_long(
        fmt::format("the prompt has {} tokens, the context length is {}", prompt, context));
  }
  // What does not fit ends there, as in a process of one's own.
  int64_t room = context - prompt;
  if (options.min_new_tokens <= options.max_new_tokens) {
    options.min_new_tokens = std::min(options.min_new_tokens, room);
  }
  options.max_new_tokens = std::min(options.max_new_tokens, room);
  return tokens;
}

}  // namespace banyan
