#include "kernels/race.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/random.h"

namespace banyan {
namespace {

static_assert(kLogitBlock == 4 * kNoiseQuads);

// A safety margin for rounding wherever a token is excluded without its exact score; far larger
// than the error of f32 weights and f64 scores.
constexpr double kSlack = 1.000001;

// Tracks the current winner.
class Leader {
 public:
  TokenId token() const { return token_; }

  // The smallest word with which a token of this weight can win; above 2^32 - 1 if it cannot.
  double least_word(float weight) const {
    if (score_ == 0) return 0;
    return std::max(0.0, 0x1p32 - 0.501 - 0x1p32 * kSlack * weight / score_);
  }

  void enter(TokenId token, float weight, uint32_t word) {
    double score = weight / race_time(word);
    if (score < score_ || (score == score_ && token > token_)) return;
    score_ = score;
    token_ = token;
  }

 private:
  double score_ = 0;
  TokenId token_ = 0;
};

class Race {
 public:
  Race(std::span<const float> logits, std::span<const float> maxima, const RaceField& field,
       const DrawNoise& noise, NoiseKernel words_of, std::vector<float>& most)
      : logits_(logits),
        maxima_(maxima),
        field_(field),
        noise_(noise),
        words_of_(words_of),
        most_(most) {}

  TokenId run() {
    // Start with the block of the most likely token: its score rules out most others.
    size_t first = std::ranges::max_element(maxima_) - maxima_.begin();
    best_logit_ = maxima_[first];
    CHECK(best_logit_ >= std::numeric_limits<float>::lowest(), "no token may come next");
    bool bounded = field_.last.logit > RaceField().last.logit;
    most_.resize(bounded ? 0 : maxima_.size());
    if (!bounded) find_softmax_weights(maxima_, best_logit_, field_.temperature, most_);
    run_block(first);
    for (size_t block = 0; block < maxima_.size(); ++block) {
      if (maxima_[block] >= field_.last.logit && block != first) run_block(block);
    }
    return leader_.token();
  }

 private:
  void run_block(size_t block) {
    float most = most_.empty() ? softmax_weight(maxima_[block], best_logit_, field_.temperature)
                               : most_[block];
    if (most == 0 || most * kSlack < field_.min_p) return;
    double least = leader_.least_word(most);
    if (least > 0xffffffffp0) return;
    auto least_whole = static_cast<uint32_t>(least);
    uint32_t words[4][kNoiseQuads];
    bool some = words_of_({.noise = noise_,
                           .first_quad = static_cast<uint32_t>(block * kNoiseQuads),
                           .least = least_whole,
                           .words = words[0]});
    if (!some) return;
    size_t begin = block * kLogitBlock, count = std::min(kLogitBlock, logits_.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      uint32_t word = words[i % 4][i / 4];
      if (word >= least_whole) enter(static_cast<TokenId>(begin + i), word);
    }
  }

  void enter(TokenId token, uint32_t word) {
    float logit = logits_[token];
    const TopLogit &first = field_.first, &last = field_.last;
    if (logit > first.logit || (logit == first.logit && token < first.token)) return;
    if (logit < last.logit || (logit == last.logit && token > last.token)) return;
    float weight = softmax_weight(logit, best_logit_, field_.temperature);
    if (weight > 0 && weight >= field_.min_p) leader_.enter(token, weight, word);
  }

  std::span<const float> logits_, maxima_;
  const RaceField& field_;
  const DrawNoise& noise_;
  NoiseKernel words_of_;
  std::vector<float>& most_;  // largest weight per block, if many tokens take part
  float best_logit_ = 0;
  Leader leader_;
};

}  // namespace

TokenId run_race(std::span<const float> logits, std::span<const float> maxima,
                 const RaceField& field, const DrawNoise& noise, NoiseKernel words_of,
                 std::vector<float>& scratch) {
  return Race(logits, maxima, field, noise, words_of, scratch).run();
}

TokenId run_race(std::span<const TopLogit> kept, float min_p, const DrawNoise& noise) {
  Leader leader;
  for (const TopLogit& t : kept) {
    if (t.weight == 0 || t.weight < min_p) continue;
    uint64_t token = t.token;
    uint32_t word = philox(noise.seed, static_cast<uint64_t>(noise.position),
                           token / 4 << 32 | noise.sample_index)[token % 4];
    if (word >= leader.least_word(t.weight)) leader.enter(t.token, t.weight, word);
  }
  return leader.token();
}

}  // namespace banyan
