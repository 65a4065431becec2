// Matrix products of every table and weight format: against f64 within the rounding error of a sum,
// bit for bit against portable where integers are multiplied, and bit for bit against themselves in
// other batches.
#include <gtest/gtest.h>

#include <cmath>

#include "differential/gemm_case.h"

namespace banyan::gemm_test {
namespace {

using namespace test;  // NOLINT

// Calls body for every table and format.
void for_each_kernel(const auto& body) {
  for (const KernelTable* table : tables_and_emulated()) {
    for (const WeightFormat& format : weight_formats()) {
      if (format.blocks != nullptr && !(table->*format.kernel).exists()) continue;
      SCOPED_TRACE(fmt::format("{} {}", table->name, format.name));
      body(*table, format);
    }
  }
}

// A sum of k products in any order, fused or not, is within k * eps / 2 * sum |x w| of the exact
// one; bias and scales add roundings. Integer formats round x to 1/127 of the group's largest.
void expect_near_exact(const Weights& w, const std::vector<float>& x, int64_t x_stride,
                       const std::vector<float>& bias, const std::vector<float>& y) {
  for (int64_t r = 0; r < std::ssize(y) / w.n; ++r) {
    for (int64_t j = 0; j < w.n; ++j) {
      double exact = bias.empty() ? 0 : bias[j], magnitude = std::fabs(exact), quantised = 0;
      for (int64_t c = 0; c < w.k; ++c) {
        double product = double{x[r * x_stride + c]} * double{w.values[j * w.k + c]};
        exact += product;
        magnitude += std::fabs(product);
      }
      int64_t step = w.format.blocks ? kBlockStep : w.group;  // columns of x rounded together
      for (int64_t g = 0; multiplies_integers(w.format) && g < w.k / step; ++g) {
        double largest = 0, weights = 0;
        for (int64_t c = g * step; c < (g + 1) * step; ++c) {
          largest = std::max<double>(largest, std::fabs(x[r * x_stride + c]));
          weights += std::fabs(w.values[j * w.k + c]);
        }
        quantised += largest / 127 * 0.5001 * weights;
      }
      double bound = static_cast<double>(w.k + 4) * double{kEpsilon} / 2 * (magnitude + quantised);
      ASSERT_NEAR(y[r * w.n + j], exact, bound + quantised) << "row " << r << " output " << j;
    }
  }
}

TEST(Gemm, EveryTableIsWithinTheRoundingErrorOfASum) {
  Random random(1);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    for (int64_t k : {1, 7, 17, 32, 63, 100, 256, 257, 352, 512}) {
      for (int64_t group : groups_for(format, k)) {
        for (int64_t n : {1, 3, 16, 37, 100}) {
          Weights weights(format, n, k, group, random);
          PackedWeights packed(table, weights);
          std::vector<float> bias = k % 2 ? random.normals(n) : std::vector<float>();
          int64_t x_stride = k + 5;
          for (int64_t rows : {1, 2, 5, 7, 9}) {
            SCOPED_TRACE(fmt::format("rows {} n {} k {} group {}", rows, n, k, group));
            std::vector<float> x = random.normals(rows * x_stride + 1);
            std::vector<float> shifted(x.begin() + 1, x.end());  // x starts misaligned
            auto y = multiply(packed, x.data() + 1, x_stride, rows,
                              bias.empty() ? nullptr : bias.data());
            round_as(table, format, k, x_stride, shifted);
            expect_near_exact(weights, shifted, x_stride, bias, y);
          }
        }
      }
    }
  });
}

TEST(Gemm, IntegerFormatsHaveTheBitsOfPortableInEveryTable) {
  Random random(7);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    if (!multiplies_integers(format)) return;
    for (int64_t k : {5, 64, 96, 384, 768, 1030}) {
      for (int64_t group : groups_for(format, k)) {
        Weights weights(format, 53, k, group, random);
        std::vector<float> x = random.normals(9 * k, 3);
        x[2 * k] = 1000;  // an outlier
        std::fill(x.begin() + 4 * k, x.begin() + 5 * k, 0.0f);
        std::fill(x.begin() + 5 * k, x.begin() + 6 * k, 1e-33f);
        auto expected =
            multiply(PackedWeights(*tables().front(), weights), x.data(), k, 9, nullptr);
        auto y = multiply(PackedWeights(table, weights), x.data(), k, 9, nullptr);
        EXPECT_TRUE(same_bits(y, expected)) << "k " << k << " group " << group;
      }
    }
  });
}

TEST(Gemm, GroupsNeedNotDivideWhatAKernelTakesAtOnce) {
  constexpr int64_t kRows = 3, kColumns = 192, kGroup = 96;
  Random random(8);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    if (!format.quantised || format.blocks != nullptr) return;
    Weights weights(format, 5, kColumns, kGroup, random);
    std::vector<float> x = random.normals(kRows * kColumns);
    // Exact in bf16, to which some kernels round x.
    for (float& value : x) value = to_float(from_float<BFloat16>(value));
    auto y = multiply(PackedWeights(table, weights), x.data(), kColumns, kRows, nullptr);
    expect_near_exact(weights, x, kColumns, {}, y);
    if (!multiplies_integers(format)) return;
    PackedWeights portable(*tables().front(), weights);
    EXPECT_TRUE(same_bits(y, multiply(portable, x.data(), kColumns, kRows, nullptr)));
  });
}

