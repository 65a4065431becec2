// One request in flight. Owned by the Engine; touched by its thread alone.
#pragma once

#include <cstdint>
#include <vector>

#include "banyan/request.h"
#include "cache/prefix_key.h"
#include "engine/sampler.h"

namespace banyan {

struct Sequence {
  SequenceId id = 0;
  GenerateRequest request;
  TokenSink sink;
  PrefixNamespace name_space;  // which prefixes it may share

  std::vector<TokenId> tokens;  // the prompt, then what was generated
  int64_t prompt_tokens = 0;
  int64_t computed = 0;        // positions whose state is in the pages
  int64_t tokens_max = 0;      // prompt and output together
  std::vector<int32_t> pages;  // of positions [0, pages * page size)
  TokenCounts counts;          // filled when the request has penalties
  bool cancelled = false;

  // Tokens that are known but not computed: more than one while the prompt is being read.
  int64_t pending() const { return static_cast<int64_t>(tokens.size()) - computed; }

  // Whether the logits of `position` give a prompt token's log-probability that was asked for.
  bool scores_prompt_at(int64_t position) const {
    const auto& begin = request.prompt_logprobs_begin;
    return begin && position + 1 >= *begin && position + 1 < prompt_tokens;
  }
};

}  // namespace banyan
