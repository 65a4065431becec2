// Launches that a queue joins compute the bits of those that it was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "differential/joined_launches.h"

namespace banyan::test::joined_launches_test {
namespace {

using namespace cuda;  // NOLINT

// One row and several; a team of a warp and of a block; more than a thread loads at once.
TEST(JoinedLaunches, ASumItsCopyItsNormAndTheRoundedNormAreOne) {
  for (int64_t dim : {128, 512, 640, 5120}) {
    for (int64_t rows : {1, 7}) {
      Stream apart(rows, dim, 3), joined(rows, dim, 3);
      launch_on_cuda(apart.add_kernel());
      launch_on_cuda(apart.copy_kernel());
      launch_on_cuda(apart.norm_kernel(apart.copy));
      launch_on_cuda(apart.rounding_kernel());
      Collector collector;
      collector.add(joined.add_kernel());
      collector.add(joined.copy_kernel());
      collector.add(joined.norm_kernel(joined.copy));
      collector.add(joined.rounding_kernel());
      EXPECT_EQ(collector.launches().size(), 1u);
      collector.launches().issue_all(nullptr);
      EXPECT_TRUE(joined == apart) << rows << " rows of " << dim;
    }
  }
}

TEST(JoinedLaunches, ASumIsNormedWithoutACopyAndCopiedWithoutANorm) {
  Stream apart(5, 640, 4), joined(5, 640, 4);
  launch_on_cuda(apart.add_kernel());
  launch_on_cuda(apart.norm_kernel(apart.sum));
  launch_on_cuda(apart.copy_kernel());
  Collector collector;
  collector.add(joined.add_kernel());
  collector.add(joined.norm_kernel(joined.sum));
  EXPECT_EQ(collector.launches().size(), 1u);
  collector.launches().issue_all(nullptr);
  collector.clear();
  std::ranges::fill(joined.sum, NAN);
  collector.add(joined.add_kernel());
  collector.add(joined.copy_kernel());
  EXPECT_EQ(collector.launches().size(), 1u);
  collector.launches().issue_all(nullptr);
  EXPECT_TRUE(joined == apart);
}

// What a layer leaves in place of its input.
TEST(JoinedLaunches, TheCopyMayReplaceASummand) {
  Stream joined(3, 128, 5), apart(3, 128, 5);
  launch_on_cuda(apart.add_kernel());
  launch_on_cuda(apart.norm_kernel(apart.sum));
  CopyRows copy = joined.copy_kernel();
  copy.a.y = joined.a.data();
  Collector collector;
  collector.add(joined.add_kernel());
  collector.add(copy);
  collector.add(joined.norm_kernel(joined.a));
  EXPECT_EQ(collector.launches().size(), 1u);
  collector.launches().issue_all(nullptr);
  EXPECT_TRUE(same_bits(joined.a, apart.sum));
  EXPECT_TRUE(joined == apart);
}

// How many launches two kernels are.
template <class First, class Second>
size_t launches_of(const First& first, const Second& second) {
  Collector collector;
  collector.add(first);
  collector.add(second);
  return collector.launches().size();
}

TEST(JoinedLaunches, OtherNormsAreNotJoined) {
  Stream s(4, 128, 6), odd(3, 7, 7);
  Add sum = s.add_kernel();
  RmsNorm norm = s.norm_kernel(s.sum);
  ASSERT_EQ(launches_of(sum, norm), 1u);
  EXPECT_EQ(launches_of(odd.add_kernel(), odd.norm_kernel(odd.sum)), 2u) << "not in fours";
  EXPECT_EQ(launches_of(sum, s.norm_kernel(s.b)), 2u) << "of something else";
  auto changed = [&](auto change) {
    RmsNorm other = norm;
    change(other.a);
    return launches_of(sum, other);
  };
  EXPECT_EQ(changed([](RmsNormArgs& a) { a.rows = 3; }), 2u) << "of some rows";
  EXPECT_EQ(changed([](RmsNormArgs& a) { a.groups = 2, a.dim = 64; }), 2u) << "of groups";
  EXPECT_EQ(changed([](RmsNormArgs& a) { a.x_row_stride = 256; }), 2u) << "of every other row";
  EXPECT_EQ(changed([](RmsNormArgs& a) { a.rows = 2, a.dim = 256; }), 2u) << "of longer rows";
  EXPECT_EQ(changed([](RmsNormArgs& a) { ++a.weight; }), 2u) << "weights not in fours";
  EXPECT_EQ(changed([&](RmsNormArgs& a) { a.y = s.b.data() + 128; }), 2u) << "over a summand";
  EXPECT_EQ(changed([&](RmsNormArgs& a) { a.y = s.sum.data(); }), 2u) << "over the sum";
  Collector between;
  between.add(sum);
  between.add(s.norm_kernel(s.a));
  between.add(norm);
  EXPECT_EQ(between.launches().size(), 3u);
}

TEST(JoinedLaunches, OtherCopiesAreNotJoined) {
  Stream s(4, 128, 8);
  auto changed = [&](auto change) {
    CopyRows copy = s.copy_kernel();
    change(copy.a);
    Collector collector;
    collector.add(s.add_kernel());
    collector.add(copy);
    return collector.launches().size();
  };
  const std::vector<int32_t> index = {3, 2, 1, 0};
  EXPECT_EQ(changed([](CopyRowsArgs&) {}), 1u);
  EXPECT_EQ(changed([&](CopyRowsArgs& a) { a.index = index.data(); }), 2u);
  EXPECT_EQ(changed([&](CopyRowsArgs& a) { a.x = s.a.data(); }), 2u);
  EXPECT_EQ(changed([](CopyRowsArgs& a) { a.rows = 3; }), 2u);
  EXPECT_EQ(changed([](CopyRowsArgs& a) { a.y_row_stride = 200; }), 2u);
  EXPECT_EQ(changed([&](CopyRowsArgs& a) { a.y = s.a.data() + 4; }), 2u) << "over a summand";
  Collector twice;
  twice.add(s.add_kernel());
  twice.add(s.copy_kernel());
  twice.add(s.copy_kernel());
  EXPECT_EQ(twice.launches().size(), 2u);
}

// The rounded norm lies where another block may still read a summand.
TEST(JoinedLaunches, RoundingOverASummandIsALaunch) {
  Stream s(4, 128, 9);
  RoundRows rounding = s.rounding_kernel();
  rounding.a.workspace = s.a.data();
  Collector collector;
  collector.add(s.add_kernel());
  collector.add(s.norm_kernel(s.sum));
  collector.add(rounding);
  EXPECT_EQ(collector.launches().size(), 2u);
}

// The norms of the groups of a row, multiplied by gates for the product after them.
struct Gated {
  Gated(int64_t rows, int64_t groups, int64_t dim, int64_t gate_columns)
      : rows(rows), groups(groups), dim(dim), columns(groups * dim) {
    Random random(11);
    x = random.normals(rows * columns);
    weight = random.normals(dim);
    gates = random.normals(rows * columns);
    normed.assign(x.size(), NAN);
    y.assign(x.size(), NAN);
    workspace.assign(RoundedRows::bytes(rows, 1, columns) + 64, std::byte{});
    norm = {{.x = x.data(),
             .x_row_stride = columns,
             .weight = weight.data(),
             .y = normed.data(),
             .y_row_stride = columns,
             .rows = rows,
             .groups = groups,
             .dim = dim,
             .eps = 1e-6f}};
    gate = {{.gate = gates.data(),
             .x = normed.data(),
             .gate_row_stride = columns,
             .x_row_stride = columns,
             .y = y.data(),
             .rows = rows,
             .dim = columns,
             .gate_columns = gate_columns}};
  }
  RoundRows rounding() {
    GemmArgs product = {.x = y.data(), .x_stride = columns, .x_rows = rows, .k = columns};
    product.workspace = workspace.data() + 64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64;
    return {product};
  }
  std::vector<std::byte> rounded() {
    const auto* data = static_cast<const std::byte*>(rounding().a.workspace);
    return {data, data + RoundedRows::bytes(rows, 1, columns)};
  }

