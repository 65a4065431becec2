#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace banyan {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// Most likely first; lower ids first among equals, so that the order is total.
template <class T>
bool before(float a, T a_token, float b, T b_token) {
  return a > b || (a == b && a_token < b_token);
}

void apply_penalties(std::span<float> logits, const SamplingParams& params,
                     const TokenCounts& counts) {
  for (size_t t = 0; t < logits.size(); ++t) {
    int32_t times = counts.in_output[t];
    if (times == 0 && counts.in_prompt[t] == 0) continue;
    float& x = logits[t];
    x = x > 0 ? x / params.repetition_penalty : x * params.repetition_penalty;
    if (times > 0) {
      x -= params.frequency_penalty * static_cast<float>(times) + params.presence_penalty;
    }
  }
}

bool allowed(std::span<const uint32_t> mask, size_t token) {
  return (mask[token / 32] >> (token % 32)) & 1u;
}

}  // namespace

Sampler::Sampler(int64_t vocabulary) : adjusted_(static_cast<size_t>(vocabulary)) {
  candidates_.reserve(static_cast<size_t>(vocabulary));
  top_.reserve(static_cast<size_t>(vocabulary));
}

void Sampler::adjust(const LogitRow& row, const DrawContext& context) {
  std::ranges::copy(row.logits, adjusted_.begin());
  const SamplingParams& params = context.params;
  if (params.has_penalties()) apply_penalties(adjusted_, params, *context.counts);
  for (auto [token, bias] : params.logit_bias) adjusted_[static_cast<size_t>(token)] += bias;
  // Damaged weights give logits that are infinite, or become so under a penalty. Such a token is as
  // unlikely or likely as can be, but not forbidden: some token must come next.
  for (float& x : adjusted_) x = std::clamp(x, -kLargest, kLargest);
  if (context.mask.empty()) return;
  for (size_t t = 0; t < adjusted_.size(); ++t) {
    if (!allowed(context.mask, t)) adjusted_[t] = kImpossible;
  }
}

TokenId Sampler::draw(const LogitRow& row, const DrawContext& context) {
  const SamplingParams& params = context.params;
  bool plain = !params.has_penalties() && params.logit_bias.empty() && context.mask.empty();
  if (params.temperature == 0 && plain) return row.argmax;
  adjust(row, context);
  if (params.temperature == 0) {
    return static_cast<TokenId>(std::ranges::max_element(adjusted_) - adjusted_.begin());
  }

  collect_candidates(params);
  if (params.top_p < 1) keep_top_p(params.top_p);
  double floor = params.min_p;  // the best candidate's weight is 1
  std::erase_if(candidates_, [&](const Candidate& c) { return c.weight < floor; });

  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  double target =
      total * uniform(params.seed, static_cast<uint64_t>(context.position), params.sample_index);
  for (const Candidate& c : candidates_) {
    target -= c.weight;
    if (target < 0) return c.token;
  }
  return candidates_.back().token;  // rounding left a rest
}

void Sampler::collect_candidates(const SamplingParams& params) {
  candidates_.clear();
  for (size_t t = 0; t < adjusted_.size(); ++t) {
    if (adjusted_[t] > kImpossible) {
      candidates_.push_back({adjusted_[t], static_cast<TokenId>(t), 0});
    }
  }
  CHECK(!candidates_.empty(), "no token may come next");
  auto order = [](const Candidate& a, const Candidate& b) {
    return before(a.logit, a.token, b.logit, b.token);
  };
  auto kept = static_cast<size_t>(params.top_k);
  if (kept > 0 && kept < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + params.top_k, candidates_.end(),
                     order);
    candidates_.resize(kept);
  }
  double best = std::ranges::min_element(candidates_, order)->logit;
  for (Candidate& c : candidates_) {
    c.weight = std::exp((static_cast<double>(c.logit) - best) / params.temperature);
  }
}

// Keeps the smallest set of most likely candidates whose weights reach top_p of the total: ever
// longer prefixes are sorted until one suffices, since a few tokens usually do.
void Sampler::keep_top_p(double top_p) {
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  auto order = [](const Candidate& a, const Candidate& b) {
    return before(a.logit, a.token, b.logit, b.token);
  };
  size_t sorted = 0;
  double reached = 0;
  for (size_t prefix = 64; sorted < candidates_.size(); prefix *= 8) {
    size_t end = std::min(prefix, candidates_.size());
    std::partial_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(sorted),
                      candidates_.begin() + static_cast<std::ptrdiff_t>(end), candidates_.end(),
                      order);
    for (; sorted < end; ++sorted) {
      reached += candidates_[sorted].weight;
      if (reached >= top_p * total) {
        candidates_.resize(sorted + 1);
        return;
      }
    }
  }
}

std::span<const TokenLogprob> Sampler::top(const LogitRow& row, int count) {
  top_.clear();
  auto order = [](const TokenLogprob& a, const TokenLogprob& b) {
    return before(a.logprob, a.token, b.logprob, b.token);
  };
  auto wanted = std::min(static_cast<size_t>(count), row.logits.size());
  if (wanted == 0) return {};
  // A heap of the best so far, worst on top: one comparison for most tokens.
  for (size_t t = 0; t < row.logits.size(); ++t) {
    TokenLogprob entry = {static_cast<TokenId>(t), row.logits[t] - row.log_sum_exp};
    if (top_.size() < wanted) {
      top_.push_back(entry);
      std::ranges::push_heap(top_, order);
    } else if (order(entry, top_.front())) {
      std::ranges::pop_heap(top_, order);
      top_.back() = entry;
      std::ranges::push_heap(top_, order);
    }
  }
  std::ranges::sort_heap(top_, order);
  return top_;
}

}  // namespace banyan
