// Recorded requests without their text: when each came, what its prompt shares with others, how
// many tokens it generated. What replay/replay.h replays.
//
// Tokens are pseudo tokens: equal where the trace says so and different elsewhere. A prompt is a
// list of blocks, each standing for block_tokens equal tokens (the last may be cut short), since a
// trace of half a gigabyte of tokens names a few thousand blocks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

struct TraceRequest {
  double arrival_s = 0;  // since the trace began; with `after`, no earlier than that one's end
  int64_t after = -1;    // index of a request; -1: none
  std::vector<TokenId> blocks;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  TokenId output = 0;  // every generated token

  int64_t tokens() const { return prompt_tokens + output_tokens; }
};

struct Trace {
  int64_t block_tokens = 1;
  std::vector<TraceRequest> requests;

  std::vector<TokenId> prompt_of(const TraceRequest& request) const;
  int64_t prompt_tokens() const;
  int64_t longest_tokens() const;  // of prompt and output
};

// Reads a file of one JSON object a line, told apart by the keys of the first:
// - Mooncake: timestamp (ms), input_length, output_length, hash_ids (of blocks of 512 tokens);
// - chats in turns, as MT-bench: turns (texts). A word is a token; the second turn's prompt is the
//   first with its `chat_output_tokens` of answer, and comes when that is there.
// Errors name file, line and key.
Result<Trace> read_trace(const std::string& path, int64_t chat_output_tokens);

// Prompts that begin with their group's system prompt and end with a question of their own, in
// random order.
struct SharedPrefixShape {
  int64_t groups = 64, prompts_per_group = 16;
  int64_t system_prompt_tokens = 2048, question_tokens = 128, output_tokens = 256;
  uint64_t seed = 0;
};
Trace shared_prefix_trace(const SharedPrefixShape& shape);

// Gives the requests that wait for no other a Poisson process of arrivals.
void spread_arrivals(Trace& trace, double requests_per_s, uint64_t seed);

// The requests in the depth-first order of the tree of their prompts, all there from the beginning:
// the order of the best hit rate where the cache holds the longest request and one runs at a time
// (SGLang paper, theorem 3.1).
Trace in_dfs_order(const Trace& trace);

}  // namespace banyan
