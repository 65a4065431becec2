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

// Tokens that the mask does not have cannot come.
void apply_mask(std::span<float> logits, std::span<const uint32_t> mask) {
  for (size_t begin = 0; begin < logits.size(); begin += 32) {
    uint32_t word = mask[begin / 32];
    if (word == ~0u) continue;
    std::span<float> some = logits.subspan(begin, std::min<size_t>(32, logits.size() - begin));
    if (word == 0) {  // most of them where a grammar leaves little
      std::ranges::fill(some, kImpossible);
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i) {
      if (((word >> i) & 1u) == 0) some[i] = kImpossible;
    }
  }
}

}  // namespace

Sampler::Sampler(int64_t vocabulary)
    : adjusted_(static_cast<size_t>(vocabulary)), weights_(static_cast<size_t>(vocabulary)) {
  top_.reserve(static_cast<size_t>(vocabulary));
  top_logprobs_.reserve(static_cast<size_t>(vocabulary));
}

void Sampler::adjust(const LogitRow& row, const DrawContext& context) {
  std::ranges::copy(row.logits, adjusted_.begin());
  const SamplingParams& params = context.params;
  if (params.has_penalties()) apply_penalties(adjusted_, params, *context.counts);
  for (auto [token, bias] : params.logit_bias) adjusted_[static_cast<size_t>(token)] += bias;
  // Damaged weights give logits that are infinite, or become so under a penalty. Such a token is as
  // unlikely or likely as can be, but not forbidden: some token must come next.
  for (float& x : adjusted_) x = std::clamp(x, -kLargest, kLargest);
  if (!context.mask.empty()) apply_mask(adjusted_, context.mask);
}

TokenId Sampler::draw(const LogitRow& row, const DrawContext& context) {
  const SamplingParams& params = context.params;
  bool plain = !params.has_penalties() && params.logit_bias.empty() && context.mask.empty();
  if (params.temperature == 0 && plain) return row.argmax;
  if (!plain) adjust(row, context);
  std::span<const float> logits = plain ? row.logits : adjusted_;
  find_block_maxima(logits, maxima_);
  CHECK(std::ranges::max(maxima_) > kImpossible, "no token may come next");
  if (params.temperature == 0) {
    find_top_logits(logits, maxima_, 1, scratch_, top_);
    return top_.front().token;
  }
  double share = uniform(params.seed, static_cast<uint64_t>(context.position), params.sample_index);
  auto top_k = static_cast<size_t>(params.top_k);
  if (top_k > 0 && top_k < logits.size()) {
    find_top_weights(logits, top_k, params.temperature);
    keep_top_p(params.top_p, total_of_top());
    return draw_from_top(params.min_p, share);
  }
  bool nucleus = params.top_p < 1;
  double total = find_softmax_weights(logits, maxima_, params.temperature,
                                      nucleus ? 0 : params.min_p, weights_, block_sums_);
  if (!nucleus) return draw_from_all(total * share);
  // Ever more of the most likely, until their weights suffice: a few tokens usually do.
  for (size_t count = 64;; count *= 8) {
    find_top_weights(logits, count, params.temperature);
    if (keep_top_p(params.top_p, total) || top_.size() < count) break;
  }
  return draw_from_top(params.min_p, share);
}

void Sampler::find_top_weights(std::span<const float> logits, size_t count, float temperature) {
  find_top_logits(logits, maxima_, count, scratch_, top_);
  float best = top_.front().logit;
  for (TopLogit& t : top_) t.weight = softmax_weight(t.logit, best, temperature);
}

double Sampler::total_of_top() const {
  double total = 0;
  for (const TopLogit& t : top_) total += t.weight;
  return total;
}

// Keeps the smallest set of most likely tokens whose weights reach top_p of the total; all of them
// and false where they do not.
bool Sampler::keep_top_p(double top_p, double total) {
  double reached = 0;
  for (size_t i = 0; i < top_.size() && top_p < 1; ++i) {
    reached += top_[i].weight;
    if (reached < top_p * total) continue;
    top_.resize(i + 1);
    return true;
  }
  return false;
}

// Those of the top whose weights are not less than min_p, by their weights. The best has 1.
TokenId Sampler::draw_from_top(float min_p, double share) {
  std::erase_if(top_, [&](const TopLogit& t) { return t.weight < min_p; });
  double target = total_of_top() * share;
  for (const TopLogit& t : top_) {
    target -= t.weight;
    if (target < 0) return t.token;
  }
  return top_.back().token;  // rounding left a rest
}

TokenId Sampler::draw_from_all(double target) const {
  size_t block = 0;
  for (size_t b = 0; b < block_sums_.size(); ++b) {
    if (block_sums_[b] == 0) continue;
    block = b;  // the last one, where rounding leaves a rest
    if (target < block_sums_[b]) break;
    target -= block_sums_[b];
  }
  TokenId token = 0;
  size_t end = std::min((block + 1) * kLogitBlock, weights_.size());
  for (size_t t = block * kLogitBlock; t < end; ++t) {
    if (weights_[t] == 0) continue;
    token = static_cast<TokenId>(t);
    target -= weights_[t];
    if (target < 0) break;
  }
  return token;
}

std::span<const TokenLogprob> Sampler::top(const LogitRow& row, int count) {
  find_block_maxima(row.logits, maxima_);
  find_top_logits(row.logits, maxima_, static_cast<size_t>(count), scratch_, top_);
  top_logprobs_.clear();
  for (const TopLogit& t : top_) top_logprobs_.push_back({t.token, t.logit - row.log_sum_exp});
  return top_logprobs_;
}

}  // namespace banyan
