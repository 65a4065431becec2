// Recorded requests without text: arrival times, the prefixes that prompts share, and output
// lengths. Input of replay/replay.h.
//
// Tokens are pseudo tokens: equal where the trace says so, different elsewhere. A prompt is a list
// of blocks, each standing for block_tokens equal tokens (the last may be shorter). A trace of half
// a gigabyte of tokens thus needs only a few thousand block ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "banyan/request.h"
#include "banyan/status.h"

namespace banyan {

struct TraceRequest {
  // Since the start of the trace; with `after`, at the earliest when that request ends.
  double arrival_s = 0;
  int64_t after = -1;  // index of the preceding request; -1: none
  std::vector<TokenId> blocks;
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  TokenId output = 0;  // the id of every generated token

  int64_t tokens() const { return prompt_tokens + output_tokens; }
};

struct Trace {
  int64_t block_tokens = 1;
  std::vector<TraceRequest> requests;

  std::vector<TokenId> prompt_of(const TraceRequest& request) const;
  int64_t prompt_tokens() const;
  int64_t longest_tokens() const;  // of prompt and output together
};

// Reads a file of JSON lines in one of two formats, detected from the keys of the first line:
// - Mooncake: timestamp (ms), input_length, output_length, hash_ids (of blocks of 512 tokens);
// - multi-turn chats, as in MT-bench: turns (texts). A word counts as a token. The second turn's
//   prompt is the first with an answer of `chat_output_tokens`, and it arrives when that ends.
// Errors name file, line and key.
Result<Trace> read_trace(const std::string& path, int64_t chat_output_tokens);

// Prompts that share their group's system prompt and end with a distinct question, in random order.
struct SharedPrefixShape {
  int64_t groups = 64, prompts_per_group = 16;
  int64_t system_prompt_tokens = 2048, question_tokens = 128, output_tokens = 256;
  uint64_t seed = 0;
};
Trace shared_prefix_trace(const SharedPrefixShape& shape);

// Assigns Poisson arrival times to the requests without a predecessor.
void spread_arrivals(Trace& trace, double requests_per_s, uint64_t seed);

// The requests in depth-first order of their prefix tree, all arriving at once. This order has the
// best hit rate if the cache holds the longest request and one request runs at a time (SGLang
// paper, theorem 3.1).
Trace in_dfs_order(const Trace& trace);

}  // namespace banyan