  int64_t rows, groups, dim, columns;
  std::vector<float> x, weight, gates, normed, y;
  std::vector<std::byte> workspace;
  RmsNorm norm;
  GateMul gate;
};

TEST(JoinedLaunches, ANormIsMultipliedByGates) {
  for (auto [groups, dim, gate_columns] : {std::tuple{4, 128, 1}, {2, 64, 64}, {1, 1280, 1}}) {
    for (int64_t rows : {1, 5}) {
      Gated apart(rows, groups, dim, gate_columns), joined(rows, groups, dim, gate_columns);
      launch_on_cuda(apart.norm);
      launch_on_cuda(apart.gate);
      launch_on_cuda(apart.rounding());
      Collector collector;
      collector.add(joined.norm);
      collector.add(joined.gate);
      collector.add(joined.rounding());
      EXPECT_EQ(collector.launches().size(), 1u);
      collector.launches().issue_all(nullptr);
      EXPECT_TRUE(same_bits(joined.normed, apart.normed) && same_bits(joined.y, apart.y) &&
                  joined.rounded() == apart.rounded())
          << rows << " rows of " << groups << " times " << dim;
    }
  }
}

TEST(JoinedLaunches, OtherGatesAreNotJoined) {
  Gated g(4, 2, 64, 1), odd(4, 2, 7, 1);
  auto changed = [&](auto change) {
    GateMul gate = g.gate;
    change(gate.a);
    Collector collector;
    collector.add(g.norm);
    collector.add(gate);
    return collector.launches().size();
  };
  EXPECT_EQ(changed([](GateMulArgs&) {}), 1u);
  EXPECT_EQ(changed([&](GateMulArgs& a) { a.x = g.x.data(); }), 2u) << "of something else";
  EXPECT_EQ(changed([&](GateMulArgs& a) { a.gate = g.normed.data(); }), 2u) << "by the norm itself";
  EXPECT_EQ(changed([&](GateMulArgs& a) { a.y = g.x.data(); }), 2u) << "over what is normed";
  EXPECT_EQ(changed([&](GateMulArgs& a) { a.y = g.gates.data() + 4; }), 2u) << "over gates";
  EXPECT_EQ(changed([](GateMulArgs& a) { a.rows = 3; }), 2u) << "of some rows";
  EXPECT_EQ(changed([](GateMulArgs& a) { a.dim = 64; }), 2u) << "of some columns";
  Collector collector;
  collector.add(odd.norm);
  collector.add(odd.gate);
  EXPECT_EQ(collector.launches().size(), 2u) << "not in fours";
}

// Choices of one row or of several, and what a launch writes about them.
struct Choices {
  Choices(int64_t rows, int64_t experts, int64_t top_k)
      : logits(Random(10).normals(rows * experts)),
        ids(rows * top_k),
        places(ids.size()),
        sources(ids.size()),
        begins(experts),
        weights(ids.size()) {
    route = {{.logits = logits.data(),
              .logits_row_stride = experts,
              .ids = ids.data(),
              .weights = weights.data(),
              .rows = rows,
              .experts = experts,
              .top_k = top_k,
              .normalise = true}};
    // The last expert computes nothing.
    sort = {{.ids = ids.data(),
             .rows = rows,
             .top_k = top_k,
             .experts = experts - 1,
             .begins = begins.data(),
             .places = places.data(),
             .sources = sources.data()}};
  }
  bool operator==(const Choices& o) const {
    return ids == o.ids && places == o.places && sources == o.sources && begins == o.begins &&
           same_bits(weights, o.weights);
  }

