// The CUDA kernels, emulated: the portable bits wherever they promise them, and those of tensor
// cores in bf16.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "differential/gemm_case.h"
#include "differential/launch_on_cuda.h"
#include "kernels/cuda/tensor_gemm.h"
#include "kernels/cuda/wgmma_arithmetic.h"

namespace banyan::test::cuda_test {
namespace {

TEST(Cuda, ProductsHaveThePortableBitsInEveryFormat) {
  Random random(11);
  const KernelTable& cuda = cuda_table();
  for (const WeightFormat& format : weight_formats()) {
    if (!(cuda.*format.kernel).exists()) continue;  // those of GGUF
    if (rounds_x(cuda, format)) continue;           // the next test
    if (format.name == "f32") continue;             // the one after that
    for (int64_t n : {1, 63, 130}) {
      int64_t k = format.quantised ? 160 : 77, group = format.quantised ? 32 : k;
      Weights weights(format, n, k, group, random);
      std::vector<float> x = random.normals(37 * k), bias = random.normals(n);
      for (int64_t rows : {1, 17, 37}) {
        std::vector<float> expected =
            multiply(PackedWeights(*tables().front(), weights), x.data(), k, rows, bias.data());
        EXPECT_TRUE(same_bits(
            multiply(PackedWeights(cuda, weights), x.data(), k, rows, bias.data()), expected))
            << format.name << ", " << n << " features, " << rows << " rows";
      }
    }
  }
}

// Of warps with one row and few outputs, or many of both; where x lies in fours and where not.
TEST(Cuda, ProductsOfF32HaveTheSameBitsInEveryTile) {
  constexpr int64_t kN = 37, kRows = 270;
  Random random(13);
  const WeightFormat& f32 = weight_formats()[0];
  ASSERT_EQ(f32.name, "f32");
  for (int64_t k : {77, 128, 1540}) {
    Weights weights(f32, kN, k, k, random);
    PackedWeights packed(cuda_table(), weights);
    std::vector<float> x = random.normals(kRows * k), shifted(kRows * (k + 1) + 1);
    for (int64_t r = 0; r < kRows; ++r) {
      std::copy_n(x.begin() + r * k, k, shifted.begin() + r * (k + 1) + 1);
    }
    auto all = multiply(packed, x.data(), k, kRows, nullptr);
    EXPECT_TRUE(same_bits(multiply(packed, shifted.data() + 1, k + 1, kRows, nullptr), all)) << k;
    for (int64_t r : {0, 7, 44, 269}) {
      std::vector<float> row(all.begin() + r * kN, all.begin() + (r + 1) * kN);
      EXPECT_TRUE(same_bits(multiply(packed, x.data() + r * k, k, 1, nullptr), row)) << k;
    }
    std::vector<float> some(all.begin(), all.begin() + 45 * kN);
    EXPECT_TRUE(same_bits(multiply(packed, x.data(), k, 45, nullptr), some)) << k;
  }
}

// Column by column from the definition: rounded, in segments, sixteen at a time.
template <class T>
float tensor_product(const float* x, const float* w, int64_t k, int segments) {
  float scale = std::is_same_v<T, Float16> ? f16_scale(x, k) : 1;
  int64_t columns = (k + 63) / 64 * 64 / segments;
  float total = 0;
  for (int s = 0; s < segments; ++s) {
    float sum = 0;
    for (int64_t c = s * columns; c < (s + 1) * columns; c += 16) {
      T a[16] = {}, b[16] = {};
      for (int64_t i = 0; i < 16 && c + i < k; ++i) {
        a[i] = from_float<T>(x[c + i] * scale), b[i] = from_float<T>(w[c + i]);
      }
      sum = cuda::wgmma_step(sum, a, b);
    }
    total = segments == 1 ? sum : total + sum;
  }
  return total / scale;
}

// Every other row of x is far too large for f16, or for its subnormals.
template <class T>
void expect_tensor_products(const WeightFormat& format) {
  Random random(12);
  for (auto [n, k, segments] : {std::tuple{70, 77, 1}, {3, 64, 1}, {100, 512, 2}, {65, 2048, 8}}) {
    Weights weights(format, n, k, k, random);
    std::vector<float> x = random.normals(5 * k), bias = random.normals(n);
    for (int64_t c = 0; c < k; ++c) x[k + c] *= 0x1p30f, x[3 * k + c] *= 0x1p-30f;
    auto y = multiply(PackedWeights(cuda_table(), weights), x.data(), k, 5, bias.data());
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(y[r * n + j],
                  tensor_product<T>(&x[r * k], &weights.values[j * k], k, segments) + bias[j])
            << n << " features, " << k << " columns, row " << r << ", " << j;
      }
    }
  }
}
TEST(Cuda, ProductsOfBf16HaveTheBitsOfTensorCores) {
  expect_tensor_products<BFloat16>(
      *std::ranges::find(weight_formats(), "bf16", &WeightFormat::name));
}
TEST(Cuda, ProductsOfF16HaveTheBitsOfTensorCores) {
  expect_tensor_products<Float16>(*std::ranges::find(weight_formats(), "f16", &WeightFormat::name));
}

