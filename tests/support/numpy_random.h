// What numpy's default_rng draws, bit for bit: PCG64 (O'Neill, "PCG: A Family of Simple Fast
// Space-Efficient Statistically Good Algorithms", 2014), seeded by numpy's SeedSequence.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace banyan::test {

class NumpyRandom {
 public:
  // default_rng([words...]). At most four words, which is what the tests need.
  explicit NumpyRandom(std::span<const uint32_t> seed);

  uint64_t next64();
  // Both halves of a word are used, the lower first.
  uint32_t next32();
  // random(dtype=float32): at least 0, less than 1.
  float uniform();

 private:
  using Wide = unsigned __int128;

  Wide state_ = 0;
  Wide increment_ = 0;
  uint32_t upper_half_ = 0;
  bool has_upper_half_ = false;
};

// zlib.crc32 of the text.
uint32_t crc32_of(std::string_view text);

}  // namespace banyan::test