  std::vector<float> logits;
  std::vector<int32_t> ids, places, sources, begins;
  std::vector<float> weights;
  Route route;
  SortFewExperts sort;
};

TEST(JoinedLaunches, ARowIsRoutedAndItsChoicesSortedAtOnce) {
  for (int64_t experts : {8, 160}) {
    Choices apart(1, experts, 8), joined(1, experts, 8);
    launch_on_cuda(apart.route);
    launch_on_cuda(apart.sort);
    Collector collector;
    collector.add(joined.route);
    collector.add(joined.sort);
    EXPECT_EQ(collector.launches().size(), 1u);
    collector.launches().issue_all(nullptr);
    EXPECT_TRUE(joined == apart) << experts;
  }
  Choices two(2, 16, 4), other(1, 16, 4);
  Collector collector;
  collector.add(two.route);
  collector.add(two.sort);
  collector.add(two.route);
  collector.add(other.sort);
  EXPECT_EQ(collector.launches().size(), 4u);
}

// The norm that a router and the experts read, behind whose router it is rounded.
TEST(JoinedLaunches, ANormIsRoundedThoughRowsAreRoutedBeforeItsProduct) {
  constexpr int64_t kExperts = 16;
  for (int64_t rows : {1, 5}) {
    Stream apart(rows, 128, 12), joined(rows, 128, 12);
    std::vector<float> router = Random(13).normals(kExperts * 128);
    auto logits_of = [&](const Stream& s, Choices& to) {
      return FewRowsF32{{.x = s.y.data(),
                         .x_stride = 128,
                         .x_rows = rows,
                         .weights = {.weight = router.data()},
                         .y = to.logits.data(),
                         .y_stride = kExperts,
                         .n = kExperts,
                         .k = 128}};
    };
    Choices of_apart(rows, kExperts, 4), of_joined(rows, kExperts, 4);
    launch_on_cuda(apart.add_kernel());
    launch_on_cuda(apart.copy_kernel());
    launch_on_cuda(apart.norm_kernel(apart.sum));
    launch_on_cuda(logits_of(apart, of_apart));
    launch_on_cuda(of_apart.route);
    launch_on_cuda(of_apart.sort);
    launch_on_cuda(apart.rounding_kernel());
    Collector collector;
    auto collect = [&](const RoundRows& rounding) {
      collector.clear();
      collector.add(joined.add_kernel());
      collector.add(joined.copy_kernel());
      collector.add(joined.norm_kernel(joined.sum));
      collector.add(logits_of(joined, of_joined));
      collector.add(of_joined.route);
      collector.add(of_joined.sort);
      collector.add(rounding);
      return collector.launches().size();
    };
    size_t routed = rows == 1 ? 3 : 4;
    RoundRows elsewhere = joined.rounding_kernel();
    for (void* place : {static_cast<void*>(of_joined.logits.data()),
                        static_cast<void*>(of_joined.sources.data())}) {
      elsewhere.a.workspace = place;
      EXPECT_EQ(collect(elsewhere), routed + 1);
    }
    EXPECT_EQ(collect(joined.rounding_kernel()), routed);
    collector.launches().issue_all(nullptr);
    EXPECT_TRUE(joined == apart && of_joined == of_apart) << rows << " rows";
  }
}

// The heads of a layer of the delta rule, and logits of its gates.
struct DeltaInputs {
  DeltaInputs(int64_t rows, int64_t key_dim) {
    constexpr int64_t kHeads = 3;
    int64_t width = kHeads * kDim;
    Random random(14);
    x = random.normals(rows * width);
    logits = random.normals(rows * kHeads * (key_dim + 1));
    weight = random.normals(kDim);
    bias = random.normals(kHeads * key_dim);
    y.assign(x.size(), NAN);
    decay.assign(rows * kHeads * key_dim, NAN);
    beta.assign(rows * kHeads, NAN);
    norm = {{.x = x.data(),
             .x_row_stride = width,
             .weight = weight.data(),
             .y = y.data(),
             .y_row_stride = width,
             .rows = rows,
             .groups = kHeads,
             .dim = kDim,
             .eps = 1e-6f}};
    gates = {{.decay_logits = logits.data(),
              .beta_logits = logits.data() + kHeads * key_dim,
              .decay_row_stride = kHeads * (key_dim + 1),
              .beta_row_stride = kHeads * (key_dim + 1),
              .log_rate = log_rate.data(),
              .bias = bias.data(),
              .decay = decay.data(),
              .beta = beta.data(),
              .rows = rows,
              .heads = kHeads,
              .key_dim = key_dim}};
  }
  bool operator==(const DeltaInputs& o) const {
    return same_bits(y, o.y) && same_bits(decay, o.decay) && same_bits(beta, o.beta);
  }

