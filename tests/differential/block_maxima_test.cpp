// Block scores by the best of a block's keys, of every table: against f64, and against themselves,
// bit for bit, with other parts, page sizes and numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::block_maxima_test {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kLength = 100, kHeads = 3, kWidth = 21, kBlock = 12;
constexpr int64_t kEntries = (kLength - 1) / kBlock + 1;

struct Inputs {
  explicit Inputs(Random& random)
      : q(random.normals(kLength * kHeads * kWidth)), keys(random.normals(kLength * kWidth)) {}
  std::vector<float> q, keys;  // rows dense
};

struct Way {
  int64_t page = 16, chunk = kLength, all_below = 0;
  ThreadPool* threads = nullptr;
};

// The scores of all rows, [rows, heads, entries], NaN where there is none.
std::vector<float> scores_of(const KernelTable& table, DType dtype, const Inputs& x,
                             const Way& way) {
  std::vector<int32_t> pages((kLength + way.page - 1) / way.page);
  std::iota(pages.rbegin(), pages.rend(), 0);
  size_t bytes = pages.size() * way.page * state_row_bytes(dtype, {.width = kWidth});
  std::vector<char> pool(bytes, char(0xff));
  std::vector<float> scores(kLength * kHeads * kEntries, NAN);
  for (int64_t first = 0; first < kLength; first += way.chunk) {
    int64_t count = std::min(way.chunk, kLength - first);
    SpanArgs span = {.row_count = static_cast<int32_t>(count),
                     .first_position = static_cast<int32_t>(first)};
    table.page_write({.x = x.keys.data() + first * kWidth,
                      .x_row_stride = kWidth,
                      .pool = pool.data(),
                      .pool_dtype = dtype,
                      .heads = 1,
                      .width = kWidth,
                      .page_size = way.page,
                      .spans = &span,
                      .span_count = 1,
                      .page_table = pages.data()});
    for (int64_t begin = 0; begin < count;) {  // in two parts
      RowPart part = {begin, begin == 0 ? (count + 1) / 2 : count - begin};
      table.block_maxima({.launch = {.threads = way.threads},
                          .q = x.q.data() + first * kHeads * kWidth,
                          .q_row_stride = kHeads * kWidth,
                          .keys = pool.data(),
                          .key_dtype = dtype,
                          .heads = kHeads,
                          .width = kWidth,
                          .page_size = way.page,
                          .block_tokens = kBlock,
                          .all_below = way.all_below,
                          .scores = scores.data() + (first + begin) * kHeads * kEntries,
                          .entries_max = kEntries,
                          .spans = &span,
                          .span_count = 1,
                          .part = part,
                          .page_table = pages.data()});
      begin += part.count;
    }
  }
  return scores;
}

TEST(BlockMaxima, EveryTableIsNearF64) {
  Random random(1);
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : kPageTypes) {
      Inputs x(random);
      std::vector<float> keys = as_stored(x.keys, dtype, {.width = kWidth});
      std::vector<float> scores = scores_of(*table, dtype, x, {.all_below = 2 * kBlock});
      for (int64_t i = 0; i < kLength * kHeads * kEntries; ++i) {
        int64_t b = i % kEntries, t = i / kEntries / kHeads;
        if (b >= t / kBlock || t < 2 * kBlock) {
          ASSERT_TRUE(std::isnan(scores[i])) << table->name << " row " << t << " block " << b;
          continue;
        }
        double best = -std::numeric_limits<double>::infinity();
        for (int64_t j = b * kBlock; j < (b + 1) * kBlock; ++j) {
          double dot = 0;
          for (int64_t c = 0; c < kWidth; ++c) {
            dot += double{x.q[i / kEntries * kWidth + c]} * double{keys[j * kWidth + c]};
          }
          best = std::max(best, dot);
        }
        ASSERT_NEAR(scores[i], best, 2e-5) << table->name << " " << dtype_name(dtype);
      }
    }
  }
}

TEST(BlockMaxima, ChunksPagesAndThreadsChangeNoBit) {
  Random random(2);
  ThreadPool threads(3);
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : {DType::kF32, DType::kBF16, DType::kI8}) {
      Inputs x(random);
      std::vector<float> whole = scores_of(*table, dtype, x, {});
      for (int64_t page : {4, 12, 64, 1024}) {
        EXPECT_TRUE(same_bits(scores_of(*table, dtype, x, {.page = page}), whole)) << page;
      }
      for (int64_t chunk : {1, 11, 12, 13, 16}) {
        EXPECT_TRUE(same_bits(scores_of(*table, dtype, x, {.chunk = chunk}), whole)) << chunk;
      }
      EXPECT_TRUE(same_bits(scores_of(*table, dtype, x, {.threads = &threads}), whole));
    }
  }
}

TEST(BlockMaxima, ZeroQueriesAndNaNKeysGiveNumbers) {
  Random random(3);
  for (const KernelTable* table : tables_and_emulated()) {
    Inputs x(random);
    std::ranges::fill(x.q, 0.0f);
    std::fill_n(x.keys.begin(), kBlock * kWidth, NAN);
    std::vector<float> scores = scores_of(*table, DType::kF32, x, {});
    const float* last = scores.data() + (kLength - 1) * kHeads * kEntries;
    EXPECT_EQ(last[0], -std::numeric_limits<float>::infinity()) << table->name;
    for (int64_t b = 1; b < (kLength - 1) / kBlock; ++b) EXPECT_EQ(last[b], 0) << table->name;
  }
}

}  // namespace
}  // namespace banyan::block_maxima_test
