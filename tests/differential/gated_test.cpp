// Products of gates and ups whose kernel activates them: the bits of the product and the activation
// one after the other.
#include <gtest/gtest.h>

#include <vector>

#include "differential/gemm_case.h"
#include "differential/joined_launches.h"

namespace banyan::test::gated_test {
namespace {

struct Shape {
  int64_t rows, dim, k;
  GluForm form = GluForm::kSilu;
  float limit = 0;
  bool bias = false;
  std::vector<int32_t> begins = {};  // of experts
};

// Gates and ups of one matrix or of several experts, and rows of x for them. Experts take rows of x
// from the last one back.
struct Gated {
  Gated(const KernelTable& table, const WeightFormat& format, const Shape& shape)
      : table(table), shape(shape), kernel(table.*format.kernel) {
    Random random(21);
    int64_t n = 2 * shape.dim, k = shape.k;
    int64_t count = shape.begins.empty() ? 1 : std::ssize(shape.begins) - 1;
    for (int64_t i = 0; i < count; ++i) matrices.emplace_back(format, n, k, k, random);
    size_t bytes = kernel.packed_bytes(n, k, k);
    packed = AlignedBytes(static_cast<size_t>(count) * bytes);
    for (int64_t i = 0; i < count; ++i) {
      PackedWeights one(table, matrices[static_cast<size_t>(i)]);
      std::memcpy(packed.data() + static_cast<size_t>(i) * bytes, one.packed.data(), bytes);
    }
    x = random.normals(shape.rows * k);
    bias = random.normals(count * n);
    for (int64_t r = 0; r < shape.rows; ++r) {
      index.push_back(static_cast<int32_t>(shape.rows - 1 - r));
    }
    workspace = AlignedBytes(cuda::rounded_bytes<Float16>(shape.rows, 1, k));
    outputs.assign(shape.rows * n, NAN);
    y.assign(shape.rows * shape.dim, NAN);
    bool experts = !shape.begins.empty();
    args.product = {.x = x.data(),
                    .x_stride = k,
                    .x_rows = shape.rows,
                    .x_index = experts ? index.data() : nullptr,
                    .weights = {.weight = packed.data(),
                                .weight_stride = static_cast<int64_t>(bytes),
                                .count = count,
                                .begins = experts ? shape.begins.data() : nullptr},
                    .bias = shape.bias ? bias.data() : nullptr,
                    .bias_stride = n,
                    .y = outputs.data(),
                    .y_stride = n,
                    .n = n,
                    .k = k,
                    .group = k,
                    .workspace = workspace.data()};
    args.activation = {.gate = outputs.data(),
                       .up = outputs.data() + shape.dim,
                       .x_row_stride = n,
                       .y = y.data(),
                       .rows = shape.rows,
                       .dim = shape.dim,
                       .limit = shape.limit,
                       .form = shape.form};
  }

  std::vector<float> apart() {
    kernel.run(args.product);
    table.silu_mul(args.activation);
    return y;
  }
  std::vector<float> together() {
    std::ranges::fill(outputs, NAN);
    std::ranges::fill(y, NAN);
    kernel.run_gated(args);
    return y;
  }

  const KernelTable& table;
  Shape shape;
  const GemmKernel& kernel;
  std::vector<Weights> matrices;
  AlignedBytes packed{0}, workspace{0};
  std::vector<float> x, bias, outputs, y;
  std::vector<int32_t> index;
  GatedGemmArgs args;
};

void for_each_kernel(const auto& body) {
  for (const KernelTable* table : tables()) {
    for (const WeightFormat& format : weight_formats()) {
      if ((table->*format.kernel).gates == nullptr) continue;
      SCOPED_TRACE(fmt::format("{} {}", table->name, format.name));
      body(*table, format);
    }
  }
}

TEST(GatedProducts, HaveTheBitsOfAProductAndAnActivation) {
  const Shape kShapes[] = {
      {.rows = 1, .dim = 128, .k = 512},
      {.rows = 8, .dim = 64, .k = 77, .bias = true},
      {.rows = 9, .dim = 64, .k = 1024, .form = GluForm::kGeluTanh, .bias = true},
      {.rows = 30, .dim = 64, .k = 256, .form = GluForm::kSwigluOai, .limit = 7, .bias = true},
      {.rows = 61, .dim = 192, .k = 130, .limit = 0.5f},
      {.rows = 43, .dim = 64, .k = 512},
      {.rows = 7, .dim = 64, .k = 192, .bias = true, .begins = {0, 2, 2, 7}},
      {.rows = 9, .dim = 128, .k = 64, .begins = {0, 8, 9}}};
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(fmt::format("{} rows of {} gates, {} columns", shape.rows, shape.dim, shape.k));
      Gated gated(table, format, shape);
      ASSERT_TRUE(gated.kernel.gates(gated.args.product));
      std::vector<float> expected = gated.apart();
      EXPECT_TRUE(same_bits(gated.together(), expected));
      // The interpreter compares every other launch with the emulation, this one with itself.
      EXPECT_TRUE(same_bits(gated.together(), expected));
    }
  });
}

