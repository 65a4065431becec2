// The keys of a prompt's pages, by which a router finds workers that have its prefix. Computed once
// per state digest, and shared by the samples of one prompt. Belongs to one thread.
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

  // The keys of all full pages that may come from a cache. That excludes the page that ends the
  // prompt, whose last token is always computed, and pages from the first requested prompt
  // log-probability on. `prompt` is the request's. Valid until the next call.
  std::span<const PageKey> keys(const StateDigest& states, int page_size_tokens,
                                std::span<const TokenId> prompt);

  int64_t keys_made() const { return made_; }

  // Whether another request with the same prompt has the same keys.
  bool covers(const GenerateRequest& request) const;

 private:
  struct Chain {
    StateDigest states;
    int page_size_tokens = 0;
    std::vector<PageKey> keys;
  };

  PrefixNamespace name_space_;
  int64_t tokens_ = 0;  // tokens of the prompt that may come from a cache
  std::vector<Chain> chains_;
  int64_t made_ = 0;
};

}  // namespace banyan
