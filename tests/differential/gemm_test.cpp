// Matrix products of every table: against portable (and portable against f64) within the rounding
// error of a sum, and bit for bit against themselves in other batches.
#include <gtest/gtest.h>

#include <cmath>

#include "differential/kernels.h"

namespace banyan {
namespace {

using namespace test;  // NOLINT

struct Matrix {
  Matrix(const GemmKernel& kernel, DType dtype, int64_t n, int64_t k, Random& random)
      : n(n),
        k(k),
        bytes(encode(random.normals(n * k), dtype)),
        values(decode(bytes, dtype)),
        packed(kernel.packed_bytes(n, k)) {
    kernel.pack({.source = bytes.data(), .packed = packed.data(), .n = n, .k = k, .row_count = n});
  }

  int64_t n, k;
  std::vector<char> bytes;
  std::vector<float> values;
  AlignedBytes packed;
};

// The product with `rows` rows of x, [rows, n] dense.
std::vector<float> multiply(const GemmKernel& kernel, const Matrix& matrix, const float* x,
                            int64_t x_stride, int64_t rows, const float* bias,
                            ThreadPool* threads = nullptr) {
  int64_t y_stride = matrix.n + 3;
  std::vector<float> y(rows * y_stride, -77.0f);
  kernel.run({.launch = {.threads = threads},
              .x = x,
              .x_stride = x_stride,
              .weight = matrix.packed.data(),
              .bias = bias,
              .y = y.data(),
              .y_stride = y_stride,
              .rows = rows,
              .n = matrix.n,
              .k = matrix.k});
  std::vector<float> dense;
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = y.data() + r * y_stride;
    for (int64_t pad = matrix.n; pad < y_stride; ++pad) EXPECT_EQ(row[pad], -77.0f);
    dense.insert(dense.end(), row, row + matrix.n);
  }
  return dense;
}

// A sum of k products in any order, fused or not, is within k * eps / 2 * sum |x w| of the exact
// one; the bias adds one more rounding.
void expect_near_exact(const Matrix& m, const std::vector<float>& x, int64_t x_stride,
                       const std::vector<float>& bias, const std::vector<float>& y) {
  for (int64_t r = 0; r < std::ssize(y) / m.n; ++r) {
    for (int64_t j = 0; j < m.n; ++j) {
      double exact = bias.empty() ? 0 : bias[j], magnitude = std::fabs(exact);
      for (int64_t c = 0; c < m.k; ++c) {
        double product = double{x[r * x_stride + c]} * double{m.values[j * m.k + c]};
        exact += product;
        magnitude += std::fabs(product);
      }
      double bound = static_cast<double>(m.k + 1) * double{kEpsilon} / 2 * magnitude;
      ASSERT_NEAR(y[r * m.n + j], exact, bound) << "row " << r << " output " << j;
    }
  }
}

TEST(Gemm, EveryTableIsWithinTheRoundingErrorOfASum) {
  Random random(1);
  for (const KernelTable* table : tables()) {
    for (DType dtype : kWeightTypes) {
      for (int64_t k : {1, 7, 16, 17, 63, 100, 257, 512}) {
        for (int64_t n : {1, 3, 16, 37}) {
          Matrix matrix(table->gemm(dtype), dtype, n, k, random);
          std::vector<float> bias = k % 2 ? random.normals(n) : std::vector<float>();
          int64_t x_stride = k + 5;
          for (int64_t rows : {1, 2, 5, 6, 7, 9}) {
            SCOPED_TRACE(
                fmt::format("{} {} rows {} n {} k {}", table->name, dtype_name(dtype), rows, n, k));
            std::vector<float> x = random.normals(rows * x_stride + 1);
            std::vector<float> shifted(x.begin() + 1, x.end());  // x starts misaligned
            auto y = multiply(table->gemm(dtype), matrix, x.data() + 1, x_stride, rows,
                              bias.empty() ? nullptr : bias.data());
            expect_near_exact(matrix, shifted, x_stride, bias, y);
          }
        }
      }
    }
  }
}

TEST(Gemm, ARowHasTheSameBitsInEveryBatchAndOnEveryNumberOfThreads) {
  constexpr int64_t kRows = 127;
  Random random(2);
  for (const KernelTable* table : tables()) {
    for (DType dtype : kWeightTypes) {
      const GemmKernel& kernel = table->gemm(dtype);
      Matrix matrix(kernel, dtype, 83, 101, random);
      std::vector<float> x = random.normals(kRows * matrix.k);
      auto all = multiply(kernel, matrix, x.data(), matrix.k, kRows, nullptr);
      for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 64}) {
        for (int64_t first = 0; first + rows <= kRows; first += rows == 1 ? 1 : 17) {
          auto some =
              multiply(kernel, matrix, x.data() + first * matrix.k, matrix.k, rows, nullptr);
          std::vector<float> expected(all.begin() + first * matrix.n,
                                      all.begin() + (first + rows) * matrix.n);
          ASSERT_TRUE(same_bits(some, expected))
              << table->name << " " << dtype_name(dtype) << " " << rows << " rows from " << first;
        }
      }
      for (int workers : {2, 3, 4}) {
        ThreadPool threads(workers);
        EXPECT_TRUE(
            same_bits(all, multiply(kernel, matrix, x.data(), matrix.k, kRows, nullptr, &threads)))
            << table->name << " " << workers << " workers";
      }
    }
  }
}

