// Prompts for a load test, stored without their bytes, so that a trace of a hundred million tokens
// takes a few megabytes.
//
// A prompt is either token ids or the user's turns of a conversation. Token ids consist of parts.
// They are determined by (seed, stream, index), so equal streams give equal prefixes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

struct PromptPart {
  uint64_t stream = 0;
  int64_t tokens = 0;
};

struct BenchPrompt {
  double arrival_s = 0;  // since the start; only in timed datasets
  std::vector<PromptPart> parts;
  std::vector<std::string> turns;
  int64_t output_tokens = 1;

  int64_t prompt_tokens() const;  // of the parts; 0 for a conversation
};

struct Dataset {
  uint64_t seed = 0;
  bool timed = false;  // prompts have arrival times
  std::vector<BenchPrompt> prompts;

  // Drops prompts that exceed `tokens_max` together with their output; returns how many.
  size_t drop_longer_than(int64_t tokens_max);
};

// Generates a prompt's token ids, each below `vocabulary`.
void append_token_ids(const BenchPrompt& prompt, uint64_t seed, int64_t vocabulary,
                      const std::function<void(TokenId)>& append);
// As many words as the prompt has tokens, for servers that do not accept ids.
std::string prompt_words(const BenchPrompt& prompt, uint64_t seed);

// Lengths are uniform in [range_ratio * len, len], at least 1.
struct RandomShape {
  int64_t prompts = 1000;
  int64_t input_len = 1024, output_len = 1024;  // tokens
  double range_ratio = 0;                       // [0, 1]
};
Dataset random_dataset(const RandomShape& shape, uint64_t seed);

// Prompts that share their group's system prompt and end with a distinct question, in random order.
struct GroupedShape {
  int64_t groups = 64, prompts_per_group = 16;
  int64_t system_prompt_len = 2048, question_len = 128, output_len = 256;  // tokens
};
Dataset shared_prefix_dataset(const GroupedShape& shape, uint64_t seed);

// Reads the first `prompts_max` requests of a trace in Mooncake's format, as JSON lines: timestamp
// (ms), input_length, output_length, hash_ids (one per 512 input tokens).
Result<Dataset> read_mooncake(const std::string& path, size_t prompts_max, uint64_t seed);

// Reads the first `prompts_max` conversations of a JSON Lines file whose `turns` are the user's, as
// in MT-bench.
Result<Dataset> read_conversations(const std::string& path, size_t prompts_max, int64_t output_len);

// Arrival times in seconds: a Poisson process with rate `requests_per_s` that starts at 0, or all
// at 0 if the rate is infinite.
std::vector<double> poisson_arrivals(size_t count, double requests_per_s, uint64_t seed);

}  // namespace banyan
