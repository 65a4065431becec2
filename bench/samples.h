// What benchmarks of an engine draw and how they sum up what they timed.
#pragma once

#include <algorithm>
#include <vector>

#include "banyan/engine.h"
#include "base/random.h"

namespace banyan {

// Tokens that no call before has drawn in this order, the same in every run of a program.
inline std::vector<TokenId> random_tokens(int64_t count, int64_t vocabulary) {
  static uint64_t draws = 0;
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<TokenId>(uniform(7, draws++, 0) * static_cast<double>(vocabulary)));
  }
  return tokens;
}

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace banyan
