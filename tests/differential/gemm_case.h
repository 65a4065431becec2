// Random weights of every format for the tests of matrix products.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "differential/emulated_table.h"
#include "differential/kernels.h"
#include "kernels/cuda/scaled_rows.h"
#include "quant/formats.h"

namespace banyan::test {

// Whether all tables compute the same bits.
inline bool multiplies_integers(const WeightFormat& format) {
  return format.quantised && format.name != "fp8";
}

// The values of a row of x that a table multiplies with f16, in f16: x times this.
inline float f16_scale(const float* x, int64_t k) {
  float largest = 0;
  for (int64_t c = 0; c < k; ++c) {
    if (std::isfinite(x[c])) largest = std::max(largest, std::fabs(x[c]));
  }
  return cuda::row_scale_for(largest).scale;
}

// Whether the table rounds x to the type of the weights before it multiplies, or to bf16 for fp8.
inline bool rounds_x(const KernelTable& table, const WeightFormat& format) {
  std::string_view name = table.name;
  bool tensor_cores = name == cuda_table().name;
  bool pairs = tensor_cores || name == "avx512_bf16" || name.ends_with("amx");
  return (pairs && (format.name == "bf16" || format.name == "fp8")) ||
         (tensor_cores && format.name == "f16");
}
// So the rows of x, of k columns each.
inline void round_as(const KernelTable& table, const WeightFormat& format, int64_t k,
                     int64_t stride, std::vector<float>& x) {
  if (!rounds_x(table, format)) return;
  for (float* row = x.data(); row + k <= x.data() + x.size(); row += stride) {
    float scale = f16_scale(row, k);
    for (int64_t c = 0; c < k; ++c) {
      row[c] = format.name == "f16" ? to_float(from_float<Float16>(row[c] * scale)) / scale
                                    : to_float(from_float<BFloat16>(row[c]));
    }
  }
}

inline constexpr float kE2m1[16] = {0,    0.5,  1,  1.5,  2,  3,  4,  6,
                                    -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

// An unpacked matrix: what a checkpoint of the format holds, and the values that it means.
struct Weights {
  Weights(const WeightFormat& format, int64_t n, int64_t k, int64_t group, Random& random)
      : format(format), n(n), k(k), group(group) {
    if (!format.quantised) {
      source = encode(random.normals(n * k), format.element);
      values = decode(source, format.element);
      return;
    }
    if (format.blocks != nullptr) {
      draw_blocks(random);
      return;
    }
    int64_t groups = k / group;
    for (int64_t i = 0; i < n * groups; ++i) {
      float scale = to_float(from_float<BFloat16>(0.001f + std::fabs(random.normal()) / 64));
      if (format.name == "mxfp4") scale = std::exp2(static_cast<float>(random.below(12)) - 10);
      scales.push_back(scale);
      zeros.push_back(format.name == "uint4" ? static_cast<uint8_t>(random.below(16)) : 8);
    }
    for (int64_t i = 0; i < n * k; ++i) {
      auto code = static_cast<uint8_t>(random.below(format.name.ends_with("4") ? 16 : 256));
      if (format.name == "fp8" && (code & 0x7f) == 0x7f) code = 0;
      source.push_back(static_cast<char>(code));
      int64_t g = i / k * groups + i % k / group;
      values.push_back(decoded(code, zeros[g]) * scales[g]);
    }
  }

  float decoded(uint8_t code, uint8_t zero) const {
    if (format.name == "int8") return static_cast<int8_t>(code);
    if (format.name == "mxfp4") return kE2m1[code];
    if (format.name == "fp8") return to_float(Float8E4M3{code});
    return static_cast<float>(int{code} - int{zero});
  }

  // Codes, and levels of every value that their bits can have.
  void draw_blocks(Random& random) {
    const BlockForm& form = *format.blocks;
    for (int64_t i = 0; i < n * k / group; ++i) {
      scales.push_back(to_float(from_float<Float16>(0.0001f + std::fabs(random.normal()) / 999)));
      mins.push_back(to_float(from_float<Float16>(random.normal() / 999)));
    }
    for (int64_t i = 0; i < n * k; ++i) {
      source.push_back(static_cast<char>(random.below(1u << form.bits)));
    }
    for (int64_t i = 0; i < n * k; i += form.part) {
      int level = static_cast<int>(random.below(form.bits == 2 ? 16 : form.mins ? 64 : 256));
      levels.insert(levels.end(), form.part / kLevelColumns, static_cast<int8_t>(level));
      min_levels.insert(min_levels.end(), form.part / kLevelColumns,
                        static_cast<uint8_t>(random.below(form.bits == 2 ? 16 : 64)));
    }
    values.resize(n * k);
    dequantise_blocks(form,
                      {.codes = reinterpret_cast<uint8_t*>(source.data()),
                       .scales = scales.data(),
                       .mins = mins.data(),
                       .levels = levels.data(),
                       .min_levels = min_levels.data()},
                      {.rows = n, .columns = k, .group = group}, values.data());
  }

  const WeightFormat& format;
  int64_t n, k, group;
  std::vector<char> source;
  std::vector<float> scales, mins;
  std::vector<uint8_t> zeros, min_levels;
  std::vector<int8_t> levels;
  std::vector<float> values;
};

struct PackedWeights {
  PackedWeights(const KernelTable& table, const Weights& weights)
      : weights(weights),
        kernel(table.*weights.format.kernel),
        bytes(kernel.packed_bytes(weights.n, weights.k, weights.group)),
        packed(bytes) {
    pack(0, weights.n, packed);
  }

  void pack(int64_t begin, int64_t count, AlignedBytes& to) const {
    int64_t first_group = weights.format.quantised ? begin * (weights.k / weights.group) : 0;
    size_t row_bytes = weights.k * dtype_bytes(weights.format.element);
    // Null of what the format does not have.
    auto from = [](const auto& values, int64_t i) {
      return values.empty() ? nullptr : values.data() + i;
    };
    kernel.pack({.source = weights.source.data() + begin * row_bytes,
                 .scales = from(weights.scales, first_group),
                 .zeros = from(weights.zeros, first_group),
                 .mins = from(weights.mins, first_group),
                 .levels = from(weights.levels, begin * weights.k / kLevelColumns),
                 .min_levels = from(weights.min_levels, begin * weights.k / kLevelColumns),
                 .packed = to.data(),
                 .n = weights.n,
                 .k = weights.k,
                 .group = weights.group,
                 .row_begin = begin,
                 .row_count = count});
  }

  // Runs `args`, of which the caller has set x, y and their layout.
  void run(GemmArgs args) const {
    AlignedBytes workspace(
        kernel.workspace_bytes(args.x_rows, args.segments, weights.k, weights.group));
    args.n = weights.n;
    args.k = weights.k;
    args.group = weights.group;
    args.workspace = workspace.data();
    kernel.run(args);
  }

  const Weights& weights;
  const GemmKernel& kernel;
  size_t bytes;
  AlignedBytes packed;
};

// The product with `rows` rows of x, [rows, n] dense. With `begins`, {0, rows}, as of one expert.
inline std::vector<float> multiply(const PackedWeights& w, const float* x, int64_t x_stride,
                                   int64_t rows, const float* bias, ThreadPool* threads = nullptr,
                                   const int32_t* begins = nullptr) {
  int64_t n = w.weights.n, y_stride = n + 3;
  std::vector<float> y(rows * y_stride, -77.0f), dense;
  w.run({.launch = {.threads = threads},
         .x = x,
         .x_stride = x_stride,
         .x_rows = rows,
         .weights = {.weight = w.packed.data(), .begins = begins},
         .bias = bias,
         .y = y.data(),
         .y_stride = y_stride});
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = y.data() + r * y_stride;
    for (int64_t pad = n; pad < y_stride; ++pad) EXPECT_EQ(row[pad], -77.0f);
    dense.insert(dense.end(), row, row + n);
  }
  return dense;
}

// Groups to try for k columns: all of them where the format has no scales.
inline std::vector<int64_t> groups_for(const WeightFormat& format, int64_t k) {
  std::vector<int64_t> groups;
  if (format.blocks != nullptr) {
    if (k % kLevelledGroup == 0) groups.push_back(kLevelledGroup);
    if (k % kPlainGroup == 0 && format.blocks->plain) groups.push_back(kPlainGroup);
    return groups;
  }
  if (format.name != "mxfp4") groups.push_back(k);
  for (int64_t group : {32, 64, 128}) {
    if (format.quantised && k % group == 0 && group < k) groups.push_back(group);
  }
  return groups;
}

// The least that a format has, for matrices of some groups.
inline int64_t least_group(const WeightFormat& format) {
  return format.blocks != nullptr && !format.blocks->plain ? kLevelledGroup : kPlainGroup;
}

}  // namespace banyan::test
