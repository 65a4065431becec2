#include "cache/state_pools.h"

#include <gtest/gtest.h>

#include <set>

namespace banyan {
namespace {

TEST(StatePools, HoldEveryPageOfEveryState) {
  StateSpec keys{.name = "keys", .dtype = DType::kBF16, .heads = 2, .width = 24};
  StateSpec values{.name = "values", .dtype = DType::kF32, .heads = 1, .width = 8};
  auto pools = StatePools::create({keys, values}, 4, 10);
  ASSERT_TRUE(pools.has_value());
  EXPECT_EQ(pools->pages(), 10);
  EXPECT_EQ(pools->page_size_tokens(), 4);
  for (StateId id : {0, 1}) {
    auto* bytes = static_cast<char*>(pools->pool(id));
    size_t size = pools->spec(id).bytes() * 4 * 10;
    EXPECT_EQ(bytes[0], 0);
    bytes[size - 1] = 1;
  }
  std::vector<StateSpec> specs = {keys, values};
  EXPECT_EQ(state_bytes_per_token(specs), 2u * 24 * 2 + 8 * 4);
  EXPECT_EQ(state_bytes_per_sequence(specs), 0u);
}

TEST(StatePools, RefuseWhatIsNotKeptYetByName) {
  auto refusal = [](StateSpec spec) {
    auto pools = StatePools::create({spec}, 4, 1);
    return pools ? std::string() : pools.error().message;
  };
  StateSpec slot{.name = "a.recurrent", .unit = StateUnit::kSlot, .width = 4};
  StateSpec window{.name = "a.window", .reach = StateReach::kWindow, .width = 4};
  StateSpec ahead{.name = "a.draft", .lookahead_tokens = 1, .width = 4};
  EXPECT_NE(refusal(slot).find("a.recurrent"), std::string::npos);
  EXPECT_NE(refusal(window).find("a.window"), std::string::npos);
  EXPECT_NE(refusal(ahead).find("a.draft: states that look 1 tokens ahead"), std::string::npos);
}

TEST(PageList, HandsOutEachPageOnce) {
  PageList list(5);
  std::set<int32_t> pages;
  while (list.free_count() > 0) pages.insert(list.take());
  EXPECT_EQ(pages, (std::set<int32_t>{0, 1, 2, 3, 4}));
  list.give_back(3);
  EXPECT_EQ(list.take(), 3);
}

TEST(PageListDeathTest, AbortsWhenThereIsNoPageLeft) {
  PageList list(0);
  EXPECT_DEATH(list.take(), "CHECK failed");
}

}  // namespace
}  // namespace banyan
