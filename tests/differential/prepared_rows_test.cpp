// Kernels that compute rows prepare them for the product after them: rounded to bf16, or quantised.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "differential/launch_on_cuda.h"
#include "kernels/cuda/merge_parts.h"
#include "kernels/cuda/rms_norm.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::test::prepared_rows_test {
namespace {

constexpr int64_t kRows = 11, kDim = 640;

// What kernels read, and a product of what they compute.
struct Prepared {
  Prepared() {
    product.workspace = workspace.data() + 64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64;
    room = {product.workspace, cuda::RoundedRows::bytes(kRows, 1, kDim)};
  }
  std::vector<float> matrix() { return random.normals(kRows * kDim); }

  template <class Kernel>
  void expect_rounded(Kernel kernel) {
    if constexpr (requires { kernel.may_prepare(product, room); }) {
      ASSERT_TRUE(kernel.may_prepare(product, room));
    }
    std::ranges::fill(workspace, std::byte{0});
    kernel.rounded = cuda::rounded_rows(product);
    launch_on_cuda(kernel);
    for (int64_t i = 0; i < kRows * kDim; ++i) {
      BFloat16 rounded;
      std::memcpy(&rounded, kernel.rounded.chunk(i / kDim, 0, i % kDim) + i % 8 * sizeof(rounded),
                  sizeof(rounded));
      ASSERT_EQ(rounded.bits, from_float<BFloat16>(y[static_cast<size_t>(i)]).bits) << i;
    }
  }
  // As the kernel that does nothing else quantises what the last launch has computed.
  template <class Kernel>
  void expect_quantised(Kernel kernel, int64_t group) {
    product.group = group;
    kernel.quantised = cuda::quantised_rows(product);
    std::vector<std::byte> found = workspace_after(kernel);
    EXPECT_TRUE(found == workspace_after(cuda::QuantiseRows{product})) << group;
  }
  template <class Kernel>
  void expect_both(Kernel kernel) {
    expect_rounded(kernel);
    for (int64_t group : {32, 128}) expect_quantised(kernel, group);
  }

  template <class Kernel>
  std::vector<std::byte> workspace_after(const Kernel& kernel) {
    std::ranges::fill(workspace, std::byte{0});
    launch_on_cuda(kernel);
    return workspace;
  }

  Random random{15};
  std::vector<float> x = matrix(), gate = matrix(), weight = random.normals(kDim);
  std::vector<float> y = std::vector<float>(x.size());
  std::vector<std::byte> workspace =
      std::vector<std::byte>(cuda::RoundedRows::bytes(kRows, 1, kDim) + 64);
  GemmArgs product = {.x = y.data(), .x_stride = kDim, .x_rows = kRows, .k = kDim};
  cuda::MemoryRange room;
};

TEST(PreparedRows, OfANorm) {
  Prepared p;
  cuda::RmsNorm norm{{.x = p.x.data(),
                      .x_row_stride = kDim,
                      .weight = p.weight.data(),
                      .y = p.y.data(),
                      .y_row_stride = kDim,
                      .rows = kRows,
                      .groups = 1,
                      .dim = kDim,
                      .eps = 1e-6f}};
  p.expect_both(norm);
  // Rows that a block may still read are not overwritten, and other rows are not x.
  EXPECT_FALSE(norm.may_prepare(p.product, {p.x.data() + kDim, p.room.bytes}));
  p.product.x_rows = kRows - 1;
  EXPECT_FALSE(norm.may_prepare(p.product, p.room));
}

TEST(PreparedRows, OfActivations) {
  Prepared p;
  p.expect_both(cuda::SiluMul{{.gate = p.gate.data(),
                               .up = p.x.data(),
                               .x_row_stride = kDim,
                               .y = p.y.data(),
                               .rows = kRows,
                               .dim = kDim}});
  p.expect_rounded(cuda::GateMul{{.gate = p.gate.data(),
                                  .x = p.x.data(),
                                  .gate_row_stride = kDim,
                                  .x_row_stride = kDim,
                                  .y = p.y.data(),
                                  .rows = kRows,
                                  .dim = kDim}});
}

TEST(PreparedRows, OfAttention) {
  Prepared p;
  AttentionArgs attention = {
      .rows = kRows, .out = p.y.data(), .q_heads = kDim / 128, .kv_heads = 1, .value_dim = 128};
  ASSERT_TRUE(cuda::AttendTiles{attention}.may_prepare(p.product, p.room));
  p.y = p.matrix();
  attention.out = p.y.data();
  p.product.x = p.y.data();
  p.expect_both(cuda::MergeParts{.a = attention});
  // Rows of two spans, of which the second sees several parts.
  SpanArgs spans[] = {{.row_count = 1, .first_position = 9},
                      {.row_begin = 1, .row_count = kRows - 1, .first_position = 600}};
  attention.spans = spans;
  attention.span_count = 2;
  std::vector<float> sums = p.random.normals(
      (cuda::part_results(attention, spans[0]) + cuda::part_results(attention, spans[1])) *
      cuda::part_floats(attention));
  p.expect_both(cuda::MergeParts{.a = attention, .sums = sums.data(), .blocks = 100});
}

}  // namespace
}  // namespace banyan::test::prepared_rows_test
