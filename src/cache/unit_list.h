// The units (pages or slots) of one class that nobody holds. A stack: the unit given back last is
// taken first, since it is the warmest.
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
