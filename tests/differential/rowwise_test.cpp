// Row-wise kernels of every table against portable, and portable against f64.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "differential/kernels.h"

namespace banyan::rowwise_test {
namespace {

using namespace test;  // NOLINT

constexpr int64_t kDims[] = {1, 7, 8, 15, 16, 17, 63, 100, 257};

// |a - b| within `ulps` units in the last place of b (of the smallest normal below that).
void expect_ulps(float a, double b, double ulps, const std::string& what) {
  if (std::isnan(b) || std::isinf(b)) {
    EXPECT_EQ(std::isnan(a), std::isnan(b)) << what;
    if (std::isinf(b)) {
      EXPECT_EQ(a, b) << what;
    }
    return;
  }
  double unit = std::fmax(std::fabs(b), 0x1p-126) * double{kEpsilon};
  EXPECT_LE(std::fabs(a - b), ulps * unit) << what << ": " << a << " for " << b;
}

// The mean of dim squares is within (dim + 1) eps / 2 of the exact one, its root within half of
// that; root, division and two products add an eps / 2 each.
TEST(RmsNorm, EveryTableIsWithinTheRoundingErrorOfTheSum) {
  Random random(1);
  for (const KernelTable* table : tables()) {
    for (int64_t dim : kDims) {
      int64_t rows = 5, groups = 3, x_stride = groups * dim + 3, y_stride = groups * dim + 1;
      auto x = random.normals(rows * x_stride, 10), weight = random.normals(dim);
      std::vector<float> y(rows * y_stride);
      ThreadPool threads(2);
      table->rms_norm({.launch = {.threads = &threads},
                       .x = x.data(),
                       .x_row_stride = x_stride,
                       .weight = weight.data(),
                       .y = y.data(),
                       .y_row_stride = y_stride,
                       .rows = rows,
                       .groups = groups,
                       .dim = dim,
                       .eps = 1e-5f});
      for (int64_t i = 0; i < rows * groups; ++i) {
        const float* from = x.data() + i / groups * x_stride + i % groups * dim;
        const float* to = y.data() + i / groups * y_stride + i % groups * dim;
        double squares = 0;
        for (int64_t c = 0; c < dim; ++c) squares += double{from[c]} * double{from[c]};
        double factor = 1 / std::sqrt(squares / static_cast<double>(dim) + double{1e-5f});
        for (int64_t c = 0; c < dim; ++c) {
          expect_ulps(to[c], double{from[c]} * factor * double{weight[c]},
                      static_cast<double>(dim + 1) / 4 + 3,
                      fmt::format("{} dim {} item {} column {}", table->name, dim, i, c));
        }
      }
    }
  }
}

// A group with weights of its own is a row of that weight.
TEST(RmsNorm, GroupsMayHaveWeightsOfTheirOwn) {
  Random random(8);
  for (const KernelTable* table : tables()) {
    for (int64_t dim : kDims) {
      int64_t rows = 4, groups = 3;
      auto x = random.normals(rows * groups * dim), weight = random.normals(groups * dim);
      std::vector<float> y(x.size()), expected(x.size());
      RmsNormArgs args = {.x = x.data(),
                          .x_row_stride = groups * dim,
                          .weight = weight.data(),
                          .weight_group_stride = dim,
                          .y = y.data(),
                          .y_row_stride = groups * dim,
                          .rows = rows,
                          .groups = groups,
                          .dim = dim,
                          .eps = 1e-6f};
      table->rms_norm(args);
      args.groups = 1;
      for (int64_t g = 0; g < groups; ++g) {
        args.x = x.data() + g * dim;
        args.weight = weight.data() + g * dim;
        args.y = expected.data() + g * dim;
        table->rms_norm(args);
      }
      EXPECT_TRUE(same_bits(y, expected)) << table->name << " dim " << dim;
    }
  }
}

TEST(RmsNorm, ARowHasTheSameBitsInEveryBatch) {
  Random random(2);
  for (const KernelTable* table : tables()) {
    int64_t rows = 300, dim = 128;
    auto x = random.normals(rows * dim), weight = random.normals(dim);
    std::vector<float> all(rows * dim), one(rows * dim);
    ThreadPool threads(3);
    RmsNormArgs args = {.launch = {.threads = &threads},
                        .x = x.data(),
                        .x_row_stride = dim,
                        .weight = weight.data(),
                        .y = all.data(),
                        .y_row_stride = dim,
                        .rows = rows,
                        .dim = dim,
                        .eps = 1e-6f};
    table->rms_norm(args);
    args.rows = 1;
    for (int64_t r = 0; r < rows; ++r) {
      args.x = x.data() + r * dim;
      args.y = one.data() + r * dim;
      table->rms_norm(args);
    }
    EXPECT_TRUE(same_bits(all, one)) << table->name;
  }
}

// Rows of a matrix, copied to where rows have another distance and begin one column later.
struct Shifted {
  Shifted(const std::vector<float>& x, int64_t rows, int64_t dim)
      : stride(dim + 1), values(rows * stride + 1) {
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x.begin() + r * dim, dim, values.begin() + r * stride + 1);
    }
  }
  const float* data() const { return values.data() + 1; }

