// The decays of lightning attention, against ALiBi's published slopes.
#include "nn/lightning_attention.h"

#include <gtest/gtest.h>

namespace banyan::lightning_attention_test {
namespace {

TEST(LightningLogDecays, FollowAlibiAndTheDepthOfTheLayer) {
  std::vector<float> second = lightning_log_decays(4, 1, 20);
  const double slopes[] = {0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8};
  for (size_t h = 0; h < 4; ++h) EXPECT_FLOAT_EQ(second[h], -slopes[h] * 1.00001);
  EXPECT_FLOAT_EQ(lightning_log_decays(4, 0, 20)[0], -0.25 * (1 + 1.0 / 19 + 1e-5));
  EXPECT_FLOAT_EQ(lightning_log_decays(4, 19, 20)[0], -0.25 * (1.0 / 19 + 1e-5));
  EXPECT_FLOAT_EQ(lightning_log_decays(4, 0, 1)[0], -0.25 * 1.00001);
}

TEST(LightningLogDecays, HeadsThatAreNoPowerOfTwoTakeEverySecondSlopeOfTheNext) {
  std::vector<float> decays = lightning_log_decays(6, 1, 2);
  const double slopes[] = {0x1p-2, 0x1p-4, 0x1p-6, 0x1p-8, 0x1p-1, 0x1p-3};
  for (size_t h = 0; h < 6; ++h) EXPECT_FLOAT_EQ(decays[h], -slopes[h] * 1.00001);
}

}  // namespace
}  // namespace banyan::lightning_attention_test
