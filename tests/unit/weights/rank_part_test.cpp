// How weights are divided among ranks.
#include "weights/rank_part.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace banyan::rank_part_test {
namespace {

TEST(Shard, EveryUnitHasOneOwnerAndSharesDifferByOneAtMost) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    for (int64_t units = ranks; units <= 20; ++units) {
      int64_t next = 0;
      for (int index = 0; index < ranks; ++index) {
        UnitRange own = units_of(units, {index, ranks});
        EXPECT_EQ(own.begin, next);
        EXPECT_GE(own.count, units / ranks);
        EXPECT_LE(own.count, (units + ranks - 1) / ranks);
        for (int64_t u = own.begin; u < own.end(); ++u) EXPECT_EQ(u * ranks / units, index);
        next = own.end();
      }
      EXPECT_EQ(next, units);
    }
  }
}

TEST(Shard, AWidthIsCutBetweenBlocksThatQuantisedFormatsKeepWhole) {
  EXPECT_EQ(units_of_width(151936, {0, 2}), 1187);  // of 128
  EXPECT_EQ(units_of_width(192, {0, 2}), 3);        // of 64
  EXPECT_EQ(units_of_width(256, {0, 4}), 4);        // of 64, or ranks would have nothing
  EXPECT_EQ(units_of_width(97, {0, 3}), 97);
}

TEST(RowsOfRank, BlocksAreCutByThemselves) {
  Shard shard = Shard::rows(2, {8, 4, 4});  // q, k and v of two heads of keys
  auto rows = rows_of_rank("qkv", 16, shard, {1, 2});
  ASSERT_TRUE(rows.has_value());
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ((*rows)[0].first, 4);
  EXPECT_EQ((*rows)[0].count, 4);
  EXPECT_EQ((*rows)[1].first, 10);
  EXPECT_EQ((*rows)[2].first, 14);
  EXPECT_EQ((*rows)[2].count, 2);
}

// Four heads, each two rows of a query and one of a gate, for two heads of keys.
TEST(RowsOfRank, RunsAreTakenBlockByBlock) {
  Shard shard = Shard::rows_of_runs(2, 4, {8, 4});
  auto text = [&](Rank rank) {
    std::string all;
    auto ranges = rows_of_rank("q_proj", 12, shard, rank);
    if (!ranges) return ranges.error().message;
    for (RowRange r : *ranges) all += fmt::format("{}+{} ", r.first, r.count);
    return all;
  };
  EXPECT_EQ(text({0, 1}), "0+2 3+2 6+2 9+2 2+1 5+1 8+1 11+1 ");
  EXPECT_EQ(text({1, 2}), "6+2 9+2 8+1 11+1 ");
}

TEST(RowsOfRank, RefusesMoreRanksThanParts) {
  auto rows = rows_of_rank("k_proj", 16, Shard::rows(2), {0, 3});
  ASSERT_FALSE(rows.has_value());
  EXPECT_EQ(rows.error().message, "k_proj has only 2 heads, experts or blocks of columns");
}

TEST(PartOfRank, CutsGroupsOfScalesOnlyWhereBothPiecesCanHaveTheirOwn) {
  auto cut = [](int64_t columns, int64_t units, int64_t group) {
    MatrixSource source{
        .name = "o_proj", .rows = 4, .whole_rows = 4, .shard = Shard::columns(units)};
    return part_of_rank({&source, 1}, columns, {format_named("int4"), group}, {1, 2});
  };
  EXPECT_EQ(cut(256, 2, 128)->form.group, 128);
  EXPECT_EQ(cut(128, 2, 128)->form.group, 64);  // a scale for the row becomes one for each part
  EXPECT_EQ(cut(384, 2, 128)->form.group, 64);
  EXPECT_EQ(cut(384, 2, 128)->columns.begin, 192);
  auto refused = cut(224, 14, 32);  // 112 columns
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "o_proj: columns 112 to 224 of 224 begin or end within a group of 32");
}

}  // namespace
}  // namespace banyan::rank_part_test