TEST(Cuda, RowsOfF16NeverOverflow) {
  for (float largest :
       {0.0f, 0x1p-149f, 0x1p-112f, 1e-3f, 1.0f, 65504.0f, 1e30f, 0x1.fffffep127f}) {
    cuda::RowScale scale = cuda::row_scale_for(largest);
    EXPECT_EQ(scale.scale * scale.inverse, 1) << largest;
    float scaled = largest * scale.scale;
    EXPECT_TRUE(scaled < 0x1p15f && (scaled >= 0x1p14f || largest < 0x1p-112f)) << largest;
  }
}

TEST(Cuda, ProductsOfFp8HaveTheBitsOfTensorCores) {
  Random random(13);
  const WeightFormat& fp8 = *std::ranges::find(weight_formats(), "fp8", &WeightFormat::name);
  for (auto [n, k, group] :
       {std::tuple{70, 77, 77}, {3, 64, 32}, {100, 512, 128}, {65, 384, 384}}) {
    Weights weights(fp8, n, k, group, random);
    std::vector<float> x = random.normals(5 * k), bias = random.normals(n);
    auto y = multiply(PackedWeights(cuda_table(), weights), x.data(), k, 5, bias.data());
    for (int64_t r = 0; r < 5; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        float expected = 0;
        for (int64_t g = 0; g < k / group; ++g) {
          float scale = weights.scales[j * (k / group) + g];
          std::vector<float> codes(group);
          for (int64_t c = 0; c < group; ++c) {
            codes[c] =
                weights.decoded(static_cast<uint8_t>(weights.source[j * k + g * group + c]), 0);
          }
          float sum = tensor_product<BFloat16>(&x[r * k + g * group], codes.data(), group, 1);
          expected = std::fma(sum, scale, expected);
        }
        ASSERT_EQ(y[r * n + j], expected + bias[j]) << n << " features, row " << r << ", " << j;
      }
    }
  }
}

// Every tile of rows that a kernel has, and clusters of blocks.
TEST(Cuda, ARowHasTheSameBitsInEveryTile) {
  constexpr int64_t kRows = 768;
  Random random(14);
  for (const WeightFormat& format : weight_formats()) {
    if (!(cuda_table().*format.kernel).exists() || format.name == "f32") continue;
    // The second of two blocks that share rows has some features, or none. 512 columns are two
    // segments. So many rows of bf16 or f16 that the largest tiles fill the interpreted GPU's
    // three blocks.
    bool tiled = format.name == "bf16" || format.name == "f16";
    struct Case {
      int64_t n, k;
      std::vector<int64_t> rows;
    };
    std::vector<Case> cases = {{200, 192, {100, tiled ? 768 : 300}},
                               {70, 192, {12, 29, 50, 100}},
                               {70, 512, {12, 29, 50, 100}}};
    if (tiled) {
      cases.insert(cases.end(), {{70, 192, {768}}, {200, 512, {192, 300}}, {400, 512, {100, 192}}});
    }
    for (const Case& of : cases) {
      Weights weights(format, of.n, of.k, format.quantised ? 64 : of.k, random);
      PackedWeights packed(cuda_table(), weights);
      std::vector<float> x = random.normals(kRows * of.k);
      std::vector<float> first = multiply(packed, x.data(), of.k, 1, nullptr);
      for (int64_t rows : of.rows) {
        const int32_t begins[] = {0, static_cast<int32_t>(rows)};
        for (const int32_t* expert : {static_cast<const int32_t*>(nullptr), begins}) {
          auto y = multiply(packed, x.data(), of.k, rows, nullptr, nullptr, expert);
          std::vector<float> row(y.begin(), y.begin() + of.n);
          EXPECT_TRUE(same_bits(row, first))
              << format.name << ", " << of.k << ", " << rows << " rows";
        }
      }
    }
  }
}

// Nine chunks of columns, which three or four teams share: groups divide one, are one, or are
// several, and blocks have one tile or two.
TEST(Cuda, TeamsAddUpGroupsOfEveryLengthInOrder) {
  constexpr int64_t kN = 300, kK = 1152;
  Random random(17);
  std::vector<float> x = random.normals(140 * kK), bias = random.normals(kN);
  for (const WeightFormat& format : weight_formats()) {
    if (!(cuda_table().*format.kernel).exists() || !format.quantised) continue;
    for (int64_t group : {32, 64, 128, 384, 1152}) {
      Weights weights(format, kN, kK, group, random);
      PackedWeights packed(cuda_table(), weights), portable(*tables().front(), weights);
      std::vector<float> first;
      for (int64_t rows : {3, 12, 30, 140}) {
        auto y = multiply(packed, x.data(), kK, rows, bias.data());
        if (first.empty()) {
          first =
              multiplies_integers(format) ? multiply(portable, x.data(), kK, 3, bias.data()) : y;
        }
        y.resize(first.size());
        EXPECT_TRUE(same_bits(y, first)) << format.name << ", groups of " << group << ", " << rows;
      }
    }
  }
}

