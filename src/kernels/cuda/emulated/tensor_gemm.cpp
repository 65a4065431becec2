#include "kernels/cuda/emulated/tensor_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::emulated {
namespace {

constexpr int32_t kZeroTop = -100000;

// 2^exponent as f64, which has more exponents than products can have.
double power(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

// A row of a tiled matrix.
template <class T>
std::vector<T> tiled_row(const std::byte* weight, int64_t j, int64_t k) {
  std::vector<T> row(static_cast<size_t>(tiles_of(k) * kTile));
  for (int64_t c = 0; c < std::ssize(row); ++c) {
    row[static_cast<size_t>(c)] = *reinterpret_cast<const T*>(weight + tiled_offset(j, c, k));
  }
  return row;
}

// A row of codes of fp8, which bf16 holds exactly.
std::vector<BFloat16> fp8_row(const Packed<Format::kFp8>& weight, int64_t j) {
  std::vector<BFloat16> row(static_cast<size_t>(RoundedRows::column_tiles_of(weight.k) * kTile));
  for (int64_t c = 0; c < weight.k; ++c) {
    row[static_cast<size_t>(c)] = from_float<BFloat16>(weight.at(j, c, 0));
  }
  return row;
}

// The sum over the columns of segment `s` of `segments`.
float segment_sum(const WgmmaOperand& x, const WgmmaOperand& w, int s, int segments) {
  int64_t steps = w.steps() / segments;  // x may have more columns, zeros
  float sum = 0;
  for (int64_t step = s * steps; step < (s + 1) * steps; ++step) {
    sum = wgmma_step(sum, x, w, step);
  }
  return sum;
}

float product(const WgmmaOperand& x, const WgmmaOperand& w, int segments) {
  if (segments == 1) return segment_sum(x, w, 0, 1);
  float total = 0;
  for (int s = 0; s < segments; ++s) total += segment_sum(x, w, s, segments);
  return total;
}

// Group by group, each times its scale.
float fp8_product(const WgmmaOperand& x, const WgmmaOperand& w, const Packed<Format::kFp8>& weight,
                  int64_t j) {
  int64_t steps = (weight.group + kWgmmaDepth - 1) / kWgmmaDepth;
  float y = 0;
  for (int64_t g = 0; g < weight.groups(); ++g) {
    float sum = 0;
    for (int64_t step = g * steps; step < (g + 1) * steps; ++step) {
      sum = wgmma_step(sum, x, w, step);
    }
    y = fused(sum, weight.scale(j, g), y);
  }
  return y;
}

// The rows of x that matrix i multiplies, in the order of its rows of y.
template <class T>
std::vector<WgmmaOperand> operands(const GemmArgs& a, int64_t i, int64_t begin, int64_t end) {
  RoundedRows rounded = rounded_rows(a);
  std::vector<T> x(static_cast<size_t>(rounded.column_tiles * kTile));
  std::vector<WgmmaOperand> rows(static_cast<size_t>(end - begin));
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t c = 0; c < std::ssize(x); c += 8) {
      std::memcpy(&x[static_cast<size_t>(c)],
                  rounded.chunk(source_row(a, r), i * a.weights.segment_step, c), 16);
    }
    rows[static_cast<size_t>(r - begin)].assign(x.data(), std::ssize(x));
  }
  return rows;
}

// Calls of_feature(matrix, j, add) for output j of every matrix; add(product) computes it for all
// rows.
template <class T, class OfFeature>
void multiply(const GemmArgs& a, const OfFeature& of_feature) {
  const GemmGroup& w = a.weights;
  for (int64_t i = 0; i < w.count; ++i) {
    int64_t begin = w.begins != nullptr ? w.begins[i] : 0;
    int64_t end = w.begins != nullptr ? w.begins[i + 1] : a.x_rows;
    std::vector<WgmmaOperand> rows = operands<T>(a, i, begin, end);
    const auto* weight = static_cast<const std::byte*>(w.weight) + i * w.weight_stride;
    const float* bias = a.bias != nullptr ? a.bias + i * a.bias_stride : nullptr;
    for (int64_t j = 0; j < a.n && !rows.empty(); ++j) {
      of_feature(weight, j, [&](const auto& product) {
        for (int64_t r = begin; r < end; ++r) {
          float sum = product(rows[static_cast<size_t>(r - begin)]);
          if (kScalesRows<T>) sum *= row_factor(a, r, i);
          a.y[r * a.y_stride + i * w.y_column_stride + j] = bias != nullptr ? sum + bias[j] : sum;
        }
      });
    }
  }
}

}  // namespace

template <class T>
void WgmmaOperand::assign(const T* values, int64_t count) {
  auto size = static_cast<size_t>(count);
  values_.resize(size);
  tops_.resize(size);
  special_.assign(size / kWgmmaDepth, 0);
  for (size_t i = 0; i < size; ++i) {
    Term term = term_of(values[i]);
    values_[i] = static_cast<double>(f32_of(values[i]));
    tops_[i] = term.significand == 0 ? kZeroTop : term.top;
    if (is_special(values[i])) special_[i / kWgmmaDepth] = 1;
  }
}

template void WgmmaOperand::assign(const BFloat16*, int64_t);
template void WgmmaOperand::assign(const Float16*, int64_t);

float wgmma_step(float accumulator, const WgmmaOperand& a, const WgmmaOperand& b, int64_t step) {
  auto at = static_cast<size_t>(step), first = at * kWgmmaDepth;
  if (a.special_[at] != 0 || b.special_[at] != 0 ||
      is_special(std::bit_cast<uint32_t>(accumulator))) {
    return special_sum(accumulator, a.values_.data() + first, b.values_.data() + first);
  }
  const double *x = a.values_.data() + first, *y = b.values_.data() + first;
  const int32_t *x_tops = a.tops_.data() + first, *y_tops = b.tops_.data() + first;
  Term kept = term_of_f32(accumulator);
  int32_t top = kept.significand == 0 ? kZeroTop : kept.top;
  for (int i = 0; i < kWgmmaDepth; ++i) top = std::max(top, x_tops[i] + y_tops[i]);
  if (top < kZeroTop / 2) return 0;
  double scale = power(kFractionBits - top);  // so that truncating to integers cuts bits off
  int64_t sum = static_cast<int32_t>(accumulator * scale);
  for (int i = 0; i < kWgmmaDepth; ++i) sum += static_cast<int32_t>(x[i] * y[i] * scale);
  return sum == 0 ? 0 : round_toward_zero(sum, top - kFractionBits);
}

template <class T>
void multiply_tiles(const GemmArgs& a) {
  int segments = gemm_segments(a.weights.count, a.n, a.k);
  multiply<T>(a, [&](const std::byte* weight, int64_t j, auto add) {
    std::vector<T> row = tiled_row<T>(weight, j, a.k);
    WgmmaOperand features;
    features.assign(row.data(), std::ssize(row));
    add([&](const WgmmaOperand& x) { return product(x, features, segments); });
  });
}

template void multiply_tiles<BFloat16>(const GemmArgs&);
template void multiply_tiles<Float16>(const GemmArgs&);

void multiply_fp8(const GemmArgs& a) {
  multiply<BFloat16>(a, [&](const std::byte* matrix, int64_t j, auto add) {
    Packed<Format::kFp8> weight(matrix, a.n, a.k, a.group);
    std::vector<BFloat16> row = fp8_row(weight, j);
    WgmmaOperand features;
    features.assign(row.data(), std::ssize(row));
    add([&](const WgmmaOperand& x) { return fp8_product(x, features, weight, j); });
  });
}

}  // namespace banyan::cuda::emulated
