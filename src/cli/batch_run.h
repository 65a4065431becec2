// Runs one batch of equal random prompts through an engine and times it.
//
// All prompts are submitted at once. Prefill lasts until every sequence has its first token. The
// engine lets the first to finish their prompts generate meanwhile, so each sequence may make a
// surplus of tokens, and decode is timed over steps in which the whole batch decodes.
#pragma once

#include <cstdint>

#include "banyan/engine.h"
#include "banyan/status.h"

namespace banyan::cli {

struct BatchShape {
  int batch_size = 1;
  int64_t input_len = 0;   // tokens of each prompt
  int64_t output_len = 0;  // tokens made for each; the first belongs to prefill
};

struct BatchTiming {
  double prefill_s = 0;
  double decode_s = 0;
  int64_t decode_steps = 0;
  int64_t decode_tokens = 0;
};

// How many tokens a sequence may be ahead of the last one when decode begins.
int64_t surplus_tokens(const BatchShape& shape, int64_t chunked_prefill_tokens);

// Tokens of state that the whole batch takes, rounded up to pages; a sequence never outgrows the
// context.
int64_t batch_tokens(const BatchShape& shape, const EngineConfig& config, int64_t context_tokens);

// `config` is what `engine` was loaded with; nothing else may be in flight. Prompts are drawn by
// `seed`.
Result<BatchTiming> run_batch(Engine& engine, const EngineConfig& config, const BatchShape& shape,
                              uint64_t seed);

}  // namespace banyan::cli