// Queries, keys and values of one sequence in pages of 16.
struct Attended {
  Attended(int64_t width, DType dtype, int64_t length, int64_t page_size, Random& random)
      : width(width),
        rank(width > 256 ? 512 : width),
        page_size(page_size),
        dtype(dtype),
        q(random.normals(length * kHeads * width)),
        keys(store_rows(random.normals(length * width), dtype, row_shape())),
        values(store_rows(random.normals(length * width), dtype, row_shape())) {
    for (int32_t page = 0; page * page_size < length; ++page) pages.push_back(page);
  }

  // Rows [first, first + count), cut into so many spans.
  std::vector<float> rows(int64_t first, int64_t count, int64_t span_count = 1) const {
    std::vector<SpanArgs> spans;
    auto each = static_cast<int32_t>(count / span_count);
    for (int32_t row = 0; row < count; row += each) {
      spans.push_back({.row_begin = row,
                       .row_count = each,
                       .first_position = static_cast<int32_t>(first) + row});
    }
    std::vector<float> out(count * kHeads * rank, NAN);
    float scale = 1 / std::sqrt(static_cast<float>(width));
    const float* query = q.data() + first * kHeads * width;
    if (width > 256) {
      cuda_table().latent_attention({.q = query,
                                     .q_row_stride = kHeads * width,
                                     .pool = keys.data(),
                                     .pool_dtype = dtype,
                                     .out = out.data(),
                                     .heads = kHeads,
                                     .width = width,
                                     .rank = rank,
                                     .page_size = page_size,
                                     .scale = scale,
                                     .spans = spans.data(),
                                     .span_count = span_count,
                                     .page_table = pages.data()});
      return out;
    }
    cuda_table().attention({.q = query,
                            .q_row_stride = kHeads * width,
                            .rows = count,
                            .k_pool = keys.data(),
                            .v_pool = values.data(),
                            .pool_dtype = dtype,
                            .out = out.data(),
                            .q_heads = kHeads,
                            .kv_heads = 1,
                            .head_dim = width,
                            .value_dim = width,
                            .page_size = page_size,
                            .scale = scale,
                            .spans = spans.data(),
                            .span_count = span_count,
                            .page_table = pages.data()});
    return out;
  }

  static constexpr int64_t kHeads = 3;
  int64_t out_width() const { return kHeads * rank; }
  RowShape row_shape() const { return {.width = width, .split = rank < width ? rank : 0}; }

  int64_t width, rank, page_size;
  DType dtype;
  std::vector<float> q;
  std::vector<char> keys, values;
  std::vector<int32_t> pages;
};

// Of the widths that tensor cores have; 592 keys are three parts. Blocks of the interpreted GPU
// share the parts of one row, but neither those of 128 rows in one span nor of 8 in spans of their
// own.
TEST(Cuda, ARowOfAttentionHasTheSameBitsInEverySpan) {
  constexpr int64_t kLength = 592, kFirst = 464;
  struct Case {
    int64_t width;
    DType dtype;
    int64_t page_size = 16;
  };
  Random random(15);
  for (auto [width, dtype, page_size] : {Case{64, DType::kBF16, 148},
                                         {128, DType::kBF16, 64},
                                         {256, DType::kBF16, 32},
                                         {576, DType::kBF16, 64},
                                         {64, DType::kF16, 128},
                                         {128, DType::kF16},
                                         {256, DType::kF16, 64},
                                         {576, DType::kF16},
                                         {128, DType::kI8},
                                         {576, DType::kI8},
                                         {64, DType::kF8E4M3},
                                         {256, DType::kF8E4M3},
                                         {576, DType::kF8E4M3}}) {
    Attended attended(width, dtype, kLength, page_size, random);
    SCOPED_TRACE(fmt::format("{} {} pages of {}", width, dtype_name(dtype), page_size));
    std::vector<float> together = attended.rows(kFirst, kLength - kFirst);
    auto expect_the_same = [&](int64_t i, const std::vector<float>& rows) {
      auto begin = together.begin() + i * attended.out_width();
      EXPECT_TRUE(same_bits(rows, {begin, begin + std::ssize(rows)})) << "row " << i;
    };
    for (int64_t i : {0, 127}) expect_the_same(i, attended.rows(kFirst + i, 1));
    expect_the_same(100, attended.rows(kFirst + 100, 8, 8));
    std::vector<float> beginning = attended.rows(0, 20), first = attended.rows(0, 1);
    beginning.resize(first.size());
    EXPECT_TRUE(same_bits(beginning, first));
  }
}

}  // namespace
}  // namespace banyan::test::cuda_test