  int64_t stride;
  std::vector<float> values;
};

TEST(RmsNorm, HasTheSameBitsWhereverRowsBegin) {
  Random random(12);
  for (const KernelTable* table : tables()) {
    for (int64_t dim : {4, 128, 132, 512, 516, 4096, 4100, 5120}) {
      constexpr int64_t kRows = 3;
      auto x = random.normals(kRows * dim), weight = random.normals(dim);
      Shifted shifted(x, kRows, dim);
      std::vector<float> y(x.size()), expected(x.size());
      RmsNormArgs args = {.x = x.data(),
                          .x_row_stride = dim,
                          .weight = weight.data(),
                          .y = expected.data(),
                          .y_row_stride = dim,
                          .rows = kRows,
                          .dim = dim,
                          .eps = 1e-6f};
      table->rms_norm(args);
      args.x = shifted.data();
      args.x_row_stride = shifted.stride;
      args.y = y.data();
      table->rms_norm(args);
      EXPECT_TRUE(same_bits(y, expected)) << table->name << " dim " << dim;
    }
  }
}

TEST(SiluMul, HasTheSameBitsWhereverRowsBegin) {
  constexpr int64_t kRows = 3, kDim = 212;
  Random random(13);
  auto gate = random.normals(kRows * kDim), up = random.normals(kRows * kDim);
  Shifted shifted_gate(gate, kRows, kDim), shifted_up(up, kRows, kDim);
  for (const KernelTable* table : tables()) {
    std::vector<float> y(gate.size()), expected(gate.size());
    table->silu_mul({.gate = gate.data(),
                     .up = up.data(),
                     .x_row_stride = kDim,
                     .y = expected.data(),
                     .rows = kRows,
                     .dim = kDim});
    table->silu_mul({.gate = shifted_gate.data(),
                     .up = shifted_up.data(),
                     .x_row_stride = shifted_up.stride,
                     .y = y.data(),
                     .rows = kRows,
                     .dim = kDim});
    EXPECT_TRUE(same_bits(y, expected)) << table->name;
  }
}

TEST(Scale, HasTheSameBitsWhereverRowsBegin) {
  constexpr int64_t kRows = 3, kDim = 140;
  Random random(14);
  auto x = random.normals(kRows * kDim);
  Shifted shifted(x, kRows, kDim);
  for (const KernelTable* table : tables()) {
    std::vector<float> y(x.size()), expected(x.size());
    ScaleArgs args = {.x = x.data(),
                      .x_row_stride = kDim,
                      .y = expected.data(),
                      .rows = kRows,
                      .dim = kDim,
                      .scale = 0.3f,
                      .soft_cap = 5};
    table->scale(args);
    args.x = shifted.data();
    args.x_row_stride = shifted.stride;
    args.y = y.data();
    table->scale(args);
    EXPECT_TRUE(same_bits(y, expected)) << table->name;
  }
}

