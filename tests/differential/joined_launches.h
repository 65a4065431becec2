// Launches as a queue collects them, and the residual stream at the end of a layer.
#pragma once

#include <algorithm>
#include <vector>

#include "differential/launch_on_cuda.h"
#include "kernels/cuda/launch_collector.h"

namespace banyan::test {

struct Issuer {
  template <class Kernel>
  static void issue(void* /*queue*/, const void* kernel) {
    // Attention is launched by tables alone.
    if constexpr (!std::is_same_v<Kernel, cuda::AttendTiles>) {
      launch_on_cuda(*static_cast<const Kernel*>(kernel));
    }
  }
};
using Collector = cuda::LaunchCollector<Issuer>;

// A residual stream at the end of a layer: a sum, its copy, the norm of that and the norm rounded
// for a product.
struct Stream {
  Stream(int64_t rows, int64_t dim, uint64_t seed) : rows(rows), dim(dim) {
    Random random(seed);
    a = random.normals(rows * dim);
    b = random.normals(rows * dim);
    weight = random.normals(dim);
    sum.assign(a.size(), NAN);
    copy.assign(a.size(), NAN);
    y.assign(a.size(), NAN);
    workspace.assign(cuda::RoundedRows::bytes(rows, 1, dim) / sizeof(float) + 16, NAN);
  }

  cuda::Add add_kernel() const {
    return {{.a = a.data(), .b = b.data(), .y = at(sum), .count = rows * dim}};
  }
  cuda::CopyRows copy_kernel() const {
    return {{.x = sum.data(),
             .x_row_stride = dim,
             .y = at(copy),
             .y_row_stride = dim,
             .rows = rows,
             .dim = dim}};
  }
  cuda::RmsNorm norm_kernel(const std::vector<float>& x) const {
    return {{.x = x.data(),
             .x_row_stride = dim,
             .weight = weight.data(),
             .y = at(y),
             .y_row_stride = dim,
             .rows = rows,
             .groups = 1,
             .dim = dim,
             .eps = 1e-6f}};
  }
  cuda::RoundRows rounding_kernel() const {
    GemmArgs product = {.x = y.data(), .x_stride = dim, .x_rows = rows, .k = dim};
    auto address = reinterpret_cast<uintptr_t>(workspace.data());
    product.workspace = at(workspace) + (64 - address % 64) % 64 / sizeof(float);
    return {product};
  }
  bool operator==(const Stream& other) const {
    return same_bits(sum, other.sum) && same_bits(copy, other.copy) && same_bits(y, other.y) &&
           rounded() == other.rounded();
  }

  int64_t rows, dim;
  std::vector<float> a, b, weight, sum, copy, y, workspace;

 private:
  static float* at(const std::vector<float>& x) { return const_cast<float*>(x.data()); }
  std::vector<std::byte> rounded() const {
    const auto* data = static_cast<const std::byte*>(rounding_kernel().a.workspace);
    return {data, data + cuda::RoundedRows::bytes(rows, 1, dim)};
  }
};

}  // namespace banyan::test