TEST(Gemm, ARowHasTheSameBitsInEveryBatchAndOnEveryNumberOfThreads) {
  constexpr int64_t kRows = 127;
  Random random(2);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    int64_t columns = least_group(format) == kPlainGroup ? 160 : 512;
    Weights weights(format, 83, columns, format.quantised ? least_group(format) : columns, random);
    PackedWeights packed(table, weights);
    std::vector<float> x = random.normals(kRows * columns);
    auto all = multiply(packed, x.data(), columns, kRows, nullptr);
    for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 64}) {
      for (int64_t first = 0; first + rows <= kRows; first += rows == 1 ? 1 : 17) {
        auto some = multiply(packed, x.data() + first * columns, columns, rows, nullptr);
        std::vector<float> expected(all.begin() + first * weights.n,
                                    all.begin() + (first + rows) * weights.n);
        ASSERT_TRUE(same_bits(some, expected)) << rows << " rows from " << first;
      }
    }
    for (int workers : {2, 3, 4}) {
      ThreadPool threads(workers);
      EXPECT_TRUE(same_bits(all, multiply(packed, x.data(), columns, kRows, nullptr, &threads)))
          << workers << " workers";
    }
  });
}

// Rows that are longer than one pass of a kernel, with groups that end inside and across passes.
TEST(Gemm, LongRowsAddUpFromPartToPart) {
  constexpr int64_t kRows = 19;
  Random random(9);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    for (int64_t k : {2112, 2304, 4224}) {
      for (int64_t group : groups_for(format, k)) {
        Weights weights(format, 5, k, group, random);
        PackedWeights packed(table, weights);
        std::vector<float> x = random.normals(kRows * k);
        auto all = multiply(packed, x.data(), k, kRows, nullptr);
        std::vector<float> rounded = x;
        round_as(table, format, k, k, rounded);
        expect_near_exact(weights, rounded, k, {}, all);
        auto last = multiply(packed, x.data() + (kRows - 1) * k, k, 1, nullptr);
        EXPECT_TRUE(same_bits(last, {all.end() - weights.n, all.end()})) << k << " " << group;
      }
    }
  });
}

// Equal matrices at one stride, as one group.
struct PackedGroup {
  static constexpr int64_t kCount = 5, kN = 50, kGap = 128;
  static constexpr int64_t kK = kLevelledGroup;

  PackedGroup(const KernelTable& table, const WeightFormat& format, Random& random) {
    members.reserve(kCount);
    weights.reserve(kCount);
    for (int64_t i = 0; i < kCount; ++i) {
      weights.emplace_back(format, kN, kK, format.quantised ? least_group(format) : kK, random);
      members.emplace_back(table, weights.back());
    }
    stride = static_cast<int64_t>(members[0].bytes) + kGap;
    packed = std::make_unique<AlignedBytes>(kCount * stride);
    for (int64_t i = 0; i < kCount; ++i) {
      std::memcpy(packed->data() + i * stride, members[i].packed.data(), members[i].bytes);
    }
  }

  // Row `row` of x times matrix i alone.
  std::vector<float> alone(int64_t i, const float* row, const GemmArgs& args) const {
    const float* bias = args.bias ? args.bias + i * args.bias_stride : nullptr;
    return multiply(members[i], row, kK, 1, bias);
  }

  std::vector<Weights> weights;
  std::vector<PackedWeights> members;
  int64_t stride;
  std::unique_ptr<AlignedBytes> packed;
};

// Runs `args` over the group without and with threads, and expects row r of matrix i to be the
// product of what source(r, i) gives.
template <class Source>
void expect_group(const PackedGroup& group, GemmArgs args, int64_t y_rows, const Source& source) {
  constexpr int64_t kN = PackedGroup::kN;
  args.weights.weight = group.packed->data();
  args.weights.weight_stride = group.stride;
  args.weights.count = PackedGroup::kCount;
  args.y_stride = args.weights.y_column_stride > 0 ? PackedGroup::kCount * kN : kN;
  ThreadPool threads(3);
  for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &threads}) {
    std::vector<float> y(y_rows * args.y_stride, -77.0f);
    args.launch.threads = pool;
    args.y = y.data();
    group.members.front().run(args);
    for (int64_t i = 0; i < PackedGroup::kCount; ++i) {
      int64_t begin = args.weights.begins ? args.weights.begins[i] : 0;
      int64_t end = args.weights.begins ? args.weights.begins[i + 1] : y_rows;
      for (int64_t r = begin; r < end; ++r) {
        const float* of_row = y.data() + r * args.y_stride + i * args.weights.y_column_stride;
        ASSERT_TRUE(same_bits(group.alone(i, source(r, i), args), {of_row, of_row + kN}))
            << i << " " << r;
      }
    }
  }
}

