#include "server/route/prompt_pages.h"

#include <algorithm>

#include "base/signed.h"

namespace banyan {
namespace {

PrefixNamespace namespace_of(const GenerationOptions& options) {
  return {options.adapter, options.cache_salt, options.extra_key};
}

int64_t cacheable_tokens(const GenerateRequest& request) {
  if (request.options.pooling == Pooling::kMean) return 0;  // it needs the state of every token
  int64_t tokens = std::ssize(request.prompt) - 1;
  return std::clamp<int64_t>(request.options.prompt_logprobs_begin.value_or(tokens), 0, tokens);
}

}  // namespace

PromptPages::PromptPages(const GenerateRequest& request)
    : name_space_(namespace_of(request.options)), tokens_(cacheable_tokens(request)) {}

bool PromptPages::covers(const GenerateRequest& request) const {
  return tokens_ == cacheable_tokens(request) && name_space_ == namespace_of(request.options);
}

std::span<const PageKey> PromptPages::keys(const StateDigest& states, int page_size_tokens,
                                           std::span<const TokenId> prompt) {
  for (const Chain& chain : chains_) {
    if (chain.states == states && chain.page_size_tokens == page_size_tokens) return chain.keys;
  }
  Chain& chain = chains_.emplace_back(states, page_size_tokens);
  PageKeys keys;
  PageKey parent = keys.root(states, name_space_);
  auto page = as_size(page_size_tokens);
  auto pages = as_size(tokens_) / page;
  chain.keys.reserve(pages);
  for (size_t i = 0; i < pages; ++i) {
    parent = keys.page(parent, prompt.subspan(i * page, page));
    chain.keys.push_back(parent);
  }
  made_ += std::ssize(chain.keys);
  return chain.keys;
}

}  // namespace banyan