  static constexpr int64_t kDim = 64;
  std::vector<float> x, logits, weight, bias, y, decay, beta, log_rate = {-2.0f, 0.0f, 1.5f};
  RmsNorm norm;
  DeltaGates gates;
};

TEST(JoinedLaunches, HeadsOfTheDeltaRuleAreNormedBesideItsGates) {
  for (int64_t rows : {1, 9}) {
    for (int64_t key_dim : {int64_t{1}, DeltaInputs::kDim}) {
      DeltaInputs apart(rows, key_dim), joined(rows, key_dim);
      launch_on_cuda(apart.norm);
      launch_on_cuda(apart.gates);
      Collector collector;
      collector.add(joined.norm);
      collector.add(joined.gates);
      EXPECT_EQ(collector.launches().size(), 1u);
      collector.launches().issue_all(nullptr);
      EXPECT_TRUE(joined == apart) << rows << " rows, decays of " << key_dim;
    }
  }
}

TEST(JoinedLaunches, GatesThatReadOrWriteWhatANormDoesAreNotBesideIt) {
  DeltaInputs d(4, 1);
  auto changed = [&](auto change) {
    DeltaGates gates = d.gates;
    change(gates.a);
    return launches_of(d.norm, gates);
  };
  EXPECT_EQ(changed([](DeltaGatesArgs&) {}), 1u);
  EXPECT_EQ(changed([&](DeltaGatesArgs& a) { a.bias = d.y.data(); }), 2u) << "of the norm";
  EXPECT_EQ(changed([&](DeltaGatesArgs& a) { a.beta = d.y.data(); }), 2u) << "over the norm";
  EXPECT_EQ(changed([&](DeltaGatesArgs& a) { a.decay = d.x.data(); }), 2u) << "over its input";
}

// Queries of latent attention: the second part of each head turns, the first is rounded for its
// product.
struct LatentQueries {
  explicit LatentQueries(int64_t rows) : rows(rows) {
    Random random(15);
    q = random.normals(rows * kHeads * (kNope + kTurning));
    cos = random.normals(rows * kTurning / 2);
    sin = random.normals(rows * kTurning / 2);
    y.assign(rows * kHeads * kWidth, 0);
    workspace.assign(RoundedRows::bytes(rows, kHeads, kNope) + 64, std::byte{});
    rope = {{.x = q.data() + kNope,
             .x_row_stride = kHeads * (kNope + kTurning),
             .x_head_stride = kNope + kTurning,
             .cos = cos.data(),
             .sin = sin.data(),
             .y = y.data() + kWidth - kTurning,
             .y_row_stride = kHeads * kWidth,
             .y_head_stride = kWidth,
             .rows = rows,
             .heads = kHeads,
             .head_dim = kTurning,
             .pairs = kTurning / 2,
             .layout = RopeLayout::kInterleaved}};
    rounding = {{.x = q.data(),
                 .x_stride = kHeads * (kNope + kTurning),
                 .x_rows = rows,
                 .segments = kHeads,
                 .segment_stride = kNope + kTurning,
                 .k = kNope}};
    rounding.a.workspace =
        workspace.data() + 64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64;
  }
  bool operator==(const LatentQueries& o) const {
    const auto* here = static_cast<const std::byte*>(rounding.a.workspace);
    const auto* there = static_cast<const std::byte*>(o.rounding.a.workspace);
    return same_bits(y, o.y) &&
           std::equal(here, here + RoundedRows::bytes(rows, kHeads, kNope), there);
  }

