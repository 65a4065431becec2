// Routing rows to experts and combining the results, on experts that are easy to tell apart.
#include "ops/moe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/select.h"

namespace banyan::moe_test {
namespace {

constexpr int64_t kRows = 5, kExperts = 3, kDim = 2;

class MoeOps : public testing::Test {
 protected:
  Tensor tensor(std::initializer_list<int64_t> shape, const std::vector<float>& values) {
    Tensor t = step_.allocate(shape);
    std::ranges::copy(values, t.f32());
    return t;
  }

  // Experts that multiply by `factors`.
  PackedMatrix scaling(const std::array<float, kExperts>& factors) {
    const WeightFormat* format = format_named("f32");
    PackedMatrix m{
        .format = format, .count = kExperts, .rows = kDim, .columns = kDim, .group = kDim};
    const GemmKernel& kernel = step_.kernels.*format->kernel;
    m.bytes = kernel.packed_bytes(kDim, kDim, kDim);
    m.data = arena_.allocate(m.total_bytes());
    for (size_t e = 0; e < kExperts; ++e) {
      float elements[] = {factors[e], 0, 0, factors[e]};
      kernel.pack({.source = elements,
                   .packed = static_cast<std::byte*>(m.data) + e * m.bytes,
                   .n = kDim,
                   .k = kDim,
                   .group = kDim,
                   .row_count = 2});
    }
    return m;
  }

  Arena arena_{1 << 16};
  StatePools pools_ = *StatePools::create({}, 4, {});
  Batch batch_;
  StepInputs inputs_;
  Step step_{.kernels = **select_kernels("portable"),
             .launch = {},
             .arena = arena_,
             .pools = pools_,
             .batch = batch_,
             .inputs = inputs_,
             .auxiliary_layers = {}};
};

// Four choices: three experts and one that returns its input. Logits choose two of them.
TEST_F(MoeOps, RowsGoToTheirExpertsAndBack) {
  Tensor logits = tensor({kRows, kExperts + 1}, {9, 8, 0, 0,  //
                                                 0, 0, 8, 9,  //
                                                 8, 9, 0, 0,  //
                                                 9, 0, 0, 8,  //
                                                 0, 9, 8, 0});
  Routing r = route(step_, logits, Tensor(),
                    {.experts = kExperts, .identity_experts = 1, .top_k = 2, .normalise = true});
  EXPECT_EQ(std::vector(r.ids, r.ids + 10), (std::vector<int32_t>{0, 1, 3, 2, 1, 0, 0, 3, 1, 2}));
  ASSERT_EQ(r.assignments_max, 10);
  EXPECT_EQ(std::vector(r.begins, r.begins + 4), (std::vector<int32_t>{0, 3, 6, 8}));
  EXPECT_EQ(std::vector(r.sources, r.sources + 8), (std::vector<int32_t>{0, 2, 3, 0, 2, 4, 1, 4}));
  EXPECT_EQ(std::vector(r.places, r.places + 10),
            (std::vector<int32_t>{0, 3, -1, 6, 4, 1, 2, -1, 5, 7}));

  Tensor x = tensor({kRows, kDim}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  PackedMatrix tens = scaling({1, 10, 100}), twice = scaling({2, 2, 2});
  Tensor rows = linear_of_sorted(step_, linear_of_rows(step_, x, tens, r), twice, r);
  Tensor y = combine_experts(step_, x, rows, r, x);
  auto expect_row = [&](int64_t row, double first, double second) {
    const float* w = r.weights + row * 2;
    double value = w[0] * first + w[1] * second + static_cast<double>(row + 1);
    EXPECT_NEAR(y.f32()[row * kDim], value, 1e-4) << row;
    EXPECT_NEAR(w[0] + w[1], 1, 1e-6);
  };
  expect_row(0, 2, 20);
  expect_row(1, 2, 400);
  expect_row(2, 60, 6);
  expect_row(3, 8, 4);
  expect_row(4, 100, 1000);
}

TEST_F(MoeOps, AStepMayChooseNoExpertThatComputes) {
  Tensor logits = tensor({1, kExperts + 1}, {0, 0, 0, 5});
  Routing r =
      route(step_, logits, Tensor(), {.experts = kExperts, .identity_experts = 1, .top_k = 1});
  EXPECT_EQ(r.begins[kExperts], 0);
  Tensor x = tensor({1, kDim}, {3, 4});
  PackedMatrix experts = scaling({7, 7, 7});
  Tensor y = combine_experts(step_, x, linear_of_rows(step_, x, experts, r), r, Tensor());
  EXPECT_NEAR(y.f32()[1], 4 * r.weights[0], 1e-6);
}

}  // namespace
}  // namespace banyan::moe_test
