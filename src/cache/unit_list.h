// The free list of one class of units (pages or slots). A stack, so that the most recently freed
// unit, whose memory is likely still in cache, is reused first. Engine's thread only.
#pragma once

#include <cstdint>
#include <vector>

namespace banyan {

class UnitList {
 public:
  explicit UnitList(int64_t units);

  int64_t free_count() const { return static_cast<int64_t>(free_.size()); }
  int64_t total() const { return total_; }
  // Requires free_count() > 0.
  int32_t take();
  void give_back(int32_t unit);

 private:
  std::vector<int32_t> free_;
  int64_t total_;
};

}  // namespace banyan
