// A stable sort whose comparison can fail. It stays in bounds even for an inconsistent comparison,
// as with NaN.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace banyan::jinja {

// Merges runs of doubling length. `less(a, b)` returns Result<bool>; its first error aborts the
// sort and leaves `items` in an unspecified order.
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
