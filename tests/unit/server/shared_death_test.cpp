// The share of requests in their worker's death.
#include "server/route/shared_death.h"

#include <gtest/gtest.h>

namespace banyan::shared_death_test {
namespace {

using std::chrono::milliseconds;

const SharedDeath::SteadyTime kNow = SharedDeath::SteadyTime() + std::chrono::hours(1);

TEST(SharedDeath, OneRequestAloneIsBlamedWholly) {
  SharedDeath death;
  EXPECT_EQ(death.share(kNow, 0), 1);
}

TEST(SharedDeath, RequestsOfOneDeathShareItInAnyOrder) {
  SharedDeath death;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(death.share(kNow + milliseconds(i), 9 - i), 0.1);
}

TEST(SharedDeath, TheNextDeathIsAnother) {
  SharedDeath death;
  EXPECT_EQ(death.share(kNow, 1), 0.5);
  EXPECT_EQ(death.share(kNow, 0), 0.5);
  EXPECT_EQ(death.share(kNow + milliseconds(501), 0), 1);
}

}  // namespace
}  // namespace banyan::shared_death_test
