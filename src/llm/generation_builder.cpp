#include "llm/generation_builder.h"

#include <utility>

#include "base/check.h"

namespace banyan {
namespace {

GeneratedToken generated_token(const TokenEvent& event) {
  return {event.token,
          event.logprob,
          {event.top.begin(), event.top.end()},
          {event.chosen.begin(), event.chosen.end()}};
}

}  // namespace

GenerationBuilder::GenerationBuilder(const GenerationOptions& options, StopRegexes stops,
                                     const Tokenizer* tokenizer, Generation begun)
    : generation_(std::move(begun)),
      logprobs_(options.logprobs || options.top_logprobs > 0 || !options.logprob_token_ids.empty()),
      stream_(tokenizer, generation_.prompt_ids, options, std::move(stops)) {}

TextDelta GenerationBuilder::take(const TokenEvent& event) {
  TextDelta delta = stream_.take(event);
  generation_.text += delta.text;
  if (event.has_token && event.from_prompt) {
    generation_.prompt_logprobs.push_back(generated_token(event));
  }
  if (!event.embedding.empty()) {
    generation_.embedding.assign(event.embedding.begin(), event.embedding.end());
  }
  if (!delta.counted) return delta;
  last_token_ = Clock::now();
  if (generation_.output_ids.empty()) first_token_ = last_token_;
  generation_.output_ids.push_back(event.token);
  if (logprobs_) generation_.logprobs.push_back(generated_token(event));
  return delta;
}

std::string GenerationBuilder::cancel() {
  std::string held = stream_.cancel();
  generation_.text += held;
  return held;
}

Result<Generation> GenerationBuilder::finish() {
  CHECK(stream_.done(), "the generation is not finished");
  if (stream_.finish() == FinishReason::kError) return std::unexpected(stream_.error());
  generation_.finish = stream_.finish();
  generation_.matched_stop_text = stream_.matched_text();
  generation_.matched_stop_token = stream_.matched_token();
  generation_.cached_tokens = stream_.cached_tokens();
  write_times();
  return std::move(generation_);
}

void GenerationBuilder::write_times() {
  auto seconds = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  };
  double tokens = generation_.output_ids.size();
  if (tokens == 0) return;
  generation_.ttft_s = seconds(begin_, first_token_);
  generation_.prefill_tokens_per_s = generation_.prompt_ids.size() / generation_.ttft_s;
  double decode_s = seconds(first_token_, last_token_);
  if (tokens > 1 && decode_s > 0) generation_.decode_tokens_per_s = (tokens - 1) / decode_s;
}

}  // namespace banyan
