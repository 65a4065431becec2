// Runs one batch of equal random prompts through an engine and times it.
//
// All prompts are submitted at once. Prefill lasts until every sequence has its first token.
// Sequences that finish their prompts early already decode, so each sequence gets a surplus of
// tokens, and decode is timed only over steps in which the whole batch decodes.
#pragma once

#include <cstdint>
#include <vector>

#include "banyan/engine.h"
#include "banyan/status.h"

namespace banyan::cli {

struct BatchShape {
  int batch_size = 1;
  int64_t input_len = 0;     // tokens per prompt
  int64_t output_len = 0;    // tokens generated per sequence; the first counts as prefill
  int64_t context_fill = 0;  // tokens before each prompt, whose states are random
};

struct BatchTiming {
  double prefill_s = 0;
  int64_t prefill_steps = 0;
  int64_t decoded_during_prefill = 0;  // tokens of sequences that were ahead
  double decode_s = 0;
  int64_t decode_steps = 0;
  int64_t decode_tokens = 0;
};

// The number of tokens by which a sequence may be ahead of the last one when decode starts.
int64_t surplus_tokens(const BatchShape& shape, int64_t chunked_prefill_tokens);

// Tokens of state for the whole batch, rounded up to pages; a sequence never exceeds the context.
int64_t batch_tokens(const BatchShape& shape, const EngineConfig& config, int64_t context_tokens);

// The tokens of a context of that length.
std::vector<TokenId> context_tokens(int64_t tokens, int64_t vocabulary);

// `config` is the one that `engine` was loaded with. Nothing else may be in flight. Prompts are
// random by `seed`.
Result<BatchTiming> run_batch(Engine& engine, const EngineConfig& config, const BatchShape& shape,
                              uint64_t seed);

}  // namespace banyan::cli
