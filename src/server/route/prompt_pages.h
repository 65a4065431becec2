// The keys of a prompt's pages, by which a router finds who has its prefix: made once for each
// state digest, and shared by the samples of one prompt. Belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "banyan/request.h"
#include "cache/page_key.h"

namespace banyan {

class PromptPages {
 public:
  explicit PromptPages(const GenerateRequest& request);

  // Of all full pages that a cache may answer for: not the one that ends the prompt, whose last
  // token is always computed, nor any from where log-probabilities of the prompt are asked for.
  // `prompt` is the request's. Valid until the next call.
  std::span<const PageKey> keys(const StateDigest& states, int page_size_tokens,
                                std::span<const TokenId> prompt);

  int64_t keys_made() const { return made_; }

  // Whether another request of the same prompt has the same keys.
  bool covers(const GenerateRequest& request) const;

 private:
  struct Chain {
    StateDigest states;
    int page_size_tokens = 0;
    std::vector<PageKey> keys;
  };

  PrefixNamespace name_space_;
  int64_t tokens_ = 0;  // of the prompt, that a cache may answer for
  std::vector<Chain> chains_;
  int64_t made_ = 0;
};

}  // namespace banyan
