// The free list of units: every unit once, and CHECKs against misuse.
#include "cache/unit_list.h"

#include <gtest/gtest.h>

#include <set>

namespace banyan::unit_list_test {
namespace {

TEST(UnitList, HandsOutEachUnitOnce) {
  UnitList list(5);
  std::set<int32_t> units;
  while (list.free_count() > 0) units.insert(list.take());
  EXPECT_EQ(units, (std::set<int32_t>{0, 1, 2, 3, 4}));
  list.give_back(3);
  EXPECT_EQ(list.take(), 3);
}

TEST(UnitListDeathTest, AbortsOnWhatIsNotThere) {
  UnitList none(0);
  EXPECT_DEATH(none.take(), "CHECK failed");
  UnitList one(1);
  EXPECT_DEATH(one.give_back(0), "CHECK failed") << "nobody took it";
}

}  // namespace
}  // namespace banyan::unit_list_test
