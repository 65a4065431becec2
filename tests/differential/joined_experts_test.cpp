// Launches of a layer with experts that a queue joins.
#include <gtest/gtest.h>

#include <utility>

#include "differential/joined_launches.h"

namespace banyan::test::joined_experts_test {
namespace {

using namespace cuda;  // NOLINT

// Activations of experts and of a shared one, each for a product of its own. The first product may
// lie between them and the second rounding.
struct Activated {
  static constexpr int64_t kRows = 5, kDim = 256;

  explicit Activated(uint64_t seed) : inputs(Random(seed).normals(4 * kRows * kDim)) {
    y.assign(2 * kRows * kDim, NAN);
    outputs.assign(kRows * kDim, NAN);
    for (auto& w : workspaces) w.assign(RoundedRows::bytes(kRows, 1, kDim) / 4 + 16, NAN);
  }
  SiluMul kernel(int64_t i) {
    const float* gate = inputs.data() + 2 * i * kRows * kDim;
    return {{.gate = gate,
             .up = gate + kRows * kDim,
             .x_row_stride = kDim,
             .y = y.data() + i * kRows * kDim,
             .rows = kRows,
             .dim = kDim}};
  }
  GemmArgs product(int64_t i) {
    auto address = reinterpret_cast<uintptr_t>(workspaces[i].data());
    return {.x = y.data() + i * kRows * kDim,
            .x_stride = kDim,
            .x_rows = kRows,
            .y = outputs.data(),
            .y_stride = kDim,
            .n = kDim,
            .k = kDim,
            .group = 32,
            .workspace = workspaces[i].data() + (64 - address % 64) % 64 / sizeof(float)};
  }
  // Launches of both as a layer asks for them, and how many there are.
  template <class Rounding>
  size_t run() {
    Collector collector;
    collector.add(kernel(0));
    collector.add(kernel(1));
    collector.add(Rounding{product(0)});
    collector.add_product({product(0)}, [](const TensorProduct&) {});
    collector.add(Rounding{product(1)});
    collector.launches().issue_all(nullptr);
    return collector.launches().size();
  }
  std::vector<std::byte> prepared(size_t i, size_t bytes) {
    const auto* data = static_cast<const std::byte*>(product(i).workspace);
    return {data, data + bytes};
  }

  std::vector<float> inputs, y, outputs, workspaces[2];
};

template <class Rounding>
void expect_joined_activations(size_t bytes) {
  Activated apart(20), joined(20);
  for (int64_t i : {0, 1}) {
    launch_on_cuda(apart.kernel(i));
    launch_on_cuda(Rounding{apart.product(i)});
  }
  EXPECT_EQ(joined.run<Rounding>(), 2u);
  EXPECT_TRUE(same_bits(joined.y, apart.y));
  for (size_t i : {0, 1}) EXPECT_EQ(joined.prepared(i, bytes), apart.prepared(i, bytes)) << i;
}

TEST(JoinedLaunches, ActivationsOfExpertsAndOfASharedOneAreOne) {
  expect_joined_activations<RoundRows>(RoundedRows::bytes(Activated::kRows, 1, Activated::kDim));
  // Steps are there for eight rows, of which some do not exist.
  expect_joined_activations<QuantiseRows>(Activated::kRows * Activated::kDim);
  // Where the first product still reads its rows, the second's are rounded after it.
  Activated same(20);
  Collector collector;
  collector.add(same.kernel(0));
  collector.add(same.kernel(1));
  collector.add(RoundRows{same.product(0)});
  collector.add_product({same.product(0)}, [](const TensorProduct&) {});
  GemmArgs second = same.product(1);
  second.workspace = same.product(0).workspace;
  collector.add(RoundRows{second});
  EXPECT_EQ(collector.launches().size(), 3u);
}

// The results of experts, of which the last choice of each row is none, and of a shared one.
struct Combined {
  Combined(Stream& stream, bool is_shared) {
    constexpr int64_t kTopK = 3;
    Random random(12);
    int64_t rows = stream.rows, dim = stream.dim;
    x = random.normals(rows * dim);
    expert_rows = random.normals(rows * kTopK * dim);
    shared = random.normals(rows * dim);
    weights = random.normals(rows * kTopK);
    for (int64_t i = 0; i < rows * kTopK; ++i) {
      places.push_back(i % kTopK == kTopK - 1 ? -1 : static_cast<int32_t>(i - i / kTopK));
    }
    kernel = {{.x = x.data(),
               .x_row_stride = dim,
               .expert_rows = expert_rows.data(),
               .places = places.data(),
               .weights = weights.data(),
               .shared = is_shared ? shared.data() : nullptr,
               .y = stream.b.data(),
               .rows = rows,
               .dim = dim,
               .top_k = kTopK}};
  }

