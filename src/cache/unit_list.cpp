#include "cache/unit_list.h"

#include "base/check.h"
#include "base/signed.h"

namespace banyan {

UnitList::UnitList(int64_t units) : total_(units) {
  free_.reserve(as_size(units));
  for (int64_t unit = units - 1; unit >= 0; --unit) free_.push_back(static_cast<int32_t>(unit));
}

int32_t UnitList::take() {
  CHECK(!free_.empty());
  int32_t unit = free_.back();
  free_.pop_back();
  return unit;
}

void UnitList::give_back(int32_t unit) {
  CHECK(unit >= 0 && unit < total_ && free_count() < total_);
  free_.push_back(unit);
}

}  // namespace banyan
