#include "weights/random_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/signed.h"

namespace banyan {
namespace {

constexpr float kDeviation = 0.02f;

uint64_t name_seed(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

uint64_t random_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + index * 0x9e3779b97f4a7c15u;  // SplitMix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr int64_t kWordBytes = sizeof(uint64_t);

// Turns random bits into codes, eight at a time, since billions are generated.
class CodeWords {
 public:
  explicit CodeWords(const RandomCodes& codes)
      : keep_(kOnes * static_cast<uint8_t>(~codes.clear)),
        set_(kOnes * codes.set),
        unpaired_(kOnes * codes.unpaired),
        change_(kOnes * (codes.unpaired ^ codes.zero)) {}

  uint64_t operator()(uint64_t bits) const {
    constexpr uint64_t kLow = kOnes * 0x7f;
    uint64_t word = (bits & keep_) | set_;
    uint64_t other = word ^ unpaired_;
    // The highest bit of every zero byte of `other`.
    uint64_t equal = ~(((other & kLow) + kLow) | other | kLow);
    return word ^ (((equal >> 7) * 0xff) & change_);
  }

 private:
  static constexpr uint64_t kOnes = 0x0101010101010101u;
  uint64_t keep_, set_, unpaired_, change_;
};

}  // namespace

void random_elements(std::string_view name, int64_t begin, int64_t count, float center, float* to) {
  uint64_t seed = name_seed(name);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t bits = random_bits(seed, static_cast<uint64_t>(begin + i));
    auto unit = static_cast<float>(bits >> 40) * 0x1p-24f;  // [0, 1)
    to[i] = center + (2 * unit - 1) * kDeviation * std::sqrt(3.0f);
  }
}

void random_codes(std::string_view name, int64_t begin, int64_t count, const RandomCodes& codes,
                  uint8_t* to) {
  uint64_t seed = name_seed(name);
  CodeWords words(codes);
  int64_t end = begin + count;
  for (int64_t at = begin; at < end;) {
    uint64_t word = words(random_bits(seed, static_cast<uint64_t>(at / kWordBytes)));
    int64_t skipped = at % kWordBytes;
    if (skipped == 0 && end - at >= kWordBytes) {
      std::memcpy(to + (at - begin), &word, kWordBytes);
      at += kWordBytes;
      continue;
    }
    uint8_t bytes[kWordBytes];
    std::memcpy(bytes, &word, kWordBytes);
    int64_t some = std::min(kWordBytes - skipped, end - at);
    std::memcpy(to + (at - begin), bytes + skipped, as_size(some));
    at += some;
  }
}

float random_scale(const RandomCodes& codes) {
  return std::exp2(std::round(std::log2(kDeviation / codes.deviation)));
}

}  // namespace banyan