// exp is within 1 ulp; the sum, the quotient and the product round once each. Beyond -87 the
// exponential overflows or the result is subnormal: both are zero next to any other activation.
TEST(SiluMul, FollowsTheFormulaOverTheWholeRange) {
  for (const KernelTable* table : tables()) {
    std::vector<float> gate;
    for (float x = -86; x < 120; x += 0.00390625f) gate.push_back(x * 1.0001f);
    for (float x = 1e-30f; x < 1; x *= 3) gate.insert(gate.end(), {x, -x});
    std::vector<float> up(gate.size(), 1.0f), y(gate.size());
    table->silu_mul(
        {.gate = gate.data(), .up = up.data(), .y = y.data(), .rows = 1, .dim = std::ssize(gate)});
    for (size_t i = 0; i < gate.size(); ++i) {
      double exact = double{gate[i]} / (1 + std::exp(-double{gate[i]}));
      expect_ulps(y[i], exact, 3, fmt::format("{} silu({})", table->name, gate[i]));
    }
    float special[] = {INFINITY, NAN, -100, -200}, ones[] = {1, 1, 1, 1}, out[4];
    table->silu_mul({.gate = special, .up = ones, .y = out, .rows = 1, .dim = 4});
    EXPECT_EQ(out[0], INFINITY);
    EXPECT_TRUE(std::isnan(out[1]));
    EXPECT_EQ(out[2], 0);
    EXPECT_EQ(out[3], 0);
  }
}

TEST(SiluMul, TakesStridedRowsOfAnyWidth) {
  Random random(3);
  const KernelTable* portable = tables().front();
  for (const KernelTable* table : tables()) {
    for (int64_t dim : kDims) {
      int64_t rows = 6, stride = 2 * dim + 1;  // gate and up side by side, as a fused product
      auto x = random.normals(rows * stride);
      std::vector<float> y(rows * dim), expected(rows * dim);
      ThreadPool threads(2);
      SiluMulArgs args = {.launch = {.threads = &threads},
                          .gate = x.data(),
                          .up = x.data() + dim,
                          .x_row_stride = stride,
                          .y = y.data(),
                          .rows = rows,
                          .dim = dim};
      table->silu_mul(args);
      args.y = expected.data();
      portable->silu_mul(args);
      for (int64_t i = 0; i < rows * dim; ++i) {
        expect_ulps(y[i], expected[i], 6, fmt::format("{} dim {} {}", table->name, dim, i));
      }
    }
  }
}

// As silu_mul: exp, the sum and the quotient.
TEST(GateMul, FollowsTheFormulaOverTheWholeRange) {
  for (const KernelTable* table : tables()) {
    std::vector<float> gate;
    for (float x = -86; x < 120; x += 0.00390625f) gate.push_back(x * 1.0001f);
    std::vector<float> x(gate.size(), -3.0f), y(gate.size());
    table->gate_mul(
        {.gate = gate.data(), .x = x.data(), .y = y.data(), .rows = 1, .dim = std::ssize(gate)});
    for (size_t i = 0; i < gate.size(); ++i) {
      expect_ulps(y[i], -3 / (1 + std::exp(-double{gate[i]})), 3,
                  fmt::format("{} sigmoid({})", table->name, gate[i]));
    }
    float special[] = {INFINITY, -INFINITY, NAN, -200}, ones[] = {1, 1, 1, 1}, out[4];
    table->gate_mul({.gate = special, .x = ones, .y = out, .rows = 1, .dim = 4});
    EXPECT_EQ(out[0], 1);
    EXPECT_EQ(out[1], 0);
    EXPECT_TRUE(std::isnan(out[2]));
    EXPECT_EQ(out[3], 0);
  }
}

TEST(GateMul, TakesStridedRowsOfAnyWidth) {
  Random random(9);
  const KernelTable* portable = tables().front();
  for (const KernelTable* table : tables()) {
    for (int64_t dim : kDims) {
      int64_t rows = 6;
      auto gate = random.normals(rows * (dim + 1)), x = random.normals(rows * (dim + 2));
      std::vector<float> y(rows * dim), expected(rows * dim);
      ThreadPool threads(2);
      GateMulArgs args = {.launch = {.threads = &threads},
                          .gate = gate.data(),
                          .x = x.data(),
                          .gate_row_stride = dim + 1,
                          .x_row_stride = dim + 2,
                          .y = y.data(),
                          .rows = rows,
                          .dim = dim};
      table->gate_mul(args);
      args.y = expected.data();
      portable->gate_mul(args);
      for (int64_t i = 0; i < rows * dim; ++i) {
        expect_ulps(y[i], expected[i], 6, fmt::format("{} dim {} {}", table->name, dim, i));
      }
    }
  }
}