  static constexpr int64_t kHeads = 3, kNope = 128, kTurning = 64, kWidth = 192;
  int64_t rows;
  std::vector<float> q, cos, sin, y;
  std::vector<std::byte> workspace;
  Rope rope;
  RoundRows rounding;
};

TEST(JoinedLaunches, APartOfQueriesTurnsBesideTheRoundingOfAnother) {
  for (int64_t rows : {1, 9}) {
    LatentQueries apart(rows), joined(rows);
    launch_on_cuda(apart.rope);
    launch_on_cuda(apart.rounding);
    Collector collector;
    collector.add(joined.rope);
    collector.add(joined.rounding);
    collector.add(joined.rounding);  // of a product of the same queries
    EXPECT_EQ(collector.launches().size(), 1u);
    collector.launches().issue_all(nullptr);
    EXPECT_TRUE(joined == apart) << rows << " rows";
  }
  LatentQueries of_rope(1);
  of_rope.rounding.a.x = of_rope.y.data();
  EXPECT_EQ(launches_of(of_rope.rope, of_rope.rounding), 2u) << "of what turned";
  LatentQueries over_angles(64);
  over_angles.rounding.a.workspace = over_angles.cos.data();
  EXPECT_EQ(launches_of(over_angles.rope, over_angles.rounding), 2u) << "over its angles";
}

}  // namespace
}  // namespace banyan::test::joined_launches_test
