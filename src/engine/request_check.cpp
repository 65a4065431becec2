#include "engine/request_check.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quote.h"
#include "engine/drafters/drafter.h"

namespace banyan {
namespace {

constexpr int64_t kNewTokensMax = int64_t{1} << 31;  // the context ends long before
constexpr double kSecondsMax = 1e9;

Status check_tokens(std::span<const TokenId> tokens, int64_t vocabulary, std::string_view what) {
  for (TokenId token : tokens) {
    if (token < 0 || token >= vocabulary) {
      return invalid_argument("{}: token {} is outside the vocabulary of {} tokens", what, token,
                              vocabulary);
    }
  }
  return {};
}

Status check_limit(std::string_view what, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return {};
  return invalid_argument("{} is {}; it must be between 0 and {}", what, value, max);
}

Status check_supported(const GenerationOptions& options, const EngineConfig& config) {
  const char* text = options.grammar               ? "a grammar"
                     : !options.stop.empty()       ? "stop strings"
                     : !options.stop_regex.empty() ? "stop regexes"
                     : !options.prediction.empty() ? "a prediction"
                                                   : nullptr;
  if (text != nullptr) return invalid_argument("{}: an Engine takes no text; use an Llm", text);
  if (options.priority != 0 && config.schedule_policy != "priority") {
    return unsupported("priority {}: the schedule policy is {}, not priority", options.priority,
                       config.schedule_policy);
  }
  return {};
}

// An embedding is that of a prompt alone.
Status check_pooling(const GenerateRequest& request, const EngineConfig& config,
                     const EngineInfo& info) {
  const GenerationOptions& options = request.options;
  if (options.pooling == Pooling::kNone) {
    bool scores = options.max_new_tokens > 0 || options.prompt_logprobs_begin;
    if (info.generates || !scores) return {};
    return unsupported(
        "this checkpoint has no output head (lm_head), so it computes embeddings, but no text and "
        "no log-probabilities");
  }
  std::string_view pooling = to_string(options.pooling);
  if (options.max_new_tokens > 0) {
    return invalid_argument(
        "pooling is {}, and max_new_tokens {}; an embedding is that of a "
        "prompt: max_new_tokens must be 0",
        pooling, options.max_new_tokens);
  }
  if (options.prompt_logprobs_begin || request.constraint != nullptr) {
    return invalid_argument(
        "pooling is {}: a request for an embedding has no log-probabilities "
        "and no constraint",
        pooling);
  }
  if (config.emulated_steps) {
    return unsupported("pooling is {}, but steps are emulated, so there are no embeddings",
                       pooling);
  }
  return {};
}

// Output to resume must leave at least one token to draw.
Status check_resumed(const GenerateRequest& request, const EngineInfo& info) {
  const std::vector<TokenId>& tokens = request.resume_tokens;
  if (tokens.empty()) return {};
  TRY(check_tokens(tokens, info.vocabulary, "resume_tokens"));
  int64_t left = info.context_length_tokens - std::ssize(request.prompt);
  int64_t most = std::min(request.options.max_new_tokens, left);
  if (std::ssize(tokens) >= most) {
    return invalid_argument("resume_tokens: {} tokens, but the output is limited to {}",
                            tokens.size(), most);
  }
  for (TokenId stop : request.options.stop_token_ids) {
    if (std::ranges::find(tokens, stop) == tokens.end()) continue;
    return invalid_argument("resume_tokens: token {} is a stop token, so the output has ended",
                            stop);
  }
  return {};
}

// The drafter for predictions is always there.
Status check_drafter(const std::string& drafter, const EngineConfig& config) {
  if (drafter.empty() || drafter == kPredictionDrafter) return {};
  if (std::ranges::find(config.drafters, drafter) != config.drafters.end()) return {};
  std::vector<std::string_view> there(config.drafters.begin(), config.drafters.end());
  if (std::ranges::find(there, kPredictionDrafter) == there.end()) {
    there.push_back(kPredictionDrafter);
  }
  return invalid_argument("there is no drafter {} here; there are: {}", quote(drafter),
                          fmt::join(there, ", "));
}

}  // namespace

Status check_request(const GenerateRequest& request, const EngineConfig& config,
                     const EngineInfo& info) {
  const SamplingParams& sampling = request.sampling;
  const GenerationOptions& options = request.options;
  TRY(sampling.validate());
  TRY(check_supported(options, config));
  TRY(check_pooling(request, config, info));
  if (sampling.dry_sequence_breakers) {
    return invalid_argument("dry_sequence_breakers: an Engine takes no text; use an Llm");
  }
  if (request.prompt.empty()) return invalid_argument("the prompt has no tokens");
  auto prompt_tokens = std::ssize(request.prompt);
  TRY(check_limit("prompt tokens", prompt_tokens, config.prompt_tokens_max));
  TRY(check_tokens(request.prompt, info.vocabulary, "prompt"));
  TRY(check_limit("max_new_tokens", options.max_new_tokens, kNewTokensMax));
  TRY(check_limit("top_logprobs", options.top_logprobs, config.top_logprobs_max));
  TRY(check_limit("stop_token_ids", std::ssize(options.stop_token_ids), config.stop_token_ids_max));
  TRY(check_tokens(options.stop_token_ids, info.vocabulary, "stop_token_ids"));
  TRY(check_limit("min_new_tokens", options.min_new_tokens, options.max_new_tokens));
  TRY(check_limit("logprob_token_ids", std::ssize(options.logprob_token_ids),
                  config.top_logprobs_max));
  TRY(check_tokens(options.logprob_token_ids, info.vocabulary, "logprob_token_ids"));
  TRY(check_limit("prediction tokens", std::ssize(options.prediction_token_ids),
                  config.prompt_tokens_max));
  TRY(check_tokens(options.prediction_token_ids, info.vocabulary, "prediction"));
  TRY(check_limit("draft_tokens_max", options.draft_tokens_max.value_or(0), 1024));
  TRY(check_drafter(options.drafter, config));
  for (auto [name, seconds] :
       {std::pair("timeout_s", options.timeout_s), {"age_s", options.age_s}}) {
    if (seconds >= 0 && seconds <= kSecondsMax) continue;
    return invalid_argument("{} is {}; it must be between 0 and {}", name, seconds, kSecondsMax);
  }
  TRY(check_limit("logit_bias entries", std::ssize(sampling.logit_bias), config.logit_bias_max));
  for (auto [token, bias] : sampling.logit_bias) {
    TRY(check_tokens(std::span(&token, 1), info.vocabulary, "logit_bias"));
  }
  if (options.prompt_logprobs_begin) {
    TRY(check_limit("prompt_logprobs_begin", *options.prompt_logprobs_begin, prompt_tokens));
  }
  TRY(check_resumed(request, info));
  int64_t room = info.context_length_tokens - (options.max_new_tokens > 0 ? 1 : 0);
  if (prompt_tokens > room) {
    return invalid_argument("the prompt has {} tokens, the context length is {}", prompt_tokens,
                            info.context_length_tokens);
  }
  return {};
}

}  // namespace banyan
