// Random words for sampling: Philox (base/random.h) with one counter in every other dword. A
// product multiplies the even dwords and fills both dwords of each. The odd dwords are never read
// between rounds.
#pragma once

#include "kernels/draw.h"

namespace banyan::simd {

// One counter per quadword of a register.
template <class V>
struct PhiloxLanes {
  using I = typename V::I;
  static constexpr int32_t kMultiplier0 = static_cast<int32_t>(0xD2511F53u);
  static constexpr int32_t kMultiplier1 = static_cast<int32_t>(0xCD9E8D57u);
  static constexpr uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  static constexpr int kRounds = 10;

  I words[4];

  void round(I key0, I key1) {
    I product0 = V::multiply_even_dwords(words[0], V::set_dword(kMultiplier0));
    I product1 = V::multiply_even_dwords(words[2], V::set_dword(kMultiplier1));
    words[0] = V::bit_xor(V::bit_xor(V::odd_dwords(product1), words[1]), key0);
    words[2] = V::bit_xor(V::bit_xor(V::odd_dwords(product0), words[3]), key1);
    words[1] = product1;
    words[3] = product0;
  }
};

template <class V>
bool noise_words(const NoiseArgs& a) {
  using Lanes = PhiloxLanes<V>;
  auto set = [](uint64_t x) { return V::set_dword(static_cast<int32_t>(x)); };
  uint32_t some = 0;
  auto position = static_cast<uint64_t>(a.noise.position);
  for (int64_t j = 0; j < kNoiseQuads; j += V::kLanes) {
    auto quads = V::add_dwords(V::dword_numbers(), set(a.first_quad + static_cast<uint64_t>(j)));
    Lanes even = {{set(position), set(position >> 32), set(a.noise.sample_index), quads}};
    Lanes odd = even;
    odd.words[3] = V::odd_dwords(quads);
    auto key0 = static_cast<uint32_t>(a.noise.seed);
    auto key1 = static_cast<uint32_t>(a.noise.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < Lanes::kRounds; ++round) {
      even.round(set(key0), set(key1));
      odd.round(set(key0), set(key1));
      key0 += Lanes::kWeyl0;
      key1 += Lanes::kWeyl1;
    }
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      auto words = V::join_dwords(even.words[k], odd.words[k]);
      V::store_dwords(a.words + k * kNoiseQuads + j, words);
      some |= V::dwords_from(words, set(a.least));
    }
  }
  return some != 0;
}

template <class V>
void draw(const DrawArgs& args) {
  draw_rows(args, noise_words<V>);
}

}  // namespace banyan::simd
