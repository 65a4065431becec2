// Remembers pages that were computed once, after memory has evicted them, so that a second use is
// recognised. Keeps half of each key, in memory that is allocated once; the oldest entries make
// room.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cache/page_key.h"

namespace banyan {

class SeenPages {
 public:
  // The approximate number of pages to remember; 0: none.
  explicit SeenPages(int64_t pages) : rows_((pages + kWays - 1) / kWays) {}

  void note(const PageKey& page) {
    if (rows_.empty() || has(page)) return;
    Row& row = row_of(page);
    for (size_t i = kWays - 1; i > 0; --i) row[i] = row[i - 1];
    row[0] = word(page, 8);
  }
  bool has(const PageKey& page) const {
    if (rows_.empty()) return false;
    uint64_t wanted = word(page, 8);
    for (uint64_t seen : rows_[word(page, 0) % rows_.size()]) {
      if (seen == wanted) return true;
    }
    return false;
  }

 private:
  static constexpr int64_t kWays = 8;
  using Row = std::array<uint64_t, kWays>;

  static uint64_t word(const PageKey& page, size_t at) {
    uint64_t value;
    std::memcpy(&value, page.bytes.data() + at, sizeof value);
    return value;
  }
  Row& row_of(const PageKey& page) { return rows_[word(page, 0) % rows_.size()]; }

  std::vector<Row> rows_;
};

}  // namespace banyan
