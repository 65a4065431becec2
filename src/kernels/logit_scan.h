// Passes over all logits of a vocabulary, in plain loops that compilers vectorise: the part of
// sampling that handles all 150,000 tokens. The rest handles a few hundred.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "banyan/token.h"
#include "kernels/draw_arithmetic.h"

namespace banyan {

// The largest logit of every block.
void find_block_maxima(std::span<const float> logits, std::vector<float>& maxima);

struct TopLogit {
  float logit = 0;
  TokenId token = 0;
  float weight = 0;  // softmax_weight, filled in by the caller
};

// The `count` largest logits in descending order, lower ids first among equals, found with their
// block maxima. Excludes -inf, which is never drawn. `scratch` is overwritten.
void find_top_logits(std::span<const float> logits, std::span<const float> maxima, size_t count,
                     std::vector<float>& scratch, std::vector<TopLogit>& top);

// softmax_weight of each of `logits`.
void find_softmax_weights(std::span<const float> logits, float best, float temperature,
                          std::span<float> weights);

// The sum of all weights, in an order that depends only on the vocabulary size.
double softmax_total(std::span<const float> logits, std::span<const float> maxima,
                     float temperature);

// The sum of all weights, and the weighted mean of softmax_exponent. The entropy is the logarithm
// of the sum minus the mean.
struct SoftmaxMoments {
  double total = 0, mean = 0;
};
SoftmaxMoments softmax_moments(std::span<const float> logits, std::span<const float> maxima,
                               float temperature);

}  // namespace banyan
