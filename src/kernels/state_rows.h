// How a row of a paged state lies in memory: what a layer keeps of one token, for one head.
//
// A row of F32, BF16 or F16 is its elements. A quantised row is a code of one byte for each column,
// padded to whole words, and behind them an f32 scale; or two of them, of the columns before
// `split` and of those from there on:
//
//   value[c] = code[c] * scale
//
// So a row of 128 columns takes 132 bytes, where BF16 takes 256; a latent of 512 columns and 64
// that turn takes 584 and not 1152.
//
// Scales are a function of the row alone, so neither the batch nor the chunk nor a neighbour's
// tokens change a code:
// - I8: the scale is the largest magnitude / 127, codes are the nearest, ties to even, in
//   [-127, 127]. A value is off by half a scale at most.
// - F8_E4M3: the scale is the least power of two for which 448 times it is not below the largest
//   magnitude, so that it rounds nothing. A value is off by 2^-4 of itself, or 2^-10 of the scale.
// Rows whose magnitudes are all below 2^-100 are zeros. Magnitudes beyond 2^127 become that. With
// an infinity or NaN among the columns of a scale that scale is NaN, and so are all their values.
//
// Files of several instruction sets include this, so nothing here is an inline function with
// external linkage (see x86/vec_avx512.h).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/float_types.h"

namespace banyan {

template <class S>
inline constexpr bool kIsCode = std::is_same_v<S, int8_t> || std::is_same_v<S, Float8E4M3>;

static constexpr bool is_quantised_state(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kF8E4M3;
}

struct RowShape {
  int64_t width = 0;
  int64_t split = 0;  // of quantised rows; 0: all columns share a scale

  constexpr int64_t code_bytes() const { return (width + 3) / 4 * 4; }
  constexpr int64_t quantised_bytes() const { return code_bytes() + (split > 0 ? 8 : 4); }
};

static inline int64_t state_row_bytes(DType dtype, const RowShape& shape) {
  if (is_quantised_state(dtype)) return shape.quantised_bytes();
  return shape.width * static_cast<int64_t>(dtype_bytes(dtype));
}

// From one row to the next, in elements of S.
template <class S>
static constexpr int64_t row_stride(const RowShape& shape) {
  return kIsCode<S> ? shape.quantised_bytes() : shape.width;
}

// The scale of the columns before `split` (0), or of those from there on (1).
template <class S>
static constexpr float row_scale(const S* row, const RowShape& shape, int part) {
  static_assert(kIsCode<S> && sizeof(S) == 1);
  float scale;
  std::memcpy(&scale, row + shape.code_bytes() + 4 * part, sizeof(scale));
  return scale;
}

// A row's values.
template <class S>
class RowValues {
 public:
  constexpr RowValues(const S* row, const RowShape& shape) : row_(row) {
    if constexpr (kIsCode<S>) {
      split_ = shape.split > 0 ? shape.split : shape.width;
      scale_ = row_scale(row, shape, 0);
      if (shape.split > 0) rest_scale_ = row_scale(row, shape, 1);
    }
  }

  constexpr float operator[](int64_t c) const {
    if constexpr (kIsCode<S>) return to_float(row_[c]) * (c < split_ ? scale_ : rest_scale_);
    return to_float(row_[c]);
  }

 private:
  const S* row_;
  int64_t split_ = 0;
  float scale_ = 0, rest_scale_ = 0;  // before and from the split on
};

// Of `largest`, the largest magnitude of some columns; 0 where they count as zeros, NaN where they
// are no numbers.
template <class S>
static constexpr float scale_for(float largest) {
  constexpr float kZeroBelow = 0x1p-100f;
  if (!(largest <= std::numeric_limits<float>::max())) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (largest < kZeroBelow) return 0;
  if (std::is_same_v<S, int8_t>) return largest / 127;
  uint32_t bits = std::bit_cast<uint32_t>(largest / 448);
  return std::bit_cast<float>((bits + 0x7fffffu) & 0xff800000u);  // up to a power of two
}

// The code nearest to x, whose magnitude is at most what the largest code stands for.
template <class S>
static constexpr S code_of(float x) {
  if constexpr (std::is_same_v<S, int8_t>) {
    constexpr float kShift = 0x1.8p23f;  // its unit in the last place is 1
    return static_cast<int8_t>((x + kShift) - kShift);
  } else {
    return from_float<S>(x);
  }
}

// The magnitude of x, or infinity if x is NaN. The largest one of a group sets its scale.
static constexpr float magnitude_for_scale(float x) {
  float magnitude = std::fabs(x);
  bool finite = magnitude <= std::numeric_limits<float>::max();  // false for NaN
  return finite ? magnitude : std::numeric_limits<float>::infinity();
}

// The codes of some columns, and their scale, from the largest magnitude_for_scale among them.
template <class S>
class ColumnCodes {
 public:
  explicit constexpr ColumnCodes(float largest) {
    constexpr float kLargest = 0x1p127f;  // what the largest code times the scale may be
    bool finite = largest <= std::numeric_limits<float>::max();
    if (finite && largest > kLargest) largest = kLargest;
    scale_ = scale_for<S>(largest);
    bool none = !(scale_ > 0);
    limit_ = none ? 0 : largest;
    inverse_ = none ? 0 : std::is_same_v<S, int8_t> ? 127 / largest : 1 / scale_;
  }
  constexpr float scale() const { return scale_; }
  constexpr S operator()(float x) const {
    float magnitude = std::fabs(x);
    magnitude = magnitude <= limit_ ? magnitude : limit_;  // the limit for NaN
    return code_of<S>(std::copysign(magnitude, x) * inverse_);
  }

 private:
  float scale_ = 0, limit_ = 0, inverse_ = 0;
};

// Codes and the scale of columns [begin, end).
template <class S>
static constexpr float quantise_columns(const float* x, int64_t begin, int64_t end, S* codes) {
  float largest = 0;
  for (int64_t c = begin; c < end; ++c) {
    float magnitude = magnitude_for_scale(x[c]);
    largest = magnitude > largest ? magnitude : largest;
  }
  ColumnCodes<S> code(largest);
  for (int64_t c = begin; c < end; ++c) codes[c] = code(x[c]);
  return code.scale();
}

// Stores a row of x.
template <class S>
static constexpr void store_row(const float* x, const RowShape& shape, S* to) {
  if constexpr (kIsCode<S>) {
    int64_t split = shape.split > 0 ? shape.split : shape.width;
    float scales[2] = {quantise_columns(x, 0, split, to), 0};
    if (shape.split > 0) scales[1] = quantise_columns(x, split, shape.width, to);
    for (int64_t c = shape.width; c < shape.code_bytes(); ++c) to[c] = S{};
    std::memcpy(to + shape.code_bytes(), scales, shape.split > 0 ? 8 : 4);
  } else {
    for (int64_t c = 0; c < shape.width; ++c) to[c] = from_float<S>(x[c]);
  }
}

// Rounds a head's query as rows of a pool of codes S are, to what those stand for.
template <class S>
static constexpr void round_query(const float* q, int64_t width, S* codes, float* to) {
  float scale = quantise_columns(q, 0, width, codes);
  for (int64_t c = 0; c < width; ++c) to[c] = to_float(codes[c]) * scale;
}

}  // namespace banyan
