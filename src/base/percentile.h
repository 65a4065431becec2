// Percentiles of sorted samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace banyan {

// Interpolates linearly between the two nearest samples, as numpy does by default. `sorted` is
// ascending; 0 if it is empty.
inline double percentile(const std::vector<double>& sorted, double fraction) {
  if (sorted.empty()) return 0;
  double place = fraction * (sorted.size() - 1);
  auto below = static_cast<size_t>(place);
  size_t above = std::min(below + 1, sorted.size() - 1);
  double part = place - below;
  return sorted[below] + (sorted[above] - sorted[below]) * part;
}

}  // namespace banyan
