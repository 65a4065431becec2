// Which prefix is worth loading, computed from descriptions, without a tree or a store.
#include "engine/tiers/restore_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/states.h"

namespace banyan::restore_plan_test {
namespace {

constexpr int64_t kPage = 4;

StateSpec path_state() {
  return {.name = "keys", .width = 4};
}

// Pages of which memory and the store have these classes; "-" none, digits the classes.
PrefixUnits units(std::initializer_list<const char*> resident,
                  std::initializer_list<const char*> stored) {
  auto bits = [](std::initializer_list<const char*> pages) {
    std::vector<uint8_t> all;
    for (std::string_view page : pages) {
      uint8_t bit = 0;
      for (char c : page) bit |= static_cast<uint8_t>(c == '-' ? 0 : 1 << (c - '0'));
      all.push_back(bit);
    }
    return all;
  };
  return {.resident = bits(resident), .stored = bits(stored)};
}

struct Case {
  StateClasses classes;
  UnitCounts unit_bytes = {1000, 1000, 1000};
  UnitCounts room = {100, 100, 100};
};

// Where nothing is as slow as computing.
RestorePlan plan_of(const Case& c, const PrefixUnits& units, int64_t base) {
  return plan_restore({.classes = c.classes,
                       .unit_bytes = c.unit_bytes,
                       .units = units,
                       .base = base,
                       .length = 1000,
                       .room = c.room},
                      LayerCosts(LoadCost(0, 1e15), 1), PrefillCost(1e6, 0, 1e6));
}

TEST(RestorePlan, LoadsPagesWithoutAGap) {
  Case c{.classes = test::classes_of({path_state()}, kPage)};
  EXPECT_EQ(plan_of(c, units({"0", "-", "-", "-"}, {"-", "0", "0", "-"}), 4).end, 12);
  EXPECT_EQ(plan_of(c, units({"0", "-", "-", "-"}, {"-", "-", "0", "0"}), 4).end, 0);
  EXPECT_EQ(plan_of(c, units({"0", "-"}, {"0", "0"}), 4).bytes[0], 1000)
      << "what is there is not read";
}

TEST(RestorePlan, TakesNoMoreUnitsThanThereIsRoomFor) {
  Case c{.classes = test::classes_of({path_state()}, kPage)};
  c.room[kPathClass] = 2;
  EXPECT_EQ(plan_of(c, units({"-", "-", "-", "-"}, {"0", "0", "0", "0"}), 0).end, 8);
}

// A window of 6 tokens: to resume at 16 the pages from 8 on are needed.
TEST(RestorePlan, LoadsPagesOfAWindowOnlyWithinItsReach) {
  Case c{.classes = test::classes_of({path_state(), test::window_state(6)}, kPage)};
  PrefixUnits all = units({"-", "-", "-", "-"}, {"01", "01", "01", "01"});
  RestorePlan plan = plan_of(c, all, 0);
  EXPECT_EQ(plan.end, 16);
  EXPECT_EQ(plan.bytes[0], 6000);
  std::vector<RestoreUnit> needed = units_to_load(c.classes, all, 16);
  std::vector<int64_t> windows;
  for (const RestoreUnit& u : needed) {
    if (u.unit_class == 1) windows.push_back(u.page);
  }
  EXPECT_EQ(windows, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(plan_of(c, units({"-", "-", "-", "-"}, {"01", "0", "01", "01"}), 0).end, 16)
      << "page 1 is out of reach";
  EXPECT_EQ(plan_of(c, units({"-", "-", "-", "-"}, {"01", "01", "0", "01"}), 0).end, 8)
      << "no window at 12 nor at 16";
}

TEST(RestorePlan, ResumesARecurrentModelAtASnapshotAlone) {
  Case c{.classes = test::classes_of({path_state(), test::slot_state(8)}, kPage)};
  EXPECT_EQ(
      plan_of(c, units({"-", "-", "-", "-", "-", "-"}, {"0", "01", "0", "01", "0", "0"}), 0).end,
      16);
  EXPECT_EQ(plan_of(c, units({"-", "-"}, {"0", "0"}), 0).end, 0) << "pages alone are worth nothing";
  EXPECT_EQ(plan_of(c, units({"0", "0"}, {"-", "1"}), 0).bytes[0], 1000)
      << "only the snapshot was evicted";
}

TEST(RestorePlan, LeavesShortGainsAlone) {
  Case c{.classes = test::classes_of({path_state()}, kPage)};
  PrefixUnits all = units({"-", "-"}, {"0", "0"});
  RestoreQuestion question{.classes = c.classes,
                           .unit_bytes = c.unit_bytes,
                           .units = all,
                           .length = 8,
                           .tokens_min = 9,
                           .room = c.room};
  EXPECT_EQ(plan_restore(question, LayerCosts(LoadCost(0, 1e15), 1), PrefillCost(1e6, 0, 1e6)).end,
            0);
}

// 114,688 bytes a token as Qwen3-0.6B, computed at 700 tokens/s; 32k tokens of which every part may
// be in the store. Whatever the device does, the first token comes at most a tenth later than with
// the better of loading and computing.
TEST(RestorePlan, IsNeverMuchWorseThanTheBetterOfLoadingAndComputing) {
  constexpr int64_t kTokens = 32768;
  Case c{.classes = test::classes_of({path_state()}, 64)};
  c.unit_bytes = {64 * 114688};
  c.room = {kTokens};
  PrefillCost prefill(1, 1.0 / kTokens, 1000);
  for (int64_t stored : {int64_t{1024}, int64_t{8192}, kTokens}) {
    PrefixUnits all;
    all.resident.assign(kTokens / 64, 0);
    all.stored.assign(kTokens / 64, 0);
    std::fill_n(all.stored.begin(), stored / 64, uint8_t{1});
    bool loads = false, computes = false;
    for (double rate = 10e6; rate < 2.5e9; rate *= 1.1) {
      LayerCosts load(LoadCost(1e-3, rate), 1);
      RestorePlan plan = plan_restore({.classes = c.classes,
                                       .unit_bytes = c.unit_bytes,
                                       .units = all,
                                       .length = kTokens + 64,
                                       .room = c.room},
                                      load, prefill);
      auto first_token_s = [&](int64_t end) {
        double load_s = end > 0 ? load.seconds({end / 64 * c.unit_bytes[0]}, {}) : 0;
        return load_s + prefill.seconds(end, kTokens + 64);
      };
      EXPECT_LE(first_token_s(plan.end), 1.1 * std::min(first_token_s(0), first_token_s(stored)))
          << rate << " bytes/s";
      loads |= plan.end > 0;
      computes |= plan.end == 0 && plan.too_dear;
    }
    EXPECT_TRUE(loads);
    EXPECT_TRUE(computes);
  }
}

// The tail of a prompt is in a shared store alone: it is worth its own way, not the disk's.
TEST(RestorePlan, KnowsHowFastEachLayerIs) {
  Case c{.classes = test::classes_of({path_state()}, kPage)};
  PrefixUnits all = units({"-", "-", "-", "-"}, {"0", "0", "0", "0"});
  all.layers = {{0}, {0}, {1}, {1}};
  RestoreQuestion question{
      .classes = c.classes, .unit_bytes = c.unit_bytes, .units = all, .length = 17, .room = c.room};
  PrefillCost prefill(1, 0, 100);  // 10 ms a token, where a page of 1,000 bytes has four
  LayerCosts costs(LoadCost(0, 1e6), 2);
  EXPECT_EQ(plan_restore(question, costs, prefill).end, 16);
  costs.of(1) = LoadCost(0, 10e3);  // 200 ms for what takes 80 to compute
  EXPECT_EQ(plan_restore(question, costs, prefill).end, 8);
  question.bytes_ahead = {1'000'000, 0};
  EXPECT_EQ(plan_restore(question, costs, prefill).end, 0) << "others load from the disk first";
}

TEST(Rates, FollowWhatIsMeasured) {
  LoadCost load(0, 1e6);
  load.observe_read(100, 1);
  EXPECT_DOUBLE_EQ(load.bytes_per_s(), 1e6) << "too little to tell";
  load.observe_read(1 << 20, 0.5);
  EXPECT_DOUBLE_EQ(load.bytes_per_s(), 2 << 20) << "the first measurement replaces a guess";
  for (int i = 0; i < 100; ++i) load.observe_read(1 << 20, 1);
  EXPECT_NEAR(load.bytes_per_s(), 1 << 20, 1);
  PrefillCost prefill(2, 1, 1);
  EXPECT_DOUBLE_EQ(prefill.operations(0, 4), 8 + 8);
  prefill.observe(100, 1);
  EXPECT_DOUBLE_EQ(prefill.seconds(0, 4), 0.16);
}

}  // namespace
}  // namespace banyan::restore_plan_test