TEST(GateMul, OneGateMayStandForManyColumns) {
  Random random(10);
  constexpr int64_t kRows = 5, kGates = 3;
  for (const KernelTable* table : tables()) {
    for (int64_t columns : {2, 16, 21, 48}) {
      auto gate = random.normals(kRows * kGates), x = random.normals(kRows * kGates * columns);
      std::vector<float> y(x.size());
      table->gate_mul({.gate = gate.data(),
                       .x = x.data(),
                       .gate_row_stride = kGates,
                       .x_row_stride = kGates * columns,
                       .y = y.data(),
                       .rows = kRows,
                       .dim = kGates * columns,
                       .gate_columns = columns});
      for (size_t i = 0; i < y.size(); ++i) {
        double exact = x[i] / (1 + std::exp(-double{gate[i / columns]}));
        expect_ulps(y[i], exact, 3, fmt::format("{} {} of {}", table->name, i, columns));
      }
    }
  }
}

TEST(GateMul, HasEveryFunctionAndOneRowOfGatesForAll) {
  Random random(11);
  constexpr int64_t kRows = 4, kDim = 21;
  auto gate = random.normals(kDim), x = random.normals(kRows * kDim);
  for (const KernelTable* table : tables()) {
    auto run = [&](GateFunction function) {
      std::vector<float> y(x.size(), NAN);
      table->gate_mul({.gate = gate.data(),
                       .x = x.data(),
                       .gate_row_stride = 0,
                       .x_row_stride = kDim,
                       .y = y.data(),
                       .rows = kRows,
                       .dim = kDim,
                       .function = function});
      return y;
    };
    auto silu = run(GateFunction::kSilu), relu = run(GateFunction::kRelu);
    auto identity = run(GateFunction::kIdentity);
    for (int64_t i = 0; i < kRows * kDim; ++i) {
      float g = gate[i % kDim];
      expect_ulps(silu[i], double{g} / (1 + std::exp(-double{g})) * x[i], 4, table->name);
      EXPECT_EQ(relu[i], std::max(g, 0.0f) * x[i]) << table->name;
      EXPECT_EQ(identity[i], g * x[i]) << table->name;
    }
  }
}

// The gate is clamped after silu, and from above only.
TEST(SiluMul, ClampsBothFactorsAtALimit) {
  std::vector<float> gate = {-50, -1.2f, 1, 2.4f, 3, 90, NAN, 1};
  std::vector<float> up = {3, -0.5f, -7, 2.6f, 1, -9, 1, NAN};
  for (const KernelTable* table : tables()) {
    std::vector<float> y(gate.size());
    table->silu_mul(
        {.gate = gate.data(), .up = up.data(), .y = y.data(), .rows = 1, .dim = 8, .limit = 2.5f});
    for (size_t i = 0; i < 6; ++i) {
      double silu = gate[i] / (1 + std::exp(-double{gate[i]}));
      double exact = std::min(silu, 2.5) * std::clamp(double{up[i]}, -2.5, 2.5);
      expect_ulps(y[i], exact, 3, fmt::format("{} {}", table->name, i));
    }
    EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7])) << table->name;
  }
}

// The exponent of gelu grows with the cube of the gate, and its error with the exponent.
TEST(SiluMul, OtherFormsFollowTheirFormulas) {
  std::vector<float> gate, up;
  for (float x = -12; x < 12; x += 0.0078125f) {
    gate.push_back(x * 1.001f);
    up.push_back(3 - x * 0.7f);
  }
  gate.insert(gate.end(), {-90, 90, 0, NAN, 1});
  up.insert(up.end(), {1, 1, 1, 1, NAN});
  for (const KernelTable* table : tables()) {
    for (GluForm form : {GluForm::kGeluTanh, GluForm::kSwigluOai}) {
      std::vector<float> y(gate.size());
      table->silu_mul({.gate = gate.data(),
                       .up = up.data(),
                       .y = y.data(),
                       .rows = 1,
                       .dim = std::ssize(gate),
                       .limit = 2.5f,
                       .form = form});
      for (size_t i = 0; i + 2 < gate.size(); ++i) {
        double g = gate[i], u = up[i], exact;
        if (form == GluForm::kGeluTanh) {
          double z = 0.7978845608028654 * (g + 0.044715 * g * g * g);
          exact = g / (1 + std::exp(-2 * z)) * u;
        } else {
          g = std::min(g, 2.5);
          exact = g / (1 + std::exp(-1.702 * g)) * (std::clamp(u, -2.5, 2.5) + 1);
        }
        EXPECT_NEAR(y[i], exact, 3e-6 * std::max(1.0, std::abs(exact)))
            << table->name << ' ' << gate[i] << ' ' << up[i];
      }
      EXPECT_TRUE(std::isnan(y[y.size() - 2]) && std::isnan(y.back())) << table->name;
    }
  }
}

