#include "cli/batch_run.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "base/signed.h"

namespace banyan::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::vector<TokenId> random_prompt(int64_t tokens, int64_t vocabulary, uint64_t seed,
                                   uint64_t sequence) {
  std::vector<TokenId> prompt(as_size(tokens));
  for (size_t i = 0; i < prompt.size(); ++i) {
    prompt[i] = static_cast<TokenId>(uniform(seed, sequence, i) * vocabulary);
  }
  return prompt;
}

int64_t new_tokens_max(const BatchShape& shape, const EngineConfig& config,
                       int64_t context_tokens) {
  return std::min(shape.output_len + surplus_tokens(shape, config.prefill_tokens()),
                  context_tokens - shape.context_fill - shape.input_len);
}

constexpr uint64_t kContextSequence = ~uint64_t{0};  // none of a batch

// The events received from the engine.
struct Received {
  int64_t tokens = 0;
  int sequences = 0;  // sequences with at least one token
  std::optional<Error> error;
};

}  // namespace

int64_t surplus_tokens(const BatchShape& shape, int64_t chunked_prefill_tokens) {
  if (shape.batch_size == 1) return 0;
  // Sequences in decode take one row each from the prompt budget of the others.
  int64_t prompt_rows_min = std::max<int64_t>(1, chunked_prefill_tokens - shape.batch_size);
  return (shape.batch_size * shape.input_len + prompt_rows_min - 1) / prompt_rows_min;
}

int64_t batch_tokens(const BatchShape& shape, const EngineConfig& config, int64_t context_tokens) {
  int64_t page = config.page_size_tokens;
  int64_t tokens = shape.input_len + new_tokens_max(shape, config, context_tokens);
  return shape.batch_size * ((tokens + page - 1) / page * page) + shape.context_fill;
}

std::vector<TokenId> context_tokens(int64_t tokens, int64_t vocabulary) {
  return random_prompt(tokens, vocabulary, 0, kContextSequence);
}

Result<BatchTiming> run_batch(Engine& engine, const EngineConfig& config, const BatchShape& shape,
                              uint64_t seed) {
  const EngineInfo& info = engine.info();
  Received received;
  auto sink = [&](const TokenEvent& event) {
    if (event.finish == FinishReason::kError) received.error = event.error;
    received.tokens += event.has_token;
    received.sequences += event.has_token && event.position == shape.context_fill + shape.input_len;
  };
  auto begin = Clock::now();
  std::vector<SequenceId> ids;
  for (int i = 0; i < shape.batch_size; ++i) {
    std::vector<TokenId> prompt = context_tokens(shape.context_fill, info.vocabulary);
    std::vector<TokenId> rest =
        random_prompt(shape.input_len, info.vocabulary, seed, static_cast<uint64_t>(i));
    prompt.insert(prompt.end(), rest.begin(), rest.end());
    GenerateRequest request{.prompt = std::move(prompt), .sampling = {.temperature = 0}};
    if (!config.adapters.empty()) {  // in turn
      request.options.adapter = at(config.adapters, i % std::ssize(config.adapters)).name;
    }
    request.options.max_new_tokens = new_tokens_max(shape, config, info.context_length_tokens);
    ids.push_back(TRY(engine.submit(std::move(request), sink)));
  }
  BatchTiming timing;
  while (!received.error && received.sequences < shape.batch_size && engine.step()) {
    ++timing.prefill_steps;
  }
  timing.prefill_s = seconds_since(begin);
  timing.decoded_during_prefill = received.tokens - received.sequences;

  begin = Clock::now();
  int64_t tokens_before = received.tokens;
  while (!received.error && timing.decode_steps < shape.output_len - 1 && engine.step()) {
    ++timing.decode_steps;
  }
  timing.decode_s = seconds_since(begin);
  timing.decode_tokens = received.tokens - tokens_before;

  for (SequenceId id : ids) engine.cancel(id);
  while (engine.step()) continue;
  if (received.error) return std::unexpected(*received.error);
  return timing;
}

}  // namespace banyan::cli
