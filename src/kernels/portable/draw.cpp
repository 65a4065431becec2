// Sampling with plain C++ scans of the logits.
#include "kernels/draw.h"

#include "base/random.h"
#include "kernels/follow.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

bool noise_words(const NoiseArgs& a) {
  bool some = false;
  for (int64_t j = 0; j < kNoiseQuads; ++j) {
    uint64_t quad = a.first_quad + static_cast<uint64_t>(j);
    std::array<uint32_t, 4> words = philox(a.noise.seed, static_cast<uint64_t>(a.noise.position),
                                           quad << 32 | a.noise.sample_index);
    for (int64_t k = 0; k < 4; ++k) {
      uint32_t word = words[k];
      a.words[k * kNoiseQuads + j] = word;
      some |= word >= a.least;
    }
  }
  return some;
}

}  // namespace

void draw(const DrawArgs& args) {
  draw_rows(args, noise_words);
}

void resolve_tokens(const ResolveTokensArgs& a) {
  for (int64_t r = 0; r < a.rows; ++r) {
    TokenId token = a.tokens[r];
    if (token < 0) token = a.drawn[-1 - token].token;
    a.out[r] = token < 0 ? 0 : token;
  }
}

void follow_drafts(const FollowDraftsArgs& a) {
  for (int64_t number = 0; number < a.spans; ++number) follow_span(a, number);
}

}  // namespace banyan::portable
