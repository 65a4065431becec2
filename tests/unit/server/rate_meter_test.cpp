#include "server/status/rate_meter.h"

#include <gtest/gtest.h>

namespace banyan::rate_meter_test {
namespace {

using std::chrono::milliseconds;

// A chunk of 2,048 tokens a second, read each 100 ms.
TEST(RateMeter, IsNotMisledByReadingMoreOftenThanTheCounterMoves) {
  RateMeter meter;
  for (int i = 0; i < 50; ++i)
    meter.observe(true, i / 10 * 2048, RateMeter::Time(milliseconds(100 * i)));
  EXPECT_NEAR(meter.per_s(), 2048, 1);
}

TEST(RateMeter, LeavesOutTimesWithoutWork) {
  RateMeter meter;
  meter.observe(true, 0, RateMeter::Time(milliseconds(0)));
  meter.observe(true, 100, RateMeter::Time(milliseconds(100)));
  EXPECT_EQ(meter.per_s(), 0) << "when the first 100 began is not known";
  meter.observe(true, 200, RateMeter::Time(milliseconds(200)));
  EXPECT_DOUBLE_EQ(meter.per_s(), 1000);
  meter.observe(false, 200, RateMeter::Time(milliseconds(5000)));
  meter.observe(true, 250, RateMeter::Time(milliseconds(9000)));
  meter.observe(true, 300, RateMeter::Time(milliseconds(9100)));
  EXPECT_DOUBLE_EQ(meter.per_s(), 1000);
}

}  // namespace
}  // namespace banyan::rate_meter_test
