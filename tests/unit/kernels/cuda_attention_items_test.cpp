// How attention on tensor cores is divided among blocks.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "kernels/cuda/attention_items.h"
#include "unit/kernels/host_warp.h"

namespace banyan::cuda::cuda_attention_items_test {
namespace {

AttentionArgs args_of(const std::vector<SpanArgs>& spans, int64_t q_heads, int64_t kv_heads) {
  return {.q_heads = q_heads,
          .kv_heads = kv_heads,
          .head_dim = 128,
          .value_dim = 128,
          .spans = spans.data(),
          .span_count = std::ssize(spans)};
}

TEST(AttentionItems, BlocksComputeEveryPartOfEveryTileOnce) {
  const std::vector<SpanArgs> spans = {
      {.row_count = 1, .first_position = 1500},
      {.row_count = 40, .first_position = 0},
      {.row_count = 9, .first_position = 510},
  };
  AttentionArgs args = args_of(spans, 24, 3);
  for (int64_t window : {0, 600}) {
    args.window = window;
    for (bool split : {false, true}) {
      std::map<std::tuple<int64_t, int, int, int>, int> computed;
      for (int64_t block = 0; block < 7; ++block) {
        for_attention_items<64>(HostWarp(), args, split, block, 7, [&](const AttentionItem& item) {
          EXPECT_TRUE(!split || item.parts.end - item.parts.begin == 1);
          for (int part = item.parts.begin; part < item.parts.end; ++part) {
            ++computed[{item.span, item.kv_head, item.row, part}];
          }
        });
      }
      // Rows: 8, 320 and 72; parts: 5 (of keys from 901 on: 2), 1 and 3.
      size_t parts = (window == 0 ? 5 : 2) + 5 * 1 + 2 * 3;
      EXPECT_EQ(computed.size(), 3 * parts);
      for (const auto& [what, times] : computed) EXPECT_EQ(times, 1);
    }
  }
}

TEST(AttentionItems, OfMoreSpansThanAWarpHasLanes) {
  std::vector<SpanArgs> spans;
  for (int s = 0; s < 100; ++s) spans.push_back({.row_count = s % 3, .first_position = 40 * s});
  AttentionArgs args = args_of(spans, 8, 2);
  for (bool split : {false, true}) {
    std::map<std::tuple<int, int, int>, int> computed;
    for (int64_t block = 0; block < 5; ++block) {
      for_attention_items<64>(HostWarp(), args, split, block, 5, [&](const AttentionItem& item) {
        int32_t before = 0;
        for (int32_t s = 0; split && s < item.span; ++s) {
          before += static_cast<int32_t>(part_results(args, spans[static_cast<size_t>(s)]));
        }
        EXPECT_EQ(item.results, before);
        for (int32_t p = item.parts.begin; p < item.parts.end; ++p) {
          ++computed[{item.span, item.kv_head, p}];
        }
      });
    }
    size_t expected = 0;
    for (const SpanArgs& span : spans) {
      PartRange parts = parts_of(keys_of(args, span));
      if (span.row_count > 0) expected += 2 * static_cast<size_t>(parts.end - parts.begin);
    }
    EXPECT_EQ(computed.size(), expected);
    for (const auto& [what, times] : computed) EXPECT_EQ(times, 1);
  }
}

TEST(AttentionItems, PartsFollowEachOther) {
  for (int32_t key = 0; key < 9000; ++key) {
    int32_t part = part_of(key);
    EXPECT_TRUE(key >= part_begin(part) && key < part_begin(part + 1)) << key;
  }
  EXPECT_EQ(part_begin(4), 1024);
  EXPECT_EQ(part_begin(5), 1536);
}

TEST(AttentionItems, EveryResultHasAPlaceOfItsOwn) {
  const std::vector<SpanArgs> spans = {{.row_count = 3, .first_position = 1400},
                                       {.row_count = 1, .first_position = 700}};
  AttentionArgs args = args_of(spans, 6, 2);
  AttentionPlan plan = attention_plan(args, 64, 264);
  EXPECT_TRUE(plan.split);
  std::set<int64_t> places;
  for_attention_items<64>(HostWarp(), args, true, 0, 1, [&](const AttentionItem& item) {
    const SpanArgs& span = spans[static_cast<size_t>(item.span)];
    for (int64_t row = item.row; row < least(query_rows(args, span), item.row + 64); ++row) {
      places.insert(part_offset(args, span, item.results, item.kv_head, row, item.parts.begin));
    }
  });
  EXPECT_EQ(std::ssize(places), plan.results);
  EXPECT_EQ(plan.results, 3 * 6 * 5 + 6 * 3);  // tokens, heads, parts
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), (plan.results - 1) * part_floats(args));
}

TEST(AttentionItems, RowsAreSplitWhereTheyAreFewAndLong) {
  auto splits = [](int sequences, int rows, int past) {
    std::vector<SpanArgs> spans(static_cast<size_t>(sequences),
                                {.row_count = rows, .first_position = past});
    return attention_plan(args_of(spans, 32, 8), 64, 264).split;
  };
  EXPECT_TRUE(splits(1, 1, 1000));
  EXPECT_TRUE(splits(32, 1, 8000));
  EXPECT_FALSE(splits(1, 1, 200));       // one part
  EXPECT_FALSE(splits(33, 1, 8000));     // 264 tiles
  EXPECT_FALSE(splits(1, 8192, 0));      // 512 tiles of each head
  EXPECT_FALSE(splits(1, 512, 130000));  // more results than scratch memory holds
}

TEST(AttentionItems, TokensThatSelectKeysShareNoTile) {
  KeyRun run = {};
  int32_t count = 1;
  std::vector<SpanArgs> spans = {{.row_count = 5, .first_position = 100}};
  AttentionArgs args = args_of(spans, 20, 1);
  EXPECT_EQ(query_rows(args, spans[0]), 100);
  args.selected = {.runs = &run, .run_counts = &count, .key_counts = &count};
  EXPECT_EQ(query_rows(args, spans[0]), 5 * 64);
}

}  // namespace
}  // namespace banyan::cuda::cuda_attention_items_test
