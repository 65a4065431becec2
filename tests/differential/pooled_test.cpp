// Pooled keys of every table against the portable ones, and the weight that attention to them puts
// on blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "differential/emulated_table.h"
#include "differential/kernels.h"

namespace banyan::pooled_test {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kLength = 90, kHeads = 2, kGroup = 3, kWidth = 13, kPage = 16;
constexpr int64_t kPool = 12, kStride = 4, kBlock = 8, kEntries = (kLength - 1) / kBlock + 1;
constexpr int64_t kPages = (kLength + kPage - 1) / kPage;

struct Result {
  std::vector<float> pooled, out, scores;
};

Result run(const KernelTable& table, DType dtype, uint64_t seed) {
  Random random(seed);
  std::vector<float> x = random.normals(kLength * kHeads * kWidth);
  std::vector<float> weights = random.normals(kPool * kWidth), bias = random.normals(kWidth);
  std::vector<float> q = random.normals(kLength * kHeads * kGroup * kWidth);
  std::vector<int32_t> pages(kPages);
  std::iota(pages.rbegin(), pages.rend(), 0);
  std::vector<char> keys(kPages * kHeads * kPage * state_row_bytes(dtype, {.width = kWidth}));
  Result to = {.pooled = std::vector<float>(kPages * kHeads * kPage / kStride * kWidth),
               .out = std::vector<float>(q.size()),
               .scores = std::vector<float>(kLength * kHeads * kEntries)};
  SpanArgs span = {.row_count = kLength};
  table.page_write({.x = x.data(),
                    .x_row_stride = kHeads * kWidth,
                    .pool = keys.data(),
                    .pool_dtype = dtype,
                    .heads = kHeads,
                    .width = kWidth,
                    .page_size = kPage,
                    .spans = &span,
                    .span_count = 1,
                    .page_table = pages.data()});
  table.pool_keys({.keys = keys.data(),
                   .key_dtype = dtype,
                   .key_page_table = pages.data(),
                   .weights = weights.data(),
                   .bias = bias.data(),
                   .pooled = to.pooled.data(),
                   .heads = kHeads,
                   .width = kWidth,
                   .page_size = kPage,
                   .pool_tokens = kPool,
                   .stride = kStride,
                   .spans = &span,
                   .span_count = 1,
                   .page_table = pages.data()});
  table.pooled_attention({.q = q.data(),
                          .q_row_stride = kHeads * kGroup * kWidth,
                          .keys = to.pooled.data(),
                          .values = to.pooled.data(),
                          .out = to.out.data(),
                          .q_heads = kHeads * kGroup,
                          .heads = kHeads,
                          .width = kWidth,
                          .page_size = kPage,
                          .pool_tokens = kPool,
                          .stride = kStride,
                          .block_tokens = kBlock,
                          .scale = 0.1f,
                          .scores = to.scores.data(),
                          .entries_max = kEntries,
                          .spans = &span,
                          .span_count = 1,
                          .part = {0, kLength},
                          .page_table = pages.data()});
  return to;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-4) << i;
}

TEST(PooledKeys, OfEveryTableAreThoseOfThePortableOne) {
  const KernelTable& portable = **select_kernels("portable");
  for (const KernelTable* table : tables_and_emulated()) {
    for (DType dtype : kPageTypes) {
      SCOPED_TRACE(fmt::format("{} {}", table->name, dtype_name(dtype)));
      Result expected = run(portable, dtype, 7), got = run(*table, dtype, 7);
      expect_near(got.pooled, expected.pooled);
      expect_near(got.out, expected.out);
      expect_near(got.scores, expected.scores);
      // A query's weights are 1 in all, and an entry covers three strides.
      const float* last = got.scores.data() + (kLength * kHeads - 1) * kEntries;
      EXPECT_NEAR(std::accumulate(last, last + kEntries, 0.0f), kGroup * kPool / kStride, 1e-4);
    }
  }
}

}  // namespace
}  // namespace banyan::pooled_test
