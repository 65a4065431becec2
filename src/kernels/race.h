// Draws a token by an exponential race (the Gumbel-max trick, with one division instead of two
// logarithms). Of the allowed tokens, the one with the largest weight / E wins; the E are
// independent exponential variables. A token wins with its probability. E is -ln U, and U of token
// i is (h + 0.5) / 2^32, where h is word i % 4 of philox(seed; position, sample index, i / 4).
//
// A token's noise does not depend on the distribution. Two models that draw the same position with
// the same noise therefore mostly draw the same token, unlike with a cumulative sum over the
// vocabulary. Speculative decoding accepts drafts on this basis.
//
// -ln U >= 1 - U, so a token can only win if U >= 1 - weight / (best score so far). This is tested
// with integers, first per block and then per token; few tokens need a logarithm. All arithmetic is
// fixed here: no library function affects a bit of it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/draw.h"
#include "kernels/logit_scan.h"

namespace banyan {

// The tokens that take part: those from `first` to `last` in the order of find_top_logits with a
// weight of at least min_p.
struct RaceField {
  float temperature = 1;
  TopLogit first = {.logit = std::numeric_limits<float>::max(), .token = 0};
  TopLogit last = {.logit = std::numeric_limits<float>::lowest(),
                   .token = std::numeric_limits<TokenId>::max()};
  float min_p = 0;
};

// The winner, the lowest id among equals. `maxima` are the block maxima of `logits`; some logit
// must exceed -inf. `scratch` is overwritten.
TokenId run_race(std::span<const float> logits, std::span<const float> maxima,
                 const RaceField& field, const DrawNoise& noise, NoiseKernel words_of,
                 std::vector<float>& scratch);

// Like above, for a few tokens: the winner among `kept`, by their weights.
TokenId run_race(std::span<const TopLogit> kept, float min_p, const DrawNoise& noise);

}  // namespace banyan