TEST(Scale, TakesFactorsCapsAndPositions) {
  Random random(10);
  const std::vector<int32_t> positions = {0, 15, 16, 700};
  for (const KernelTable* table : tables()) {
    for (int64_t dim : kDims) {
      auto x = random.normals(4 * (dim + 2), 9);
      std::vector<float> y(4 * dim);
      for (float cap : {0.0f, 5.0f}) {
        for (const int32_t* at : {static_cast<const int32_t*>(nullptr), positions.data()}) {
          ThreadPool threads(2);
          table->scale({.launch = {.threads = &threads},
                        .x = x.data(),
                        .x_row_stride = dim + 2,
                        .y = y.data(),
                        .rows = 4,
                        .dim = dim,
                        .scale = 0.3f,
                        .soft_cap = cap,
                        .positions = at,
                        .position_beta = 0.1f,
                        .position_period = 16});
          for (int64_t i = 0; i < 4 * dim; ++i) {
            double factor = at ? 1 + 0.1 * std::log1p(std::floor(at[i / dim] / 16.0)) : 1;
            double exact = factor * 0.3 * double{x[i / dim * (dim + 2) + i % dim]};
            if (cap > 0) exact = 5 * std::tanh(exact / 5);
            EXPECT_NEAR(y[i], exact, 1e-6 * std::max(1.0, std::abs(exact))) << table->name;
          }
        }
      }
    }
  }
}

// One rounding each: every table gives the same bits.
TEST(Add, IsExactInEveryTable) {
  Random random(4);
  for (const KernelTable* table : tables()) {
    for (int64_t count : {1, 7, 8, 17, 4096, 40000}) {
      auto a = random.normals(count), b = random.normals(count);
      std::vector<float> y(count), expected(count);
      ThreadPool threads(3);
      table->add({.launch = {.threads = &threads},
                  .a = a.data(),
                  .b = b.data(),
                  .y = y.data(),
                  .count = count});
      for (int64_t i = 0; i < count; ++i) expected[i] = a[i] + b[i];
      EXPECT_TRUE(same_bits(y, expected)) << table->name << " " << count;
    }
  }
}

// Two products and a sum with no fused step: every table gives the bits of portable, in place too.
TEST(Rope, IsTheSameInEveryTable) {
  Random random(5);
  const KernelTable* portable = tables().front();
  for (const KernelTable* table : tables()) {
    for (RopeLayout layout : {RopeLayout::kHalves, RopeLayout::kInterleaved}) {
      for (int64_t head_dim : {8, 24, 40, 64, 128}) {
        for (int64_t pairs : {head_dim / 2, head_dim / 4, int64_t{1}}) {
          int64_t rows = 7, heads = 3, stride = heads * head_dim + 2;
          auto x = random.normals(rows * stride);
          auto cos = random.normals(rows * pairs), sin = random.normals(rows * pairs);
          auto y = x, expected = x;
          RopeArgs args = {.x = x.data(),
                           .x_row_stride = stride,
                           .x_head_stride = head_dim,
                           .cos = cos.data(),
                           .sin = sin.data(),
                           .y = expected.data(),
                           .y_row_stride = stride,
                           .y_head_stride = head_dim,
                           .rows = rows,
                           .heads = heads,
                           .head_dim = head_dim,
                           .pairs = pairs,
                           .layout = layout};
          portable->rope(args);
          args.x = args.y = y.data();
          table->rope(args);
          EXPECT_TRUE(same_bits(y, expected))
              << table->name << " head_dim " << head_dim << " pairs " << pairs;
        }
      }
    }
  }
}

