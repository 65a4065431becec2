// A stable sort whose comparison can fail, and which stays in bounds whatever the comparison says
// (values that are not a number have no consistent order).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace banyan::jinja {

// Merges runs of doubling length. `less(a, b)` gives Result<bool>; its first error ends the sort
// and leaves `items` in some order.
template <class T, class Less>
Status merge_sort(std::vector<T>& items, Less less) {
  std::vector<T> merged(items.size());
  for (size_t run = 1; run < items.size(); run *= 2) {
    for (size_t start = 0; start < items.size(); start += 2 * run) {
      size_t left = start, middle = std::min(start + run, items.size());
      size_t right = middle, end = std::min(start + 2 * run, items.size());
      for (size_t to = start; to < end; ++to) {
        bool take_right = left == middle;
        if (!take_right && right < end) take_right = TRY(less(items[right], items[left]));
        merged[to] = items[take_right ? right++ : left++];
      }
    }
    std::swap(items, merged);
  }
  return {};
}

}  // namespace banyan::jinja
