#include "support/numpy_random.h"

#include <array>
#include <bit>

#include "base/check.h"

namespace banyan::test {
namespace {

using Pool = std::array<uint32_t, 4>;

// One word after another is scrambled by a constant that changes with each.
class Scrambler {
 public:
  Scrambler(uint32_t constant, uint32_t factor) : constant_(constant), factor_(factor) {}

  uint32_t operator()(uint32_t value) {
    value ^= constant_;
    constant_ *= factor_;
    value *= constant_;
    return value ^ value >> 16;
  }

 private:
  uint32_t constant_;
  uint32_t factor_;
};

uint32_t mix(uint32_t x, uint32_t y) {
  uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;
  return mixed ^ mixed >> 16;
}

Pool pool_of(std::span<const uint32_t> seed) {
  Pool pool{};
  CHECK(seed.size() <= pool.size(), "{} words", seed.size());
  Scrambler scramble(0x43b0d7e5u, 0x931e8875u);
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = scramble(i < seed.size() ? seed[i] : 0);
  for (size_t from = 0; from < pool.size(); ++from) {
    for (size_t to = 0; to < pool.size(); ++to) {
      if (from != to) pool[to] = mix(pool[to], scramble(pool[from]));
    }
  }
  return pool;
}

}  // namespace

NumpyRandom::NumpyRandom(std::span<const uint32_t> seed) {
  Pool pool = pool_of(seed);
  Scrambler scramble(0x8b51f9ddu, 0x58f38dedu);
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < 2 * words.size(); ++i) {
    words[i / 2] |= uint64_t{scramble(pool[i % pool.size()])} << (i % 2 * 32);
  }
  increment_ = (Wide{words[2]} << 64 | words[3]) << 1 | 1;
  next64();
  state_ += Wide{words[0]} << 64 | words[1];
  next64();
}

uint64_t NumpyRandom::next64() {
  constexpr Wide kFactor = Wide{0x2360ed051fc65da4u} << 64 | 0x4385df649fccf645u;
  state_ = state_ * kFactor + increment_;
  auto folded = static_cast<uint64_t>(state_ >> 64 ^ state_);
  return std::rotr(folded, static_cast<int>(state_ >> 122));
}

uint32_t NumpyRandom::next32() {
  has_upper_half_ = !has_upper_half_;
  if (!has_upper_half_) return upper_half_;
  uint64_t word = next64();
  upper_half_ = static_cast<uint32_t>(word >> 32);
  return static_cast<uint32_t>(word);
}

float NumpyRandom::uniform() {
  return static_cast<float>(next32() >> 8) * 0x1p-24f;
}

uint32_t crc32_of(std::string_view text) {
  uint32_t crc = ~0u;
  for (unsigned char c : text) {
    crc ^= c;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 0 ? 0 : 0xedb88320u);
  }
  return ~crc;
}

}  // namespace banyan::test