// The angle is the f32 product, whose error at far positions is the reference's own; cos and sin of
// that angle are within 1 ulp.
TEST(RopeAngles, ReduceFarAnglesExactly) {
  std::vector<int32_t> positions = {0, 1, 2, 1000, 131071, 1000000};
  std::vector<float> frequencies = {1.0f, 0.7498942f, 0.01f, 1e-6f};
  for (const KernelTable* table : tables()) {
    std::vector<float> cos(24), sin(24);
    table->rope_angles({.positions = positions.data(),
                        .inverse_frequency = frequencies.data(),
                        .scale = 1.5f,
                        .cos = cos.data(),
                        .sin = sin.data(),
                        .rows = 6,
                        .pairs = 4});
    for (int i = 0; i < 24; ++i) {
      double angle = double{static_cast<float>(positions[i / 4]) * frequencies[i % 4]};
      EXPECT_NEAR(cos[i], 1.5 * std::cos(angle), 3e-7) << table->name << " " << angle;
      EXPECT_NEAR(sin[i], 1.5 * std::sin(angle), 3e-7) << table->name << " " << angle;
    }
  }
}

struct Stats {
  float max;
  int32_t argmax;
  float log_sum_exp;
};

Stats stats_of(const KernelTable& table, const std::vector<float>& x) {
  Stats stats;
  table.logit_stats({.x = x.data(),
                     .rows = 1,
                     .dim = std::ssize(x),
                     .max = &stats.max,
                     .argmax = &stats.argmax,
                     .log_sum_exp = &stats.log_sum_exp});
  return stats;
}

// Runs of 4096 terms in at most 4096 / 8 additions per lane: the sum is within 2^9 eps / 2 plus the
// ulp of exp, and its logarithm within that absolutely; x - max and the final sum round too.
TEST(LogitStats, AgreeWithF64) {
  Random random(6);
  for (const KernelTable* table : tables()) {
    for (int64_t dim : {1, 5, 8, 16, 31, 33, 4095, 4097, 151936}) {
      auto x = random.normals(dim, 10);
      double sum = 0;
      float max = *std::ranges::max_element(x);
      for (float value : x) sum += std::exp(double{value} - double{max});
      Stats stats = stats_of(*table, x);
      EXPECT_EQ(stats.max, max);
      EXPECT_EQ(x[stats.argmax], max);
      double bound = (256 + 2 + 2 * std::fabs(double{max})) * double{kEpsilon};
      EXPECT_NEAR(stats.log_sum_exp, double{max} + std::log(sum), bound) << table->name << dim;
    }
  }
}

TEST(LogitStats, OfARowDoNotDependOnTheOthers) {
  constexpr int64_t kRows = 7, kDim = 5001;
  Random random(15);
  auto x = random.normals(kRows * kDim, 10);
  x[2 * kDim + 4500] = NAN;
  std::fill_n(x.begin() + 3 * kDim, 2100, -INFINITY);
  for (const KernelTable* table : tables()) {
    std::vector<float> max(kRows), log_sum_exp(kRows);
    std::vector<int32_t> argmax(kRows);
    table->logit_stats({.x = x.data(),
                        .x_row_stride = kDim,
                        .rows = kRows,
                        .dim = kDim,
                        .max = max.data(),
                        .argmax = argmax.data(),
                        .log_sum_exp = log_sum_exp.data()});
    for (int64_t r = 0; r < kRows; ++r) {
      Stats alone = stats_of(*table, {x.begin() + r * kDim, x.begin() + (r + 1) * kDim});
      EXPECT_EQ(max[r], alone.max) << table->name << r;
      EXPECT_EQ(argmax[r], alone.argmax) << table->name << r;
      EXPECT_TRUE(same_bits({log_sum_exp[r]}, {alone.log_sum_exp})) << table->name << r;
      EXPECT_EQ(std::isnan(alone.log_sum_exp), r == 2) << table->name << r;
    }
  }
}

