// What a load test asks a server: prompts without their bytes, so that a trace of a hundred million
// tokens takes a few megabytes.
//
// A prompt is either token ids, made of parts whose ids follow from (seed, stream, index) alone, so
// that equal streams are equal prefixes; or the user's turns of a conversation.
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
  double arrival_s = 0;  // after the begin; only of a timed dataset
  std::vector<PromptPart> parts;
  std::vector<std::string> turns;
  int64_t output_tokens = 1;

  int64_t prompt_tokens() const;  // of the parts; 0 for a conversation
};

struct Dataset {
  uint64_t seed = 0;
  bool timed = false;  // the prompts have a time of arrival
  std::vector<BenchPrompt> prompts;

  // Leaves out prompts that with their output exceed `tokens_max`; how many they were.
  size_t drop_longer_than(int64_t tokens_max);
};

// A prompt's token ids, each below `vocabulary`.
void append_token_ids(const BenchPrompt& prompt, uint64_t seed, int64_t vocabulary,
                      const std::function<void(TokenId)>& append);
// As many words as the prompt has tokens, for servers that take no ids.
std::string prompt_words(const BenchPrompt& prompt, uint64_t seed);

// Lengths are drawn evenly from [range_ratio * len, len], at least 1.
struct RandomShape {
  int64_t prompts = 1000;
  int64_t input_len = 1024, output_len = 1024;  // tokens
  double range_ratio = 0;                       // [0, 1]
};
Dataset random_dataset(const RandomShape& shape, uint64_t seed);

// Prompts that begin with their group's system prompt and end with a question of their own, in
// random order.
struct GroupedShape {
  int64_t groups = 64, prompts_per_group = 16;
  int64_t system_prompt_len = 2048, question_len = 128, output_len = 256;  // tokens
};
Dataset shared_prefix_dataset(const GroupedShape& shape, uint64_t seed);

// The first `prompts_max` requests of a trace in Mooncake's format, one JSON object a line:
// timestamp (ms), input_length, output_length, hash_ids (one for each 512 tokens of the input).
Result<Dataset> read_mooncake(const std::string& path, size_t prompts_max, uint64_t seed);

// The first `prompts_max` conversations of a file with one JSON object a line whose `turns` are the
// user's, as MT-bench's questions have them.
Result<Dataset> read_conversations(const std::string& path, size_t prompts_max, int64_t output_len);

// When requests arrive, in seconds: a Poisson process of `requests_per_s` that begins at 0, or all
// at 0 if that is infinite.
std::vector<double> poisson_arrivals(size_t count, double requests_per_s, uint64_t seed);

}  // namespace banyan
