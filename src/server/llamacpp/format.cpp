#include "server/llamacpp/format.h"

#include <cmath>
#include <limits>
#include <utility>

namespace banyan {
namespace {

std::string_view llama_error_type(int status, std::string_view code) {
  if (code == "context_length_exceeded") return "exceed_context_size_error";
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
    case 405:
      return "not_found_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

// `counted` tokens in all, of which `timed` took the measured time.
void write_rates(JsonWriter& writer, const char* name, int64_t counted, int64_t timed,
                 double seconds) {
  std::string prefix = std::string(name) + "_";
  double ms = seconds * 1e3;
  writer.field(prefix + "n", counted).field(prefix + "ms", ms);
  double count = timed;
  writer.field(prefix + "per_token_ms", timed > 0 ? ms / count : 0);
  writer.field(prefix + "per_second", timed > 0 && seconds > 0 ? 1e3 / ms * count : 0);
}

}  // namespace

void write_timings(JsonWriter& writer, const Choice& choice, const GenerationTimes& times) {
  const TextStream& stream = choice.stream;
  int64_t cached = stream.cached_tokens(), computed = choice.prompt_tokens - cached;
  int64_t predicted = stream.output_tokens();
  writer.key("timings").begin_object().field("cache_n", cached);
  write_rates(writer, "prompt", computed, computed, times.prompt_s());
  write_rates(writer, "predicted", predicted, predicted - 1, times.predicted_s());
  if (stream.draft_tokens() > 0) {
    writer.field("draft_n", stream.draft_tokens());
    writer.field("draft_n_accepted", stream.accepted_draft_tokens());
  }
  writer.end_object();
}

void write_progress(JsonWriter& writer, const Choice& choice, const TokenEvent& event,
                    const GenerationTimes& times) {
  writer.key("prompt_progress").begin_object().field("total", choice.prompt_tokens);
  writer.field("cache", event.cached_tokens).field("processed", event.position);
  writer.field("time_ms", static_cast<int64_t>(times.progress_s() * 1e3)).end_object();
}

Json llama_error(int status, std::string_view message, std::string_view code) {
  return {{"error",
           {{"code", status}, {"message", message}, {"type", llama_error_type(status, code)}}}};
}

SamplingParams llama_sampling() {
  return {.temperature = 0.8f,
          .top_p = 0.95f,
          .top_k = 40,
          .min_p = 0.05f,
          .repeat_last_n = 64,
          .logit_bias = {}};
}

Json llama_settings(const SamplingParams& sampling, const GenerationOptions& options,
                    std::span<const TokenId> never) {
  Json bias = Json::array();
  for (auto [token, value] : sampling.logit_bias) {
    bias.push_back({{"token", token}, {"bias", value}});
  }
  for (TokenId token : never) bias.push_back({{"token", token}, {"bias", nullptr}});
  bool unlimited = options.max_new_tokens > std::numeric_limits<int32_t>::max();
  int64_t predict = unlimited ? -1 : options.max_new_tokens;
  int64_t line_ms = std::llround(1e3 * options.line_time_s);
  return {{"n_predict", predict},
          {"max_tokens", predict},
          {"seed", sampling.seed},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"typical_p", sampling.typical_p},
          {"xtc_probability", sampling.xtc_probability},
          {"xtc_threshold", sampling.xtc_threshold},
          {"dry_multiplier", sampling.dry_multiplier},
          {"dry_base", sampling.dry_base},
          {"dry_allowed_length", sampling.dry_allowed_length},
          {"dry_penalty_last_n", sampling.dry_penalty_last_n},
          {"mirostat", 0},
          {"dynatemp_range", 0},
          {"top_n_sigma", -1},
          {"adaptive_target", -1},
          {"adaptive_decay", 0},
          {"min_p", sampling.min_p},
          {"repeat_last_n", sampling.repeat_last_n},
          {"repeat_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"ignore_eos", options.ignore_eos},
          {"logit_bias", std::move(bias)},
          {"min_keep", 0},
          {"n_keep", 0},
          {"n_discard", 0},
          {"n_indent", options.indent_min},
          {"t_max_predict_ms", line_ms > 0 ? line_ms : -1},
          {"stop", options.stop},
          {"n_probs", options.top_logprobs},
          {"samplers", {"penalties", "temperature", "top_k", "top_p", "min_p"}}};
}

}  // namespace banyan
