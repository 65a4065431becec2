#include "weights/random_weights.h"

#include <cmath>

namespace banyan {
namespace {

constexpr float kDeviation = 0.02f;

uint64_t name_seed(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

}  // namespace

void random_elements(std::string_view name, int64_t begin, int64_t count, float center, float* to) {
  uint64_t seed = name_seed(name);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t z = seed + static_cast<uint64_t>(begin + i) * 0x9e3779b97f4a7c15u;  // SplitMix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    auto unit = static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;  // [0, 1)
    to[i] = center + (2 * unit - 1) * kDeviation * std::sqrt(3.0f);
  }
}

}  // namespace banyan
