// The draw of a token by an exponential race (the Gumbel-max trick, with one division in place of
// two logarithms): of all tokens that may come, the one whose weight / E is largest, where the E
// are independent exponential variables. A token wins with its probability. E is -ln U, and U of
// token i is (h + 0.5) / 2^32, where h is word i % 4 of philox(seed; position, sample index, i /
// 4).
//
// The noise of a token does not depend on the distribution. So two models that draw the same
// position with the same noise mostly draw the same token, which a cumulative sum over the
// vocabulary would not give: that is what drafts are kept by.
//
// -ln U >= 1 - U, so a token can only win if U >= 1 - weight / (best score so far). That is tested
// with integers, of a block at a time and then of its tokens; few tokens take a logarithm. All
// arithmetic is fixed here: no library function decides a bit of it.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/draw.h"
#include "kernels/logit_scan.h"

namespace banyan {

// -ln((word + 0.5) / 2^32), within 2 units of the last place of f64.
double race_time(uint32_t word);

// Who takes part: tokens from `first` down to `last` in the order of find_top_logits, whose weight
// is at least min_p.
struct RaceField {
  float temperature = 1;
  TopLogit first = {.logit = std::numeric_limits<float>::max(), .token = 0};
  TopLogit last = {.logit = std::numeric_limits<float>::lowest(),
                   .token = std::numeric_limits<TokenId>::max()};
  float min_p = 0;
};

// The winner, the lowest id among equals. `maxima` are those of the blocks of `logits`; some logit
// must be above -inf. `scratch` is overwritten.
TokenId run_race(std::span<const float> logits, std::span<const float> maxima,
                 const RaceField& field, const DrawNoise& noise, NoiseKernel words_of,
                 std::vector<float>& scratch);

// The winner among `kept`, by their weights: the same for few tokens.
TokenId run_race(std::span<const TopLogit> kept, float min_p, const DrawNoise& noise);

}  // namespace banyan