// Those of many rows, of gates that are no whole tiles, in so many segments that a block of a
// cluster would have gates without their ups.
TEST(GatedProducts, OfOtherShapesAreActivatedByAnotherKernel) {
  for_each_kernel([&](const KernelTable& table, const WeightFormat& format) {
    GemmArgs args = {.x_rows = 64, .n = 256, .k = 256, .group = 256};
    const GemmKernel& kernel = table.*format.kernel;
    EXPECT_TRUE(kernel.gates(args));
    GemmArgs many = args, uneven = args, long_rows = args;
    many.x_rows = 65;
    uneven.n = 2 * 96;
    long_rows.k = 2048;
    for (const GemmArgs& other : {many, uneven, long_rows}) EXPECT_FALSE(kernel.gates(other));
  });
}

const WeightFormat& bf16() {
  return *std::ranges::find(weight_formats(), "bf16", &WeightFormat::name);
}

// A product of activations, after the product that computes them.
struct Feeding {
  explicit Feeding(const Shape& shape) : gated(cuda_table(), bf16(), shape) {
    int64_t rows = shape.rows, dim = shape.dim;
    size_t bytes = cuda::RoundedRows::bytes(rows, 1, dim);
    workspace = AlignedBytes(bytes);
    next = {.x = gated.y.data(),
            .x_stride = dim,
            .x_rows = rows,
            .weights = {},
            .n = dim,
            .k = dim,
            .group = dim,
            .workspace = workspace.data()};
  }
  cuda::TensorProduct product() const { return {gated.args.product, {gated.args.activation}}; }
  std::vector<char> rounded() const {
    size_t bytes = cuda::RoundedRows::bytes(next.x_rows, 1, next.k);
    return {workspace.data(), workspace.data() + bytes};
  }

  Gated gated;
  AlignedBytes workspace{0};
  GemmArgs next;
};

TEST(JoinedLaunches, AProductRoundsWhatItActivates) {
  const Shape kShapes[] = {{.rows = 5, .dim = 128, .k = 64},
                           {.rows = 37, .dim = 128, .k = 512},
                           {.rows = 8, .dim = 128, .k = 64, .begins = {0, 3, 8}}};
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(fmt::format("{} rows", shape.rows));
    Feeding apart(shape), joined(shape);
    launch_on_cuda(cuda::RoundRows{apart.gated.args.product});
    multiply_on_cuda<BFloat16>(apart.product());
    launch_on_cuda(cuda::RoundRows{apart.next});
    for (int time = 0; time < 2; ++time) {  // of which the interpreter compares one
      std::memset(joined.workspace.data(), 0xff, joined.rounded().size());
      Collector collector;
      collector.add(cuda::RoundRows{joined.gated.args.product});
      collector.add_product(joined.product(), multiply_on_cuda<BFloat16>);
      collector.add(cuda::RoundRows{joined.next});
      ASSERT_EQ(collector.launches().size(), 2u);
      collector.launches().issue_all(nullptr);
      EXPECT_TRUE(same_bits(joined.gated.y, apart.gated.y));
      EXPECT_EQ(joined.rounded(), apart.rounded());
    }
  }
}

// Between a product of experts and the one of what it activates, that of a shared expert may lie.
TEST(JoinedLaunches, AProductRoundsOnlyWhereNothingElseIsRead) {
  Feeding first({.rows = 5, .dim = 128, .k = 64}), second({.rows = 5, .dim = 128, .k = 64});
  auto launches = [&](const cuda::TensorProduct& between, const GemmArgs& next) {
    Collector collector;
    collector.add_product(first.product(), multiply_on_cuda<BFloat16>);
    collector.add_product(between, multiply_on_cuda<BFloat16>);
    collector.add(cuda::RoundRows{next});
    return collector.launches().size();
  };
  EXPECT_EQ(launches(second.product(), first.next), 2u);
  EXPECT_EQ(launches(second.product(), second.next), 2u);
  GemmArgs over_own = first.next, over_other = first.next;
  over_own.workspace = first.gated.args.product.workspace;
  EXPECT_EQ(launches(second.product(), over_own), 3u);
  over_other.workspace = second.gated.args.product.workspace;
  EXPECT_EQ(launches(second.product(), over_other), 3u);
  cuda::TensorProduct plain = {second.gated.args.product};  // whose outputs are no activations
  GemmArgs of_plain = second.next;
  of_plain.x = second.gated.outputs.data();
  EXPECT_EQ(launches(plain, of_plain), 3u);
}

}  // namespace
}  // namespace banyan::test::gated_test
