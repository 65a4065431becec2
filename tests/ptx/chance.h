// What happens by chance, from a seed: splitmix64.
#pragma once

#include <cstdint>

namespace banyan::ptx {

class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}
  uint64_t below(uint64_t end) {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (z ^ z >> 31) % end;
  }
  bool one_in(uint64_t count) { return below(count) == 0; }

 private:
  uint64_t state_;
};

}  // namespace banyan::ptx
