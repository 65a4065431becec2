// Passes over all logits of a vocabulary, in plain loops that compilers turn into vectors: what
// sampling does for every one of 150,000 tokens. The rest of it looks at a few hundred.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "banyan/token.h"

namespace banyan {

inline constexpr size_t kLogitBlock = 64;  // logits that are summed up together

// The largest logit of every block.
void find_block_maxima(std::span<const float> logits, std::vector<float>& maxima);

struct TopLogit {
  float logit = 0;
  TokenId token = 0;
  float weight = 0;  // the caller's: softmax_weight
};

// The `count` largest logits, largest first, lower ids first among equals, by their block maxima;
// -inf, which is never drawn, is none of them. `scratch` is overwritten.
void find_top_logits(std::span<const float> logits, std::span<const float> maxima, size_t count,
                     std::vector<float>& scratch, std::vector<TopLogit>& top);

// exp((logit - best) / temperature) for logits up to `best`, within 2 units of the last place; 0
// below 1e-38.
float softmax_weight(float logit, float best, float temperature);

// The same for each of `logits`.
void find_softmax_weights(std::span<const float> logits, float best, float temperature,
                          std::span<float> weights);

// The sum of all weights, in an order that depends on the vocabulary alone.
double softmax_total(std::span<const float> logits, std::span<const float> maxima,
                     float temperature);

// (logit - best) / temperature: the logarithm of softmax_weight.
double softmax_exponent(float logit, float best, float temperature);

// The sum of all weights, and the mean of softmax_exponent under them. The logarithm of the sum,
// less the mean, is the entropy.
struct SoftmaxMoments {
  double total = 0, mean = 0;
};
SoftmaxMoments softmax_moments(std::span<const float> logits, std::span<const float> maxima,
                               float temperature);

}  // namespace banyan
