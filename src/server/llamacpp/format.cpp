#include "server/llamacpp/format.h"

#include <limits>

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
    case 503:
      return "unavailable_error";
    default:
      return status < 500 ? "invalid_request_error" : "server_error";
  }
}

}  // namespace

Json llama_error(int status, std::string_view message, std::string_view code) {
  return {{"error",
           {{"code", status}, {"message", message}, {"type", llama_error_type(status, code)}}}};
}

SamplingParams llama_sampling() {
  return {.temperature = 0.8f, .top_p = 0.95f, .top_k = 40, .min_p = 0.05f, .logit_bias = {}};
}

Json llama_settings(const SamplingParams& sampling, const GenerationOptions& options) {
  bool unlimited = options.max_new_tokens > std::numeric_limits<int32_t>::max();
  int64_t predict = unlimited ? -1 : options.max_new_tokens;
  return {{"n_predict", predict},
          {"max_tokens", predict},
          {"seed", sampling.seed},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_last_n", -1},
          {"repeat_penalty", sampling.repetition_penalty},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"ignore_eos", options.ignore_eos},
          {"stop", options.stop},
          {"n_probs", options.top_logprobs},
          {"samplers", {"penalties", "temperature", "top_k", "top_p", "min_p"}}};
}

}  // namespace banyan
