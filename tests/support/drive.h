// Driving an engine, and the runner below it, from tests.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "banyan/engine.h"
#include "engine/runner.h"

namespace banyan::test {

// The events that a sink received, token by token.
struct Heard {
  struct Token {
    int64_t position = 0;
    TokenId token = 0;
    float logprob = 0;
    std::vector<TokenLogprob> top, chosen;
  };
  std::vector<Token> prompt;
  std::vector<Token> output;
  FinishReason finish = FinishReason::kNone;
  int ends = 0;  // events with a finish reason; one when all went well
  TokenId matched_stop = -1;
  int64_t cached_tokens = 0;
  std::vector<float> embedding;
  Error error;

  void hear(const TokenEvent& event);
  std::vector<TokenId> output_ids() const;
  std::vector<float> output_logprobs() const;
  std::vector<float> prompt_logprobs() const;
};

// A sink that records into `heard`, which must outlive the sequence.
TokenSink hear_into(Heard& heard);

std::unique_ptr<Engine> load_engine(const EngineConfig& config);
std::unique_ptr<Runner> load_runner(const EngineConfig& config);

// Expects the same output: tokens, the bits of their log-probabilities, the likeliest tokens, and
// the end.
void expect_same(const Heard& a, const Heard& b);

// Runs one request to its end. The engine must be idle.
Heard run_alone(Engine& engine, const GenerateRequest& request);

// Positions [first, first + count) of a sequence that holds `pages` and slot 0 of every class, with
// logits of every row.
Batch one_span(const StateClasses& classes, std::span<const TokenId> tokens, int64_t first,
               int64_t count, std::span<const int32_t> pages);

// The logits of every position of `tokens`, computed in spans of at most `chunk` tokens, or the
// next multiple of the resume alignment: [tokens, vocabulary]. The pages are used in descending
// order.
std::vector<float> all_logits(Runner& runner, std::span<const TokenId> tokens, int64_t chunk);

bool same_bits(std::span<const float> a, std::span<const float> b);

// Every kernel table of this machine, and the one that is for debugging.
std::vector<std::string> all_kernels();

}  // namespace banyan::test
