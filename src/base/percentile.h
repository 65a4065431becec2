#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace banyan {

// Between the two samples nearest to the fraction, as numpy's default has it. `sorted` ascends; 0
// where it is empty.
inline double percentile(const std::vector<double>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  double place = fraction * static_cast<double>(sorted.size() - 1);
  auto below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, sorted.size() - 1);
  double part = place - static_cast<double>(below);
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

}  // namespace banyan