// Experts with the rows routed to them, some with none. Then rows of their own, where x continues
// with rows that were never written. Experts share a bias, or have one each.
TEST(Gemm, AGroupOfExpertsTakesTheRowsOfEach) {
  constexpr int64_t kK = PackedGroup::kK, kRows = 40;
  Random random(8);
  std::vector<int32_t> index(kRows);
  for (int32_t& row : index) row = static_cast<int32_t>(random.below(7));
  const int32_t begins[] = {0, 1, 1, 14, 20, kRows};
  std::vector<float> x = random.normals(7 * kK), sorted = random.normals((kRows + 3) * kK);
  std::fill(sorted.begin() + kRows * kK, sorted.end(), NAN);
  std::vector<float> biases = random.normals(PackedGroup::kCount * (PackedGroup::kN + 3));
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    PackedGroup group(table, format, random);
    GemmArgs args = {.x = x.data(),
                     .x_stride = kK,
                     .x_rows = 7,
                     .x_index = index.data(),
                     .weights = {.begins = begins}};
    expect_group(group, args, kRows, [&](int64_t r, int64_t) { return x.data() + index[r] * kK; });
    args.x = sorted.data();
    args.x_rows = kRows + 3;
    args.x_index = nullptr;
    expect_group(group, args, kRows, [&](int64_t r, int64_t) { return sorted.data() + r * kK; });
    for (int64_t stride : {int64_t{0}, PackedGroup::kN + 3}) {
      args.bias = biases.data();
      args.bias_stride = stride;
      expect_group(group, args, kRows, [&](int64_t r, int64_t) { return sorted.data() + r * kK; });
    }
  });
}

// Heads that each have their own segment of a row, or share one, and their own output columns.
TEST(Gemm, AGroupOfHeadsTakesTheSegmentsOfEachRow) {
  constexpr int64_t kK = PackedGroup::kK, kRows = 21, kHeads = PackedGroup::kCount;
  constexpr int64_t kStride = kK + 5;  // from segment to segment
  Random random(12);
  std::vector<float> x = random.normals(kRows * kHeads * kStride);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    PackedGroup group(table, format, random);
    for (int64_t step : {0, 1}) {
      GemmArgs args = {.x = x.data(),
                       .x_stride = kHeads * kStride,
                       .x_rows = kRows,
                       .segments = step == 0 ? 1 : kHeads,
                       .segment_stride = kStride,
                       .weights = {.segment_step = step, .y_column_stride = PackedGroup::kN}};
      expect_group(group, args, kRows, [&](int64_t r, int64_t head) {
        return x.data() + (r * kHeads + step * head) * kStride;
      });
    }
  });
}

TEST(Gemm, PackingRowsInAnyOrderGivesTheSameBytes) {
  Random random(4);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    int64_t columns = 3 * least_group(format);
    Weights weights(format, 29, columns, format.quantised ? columns / 3 : columns, random);
    PackedWeights whole(table, weights);
    AlignedBytes parts(whole.bytes);
    for (auto [begin, count] : {std::pair{20, 9}, {0, 1}, {7, 13}, {1, 6}}) {
      whole.pack(begin, count, parts);
    }
    EXPECT_EQ(std::memcmp(whole.packed.data(), parts.data(), whole.bytes), 0);
  });
}

TEST(Gemm, GatherReadsPackedRowsBackExactly) {
  Random random(5);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    for (int64_t k : {1, 15, 16, 17, 64, 100, 512}) {
      for (int64_t group : groups_for(format, k)) {
        Weights weights(format, 37, k, group, random);
        PackedWeights packed(table, weights);
        std::vector<int32_t> ids = {36, 0, 3, 3, 17};
        std::vector<float> y(ids.size() * k), expected;
        packed.kernel.gather({.weight = packed.packed.data(),
                              .ids = ids.data(),
                              .y = y.data(),
                              .rows = std::ssize(ids),
                              .n = weights.n,
                              .k = k,
                              .group = group});
        for (int32_t id : ids) {
          auto row = weights.values.begin() + id * k;
          expected.insert(expected.end(), row, row + k);
        }
        ASSERT_EQ(y, expected) << k;
      }
    }
  });
}

// A NaN or an infinity in one row stays there.
TEST(Gemm, NonFiniteValuesStayInTheirRow) {
  Random random(6);
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    int64_t columns = 2 * least_group(format);
    Weights weights(format, 9, columns, format.quantised ? columns / 2 : columns, random);
    auto x = random.normals(8 * weights.k);
    x[3 * weights.k + 20] = NAN;
    x[5 * weights.k] = INFINITY;
    auto y = multiply(PackedWeights(table, weights), x.data(), weights.k, 8, nullptr);
    for (int64_t i = 0; i < std::ssize(y); ++i) {
      int64_t row = i / weights.n;
      EXPECT_EQ(std::isfinite(y[i]), row != 3 && row != 5) << i;
    }
  });
}

}  // namespace
}  // namespace banyan::gemm_test