TEST(LogitStats, TiesNaNsAndInfinitiesAreTheSameInEveryTable) {
  float inf = INFINITY, nan = NAN;
  std::vector<float> tie(100, 1.0f), zeros(40, 0.0f), masked(50, -inf), mixed(50, -inf);
  zeros[0] = -0.0f;
  mixed[33] = 2;
  auto with = [](std::vector<float> x, size_t i, float value) {
    x[i] = value;
    return x;
  };
  struct Case {
    std::vector<float> x;
    float max;
    int32_t argmax;
    float log_sum_exp;
  };
  std::vector<Case> cases = {
      {tie, 1, 0, 1 + std::log(100.0f)},
      {zeros, 0, 0, std::log(40.0f)},
      {masked, -inf, 0, -inf},
      {mixed, 2, 33, 2},
      {with(tie, 70, inf), inf, 70, inf},
      {with(tie, 0, nan), 1, 1, nan},
      {with(tie, 99, nan), 1, 0, nan},
      {with(masked, 0, nan), -inf, 1, nan},
      {with(with(tie, 3, inf), 2, nan), inf, 3, nan},
      {std::vector<float>(20, nan), -inf, 0, nan},
      {{3.4e38f, -3.4e38f, 3.4e38f}, 3.4e38f, 0, 3.4e38f},
  };
  for (const KernelTable* table : tables()) {
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(fmt::format("{} case {}", table->name, i));
      Stats stats = stats_of(*table, cases[i].x);
      EXPECT_EQ(stats.max, cases[i].max);
      EXPECT_EQ(stats.argmax, cases[i].argmax);
      EXPECT_EQ(std::isnan(stats.log_sum_exp), std::isnan(cases[i].log_sum_exp));
      if (std::isinf(cases[i].log_sum_exp)) {
        EXPECT_EQ(stats.log_sum_exp, cases[i].log_sum_exp);
      } else if (!std::isnan(cases[i].log_sum_exp)) {
        EXPECT_NEAR(stats.log_sum_exp, cases[i].log_sum_exp, 1e-5f);
      }
    }
  }
}

TEST(CopyRows, TakesEachRowOfAnIndexOrAllInOrder) {
  constexpr int64_t kDim = 9, kXStride = 13, kYStride = 11;
  Random random(21);
  std::vector<float> x = random.normals(8 * kXStride);
  const std::vector<int32_t> index = {5, 0, 5, 7, 2};
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    for (bool indexed : {false, true}) {
      std::vector<float> y(5 * kYStride, -77), expected = y;
      for (int64_t r = 0; r < 5; ++r) {
        auto from = x.begin() + (indexed ? index[r] : r) * kXStride;
        std::copy(from, from + kDim, expected.begin() + r * kYStride);
      }
      ThreadPool threads(2);
      table->copy_rows({.launch = {.threads = &threads},
                        .x = x.data(),
                        .x_row_stride = kXStride,
                        .index = indexed ? index.data() : nullptr,
                        .y = y.data(),
                        .y_row_stride = kYStride,
                        .rows = 5,
                        .dim = kDim});
      EXPECT_EQ(y, expected);
    }
  }
}

TEST(AddRows, AddsToTheRowsOfAnIndexAndZerosChangeNothing) {
  constexpr int64_t kXStride = 13, kYStride = 16;
  Random random(22);
  std::vector<float> x = random.normals(3 * kXStride), y = random.normals(8 * kYStride);
  const std::vector<int32_t> index = {5, 0, 7};
  x[1] = 0;
  y[5 * kYStride + 1] = -0.0f;
  for (const KernelTable* table : tables()) {
    SCOPED_TRACE(table->name);
    for (int64_t dim : {9, 12}) {
      std::vector<float> sums = y, expected = y;
      for (size_t r = 0; r < index.size(); ++r) {
        for (int64_t c = 0; c < dim; ++c) {
          float value = x[r * kXStride + c];
          if (value != 0) expected[index[r] * kYStride + c] += value;
        }
      }
      ThreadPool threads(2);
      table->add_rows({.launch = {.threads = &threads},
                       .x = x.data(),
                       .x_row_stride = kXStride,
                       .index = index.data(),
                       .y = sums.data(),
                       .y_row_stride = kYStride,
                       .rows = 3,
                       .dim = dim});
      EXPECT_EQ(std::memcmp(sums.data(), expected.data(), sums.size() * sizeof(float)), 0) << dim;
    }
  }
}

}  // namespace
}  // namespace banyan::rowwise_test