// More rows than one cache block holds (k is large enough for several blocks in 150 rows).
TEST(Gemm, CacheBlocksOfRowsDoNotShow) {
  constexpr int64_t kRows = 150;
  Random random(3);
  for (const KernelTable* table : tables()) {
    const GemmKernel& kernel = table->gemm_bf16;
    Matrix matrix(kernel, DType::kBF16, 5, 3000, random);
    std::vector<float> x = random.normals(kRows * matrix.k);
    auto all = multiply(kernel, matrix, x.data(), matrix.k, kRows, nullptr);
    for (int64_t r = 0; r < kRows; ++r) {
      auto one = multiply(kernel, matrix, x.data() + r * matrix.k, matrix.k, 1, nullptr);
      std::vector<float> expected(all.begin() + r * matrix.n, all.begin() + (r + 1) * matrix.n);
      ASSERT_TRUE(same_bits(one, expected)) << table->name << " row " << r;
    }
  }
}

TEST(Gemm, PackingRowsInAnyOrderGivesTheSameBytes) {
  Random random(4);
  for (const KernelTable* table : tables()) {
    for (DType dtype : kWeightTypes) {
      const GemmKernel& kernel = table->gemm(dtype);
      int64_t n = 29, k = 45;
      Matrix whole(kernel, dtype, n, k, random);
      size_t bytes = kernel.packed_bytes(n, k), row_bytes = k * dtype_bytes(dtype);
      AlignedBytes parts(bytes);
      for (auto [begin, count] : {std::pair{20, 9}, {0, 1}, {7, 13}, {1, 6}}) {
        kernel.pack({.source = whole.bytes.data() + begin * row_bytes,
                     .packed = parts.data(),
                     .n = n,
                     .k = k,
                     .row_begin = begin,
                     .row_count = count});
      }
      EXPECT_EQ(std::memcmp(whole.packed.data(), parts.data(), bytes), 0) << table->name;
    }
  }
}

TEST(Gemm, GatherReadsPackedRowsBackExactly) {
  Random random(5);
  for (const KernelTable* table : tables()) {
    for (DType dtype : kWeightTypes) {
      for (int64_t k : {1, 15, 16, 17, 64, 100}) {
        Matrix matrix(table->gemm(dtype), dtype, 11, k, random);
        std::vector<int32_t> ids = {10, 0, 3, 3, 7};
        std::vector<float> y(ids.size() * k), expected;
        table->gemm(dtype).gather({.weight = matrix.packed.data(),
                                   .ids = ids.data(),
                                   .y = y.data(),
                                   .rows = std::ssize(ids),
                                   .n = 11,
                                   .k = k});
        for (int32_t id : ids) {
          auto row = matrix.values.begin() + id * k;
          expected.insert(expected.end(), row, row + k);
        }
        EXPECT_TRUE(same_bits(y, expected)) << table->name << " " << dtype_name(dtype) << k;
      }
    }
  }
}

// A NaN or an infinity in one row or one weight row stays there.
TEST(Gemm, NonFiniteValuesStayInTheirRowAndOutput) {
  Random random(6);
  for (const KernelTable* table : tables()) {
    for (DType dtype : kWeightTypes) {
      const GemmKernel& kernel = table->gemm(dtype);
      Matrix matrix(kernel, dtype, 9, 21, random);
      auto x = random.normals(8 * matrix.k);
      x[3 * matrix.k + 20] = NAN;
      x[5 * matrix.k] = INFINITY;
      auto y = multiply(kernel, matrix, x.data(), matrix.k, 8, nullptr);
      for (int64_t i = 0; i < std::ssize(y); ++i) {
        EXPECT_EQ(std::isnan(y[i]), i / matrix.n == 3) << table->name << " " << i;
        EXPECT_EQ(std::isinf(y[i]), i / matrix.n == 5) << table->name << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace banyan
