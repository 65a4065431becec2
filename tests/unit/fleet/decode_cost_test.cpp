// The LongCat-Flash report's figures. Its tables 6 and 7 are pictures in the copy that we have, so
// these are the ones that its text repeats, that follow from what the text gives, or that the
// model's authors published as text (lmsys.org/blog/2025-09-01-sglang-longcat-flash).
#include "fleet/decode_cost.h"

#include <gtest/gtest.h>

namespace banyan::decode_cost_test {
namespace {

// 96 sequences of a device, one draft of which 80% are kept, 40 GB/s, 2 dollars an hour.
const DecodeSetting kReport;

TEST(DecodeCost, RowsTravelAsTable7Says) {
  DecodeShape longcat = {.layers = 28, .hidden = 6144, .experts_per_token = 8};
  DecodeShape deepseek = {.layers = 61, .hidden = 7168, .experts_per_token = 8};
  DecodeShape qwen = {.layers = 94, .hidden = 4096, .experts_per_token = 8};
  EXPECT_NEAR(decode_cost(longcat, kReport).dispatch_s * 1e6, 236, 0.5);
  EXPECT_NEAR(decode_cost(longcat, kReport).combine_s * 1e6, 472, 0.5);
  EXPECT_NEAR(decode_cost(deepseek, kReport).dispatch_s * 1e6, 275, 0.5);
  EXPECT_NEAR(decode_cost(deepseek, kReport).combine_s * 1e6, 551, 0.6);
  EXPECT_NEAR(decode_cost(qwen, kReport).dispatch_s * 1e6, 157, 0.5);
  EXPECT_NEAR(decode_cost(qwen, kReport).combine_s * 1e6, 315, 0.5);
}

// Measured: 26 ms, "about 61.5%" of the limit.
TEST(DecodeCost, LongCatsLimitIs16Milliseconds) {
  DecodeShape longcat = {.layers = 28,
                         .hidden = 6144,
                         .experts_per_token = 8,
                         .exposed_s = 264e-6,
                         .overlapped_s = 264e-6,
                         .experts_s = 60e-6};
  DecodeCost limit = decode_cost(longcat, kReport);
  EXPECT_NEAR(limit.tpot_s * 1e3, 16, 0.1);
  EXPECT_NEAR(limit.dollars_per_million, 0.09, 0.005);
  DecodeSetting measured = kReport;
  measured.reached = 0.615;
  EXPECT_NEAR(decode_cost(longcat, measured).tpot_s * 1e3, 26, 0.2);
}

// Table 6: output tokens a second of a device and of a user, on 128 H800.
TEST(DecodeCost, ThroughputHasItsPrice) {
  EXPECT_NEAR(dollars_per_million(804, 2), 0.70, 0.01) << "at 100.5 tokens/s of a user";
  EXPECT_NEAR(dollars_per_million(2205, 2), 0.25, 0.005) << "at 68.9";
  DecodeShape any = {.layers = 28, .hidden = 6144, .experts_per_token = 8, .exposed_s = 1e-3};
  DecodeCost cost = decode_cost(any, kReport);
  EXPECT_DOUBLE_EQ(cost.tokens_per_s_of_device, 96 * cost.tokens_per_s_of_user);
  EXPECT_DOUBLE_EQ(cost.dollars_per_million, dollars_per_million(cost.tokens_per_s_of_device, 2));
}

TEST(DecodeCost, WhatComputesWhileRowsTravelCountsWhereItTakesLonger) {
  DecodeShape shape = {.layers = 10, .hidden = 4096, .experts_per_token = 8, .experts_s = 1e-5};
  DecodeCost exchange = decode_cost(shape, kReport);
  shape.overlapped_s = exchange.dispatch_s + exchange.combine_s;
  EXPECT_DOUBLE_EQ(decode_cost(shape, kReport).layer_s, exchange.layer_s);
  shape.overlapped_s += 1e-4;
  EXPECT_NEAR(decode_cost(shape, kReport).layer_s, exchange.layer_s + 1e-4, 1e-12);
}

TEST(DecodeCost, RefusesSettingsWithoutASense) {
  EXPECT_TRUE(kReport.validate());
  DecodeSetting all = kReport;
  all.acceptance = 1.1;
  EXPECT_FALSE(all.validate());
  DecodeSetting none = kReport;
  none.reached = 0;
  EXPECT_FALSE(none.validate());
}

}  // namespace
}  // namespace banyan::decode_cost_test