  std::vector<float> x, expert_rows, shared, weights;
  std::vector<int32_t> places;
  CombineExperts kernel;
};

TEST(JoinedLaunches, WhatExpertsReturnIsAddedToTheStreamAndNormed) {
  for (int64_t dim : {128, 640, 4096}) {
    for (int64_t rows : {1, 7}) {
      for (bool is_first : {false, true}) {
        Stream apart(rows, dim, 3), joined(rows, dim, 3);
        Combined of_apart(apart, is_first), of_joined(joined, is_first);
        Add sum = joined.add_kernel(), expected = apart.add_kernel();
        if (is_first) std::swap(sum.a.a, sum.a.b), std::swap(expected.a.a, expected.a.b);
        launch_on_cuda(of_apart.kernel);
        launch_on_cuda(expected);
        launch_on_cuda(apart.copy_kernel());
        launch_on_cuda(apart.norm_kernel(apart.copy));
        launch_on_cuda(apart.rounding_kernel());
        Collector collector;
        collector.add(of_joined.kernel);
        collector.add(sum);
        collector.add(joined.copy_kernel());
        collector.add(joined.norm_kernel(joined.copy));
        collector.add(joined.rounding_kernel());
        EXPECT_EQ(collector.launches().size(), 1u);
        collector.launches().issue_all(nullptr);
        EXPECT_TRUE(joined == apart && same_bits(joined.b, apart.b)) << rows << " of " << dim;
      }
    }
  }
}

// For a product with weights of integers. A warp has a short row alone, and does not quantise it.
TEST(JoinedLaunches, ANormOfAStreamIsQuantised) {
  for (auto [dim, launches] : {std::pair{640, 1u}, {4096, 1u}, {128, 2u}}) {
    for (bool has_experts : {false, true}) {
      Stream apart(3, dim, 3), joined(3, dim, 3);
      Combined of_apart(apart, true), of_joined(joined, true);
      auto quantising = [](const Stream& s) {
        QuantiseRows kernel = {s.rounding_kernel().a};
        kernel.a.group = 32;
        return kernel;
      };
      if (has_experts) launch_on_cuda(of_apart.kernel);
      launch_on_cuda(apart.add_kernel());
      launch_on_cuda(apart.norm_kernel(apart.sum));
      launch_on_cuda(quantising(apart));
      Collector collector;
      if (has_experts) collector.add(of_joined.kernel);
      collector.add(joined.add_kernel());
      collector.add(joined.norm_kernel(joined.sum));
      collector.add(quantising(joined));
      EXPECT_EQ(collector.launches().size(), launches);
      collector.launches().issue_all(nullptr);
      EXPECT_TRUE(joined == apart) << dim;
    }
  }
}

TEST(JoinedLaunches, OtherResultsOfExpertsAreNotJoined) {
  Stream s(4, 128, 6);
  Combined combined(s, true);
  auto changed = [&](auto change) {
    CombineExperts experts = combined.kernel;
    RmsNorm norm = s.norm_kernel(s.sum);
    change(experts.a, norm.a);
    Collector collector;
    collector.add(experts);
    collector.add(s.add_kernel());
    collector.add(norm);
    return collector.launches().size();
  };
  using Experts = CombineExpertsArgs;
  using Norm = RmsNormArgs;
  EXPECT_EQ(changed([](Experts&, Norm&) {}), 1u);
  EXPECT_EQ(changed([&](Experts& e, Norm&) { e.y = s.copy.data(); }), 2u) << "no summand";
  EXPECT_EQ(changed([](Experts& e, Norm&) { e.rows = 3; }), 2u) << "of some rows";
  EXPECT_EQ(changed([](Experts& e, Norm&) { ++e.expert_rows; }), 2u) << "not in fours";
  EXPECT_EQ(changed([&](Experts& e, Norm&) { e.shared = s.sum.data(); }), 2u) << "of the sum";
  EXPECT_EQ(changed([&](Experts& e, Norm& n) { n.y = const_cast<float*>(e.x); }), 2u)
      << "over a row that an expert returns as it is";
}

}  // namespace
}  // namespace banyan::test::joined_experts_test
