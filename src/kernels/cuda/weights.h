// Packed weights: what pack_weights (pack.h) writes and the kernels read.
//
// The codes of a row follow each other, two to a byte where they have four bits, and rows follow
// each other; then f32 scales [n, groups], then zeros [n, groups] of uint4.
//
// bf16 and f16, which tensor cores multiply, lie in tiles of 64 rows and 64 columns instead, each
// as it is to lie in shared memory (shared_layout.h): [row tiles, column tiles] of 8 KB. Columns
// are filled up with zeros to whole tiles. Integers lie in fragments (fragments.h) if their groups
// fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/fragments.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/shared_layout.h"
#include "tensor/float_types.h"

namespace banyan::cuda {

constexpr bool is_tiled(Format format) {
  return format == Format::kBF16 || format == Format::kF16;
}

inline constexpr int64_t kTile = 64;  // rows and columns
inline constexpr int64_t kTileBytes = kTile * kTileRowBytes;

BANYAN_HOST_DEVICE constexpr int64_t tiles_of(int64_t length) {
  return (length + kTile - 1) / kTile;
}

// The elements of a tiled matrix.
template <Format F>
using Element16 = std::conditional_t<F == Format::kF16, Float16, BFloat16>;

// The offset in bytes of element [j, c] of a tiled matrix with k columns.
BANYAN_HOST_DEVICE constexpr int64_t tiled_offset(int64_t j, int64_t c, int64_t k) {
  int64_t tile = j / kTile * tiles_of(k) + c / kTile;
  return tile * kTileBytes + swizzled(static_cast<uint32_t>(j % kTile),
                                      static_cast<uint32_t>(c % kTile) * sizeof(BFloat16));
}

// What products of the format multiply weights with, and what they sum up.
template <Format F>
using Element = std::conditional_t<has_integers(F), int32_t, float>;

template <Format F>
struct Packed {
  BANYAN_HOST_DEVICE constexpr Packed(const void* data, int64_t n, int64_t k, int64_t group)
      : data(static_cast<const uint8_t*>(data)), n(n), k(k), group(group) {}

  static constexpr int64_t row_bytes(int64_t k) {
    if (F == Format::kF32) return 4 * k;
    return has_nibbles(F) ? (k + 1) / 2 : k;
  }
  static constexpr int64_t scales_offset(int64_t n, int64_t k) {
    return (n * row_bytes(k) + 3) / 4 * 4;
  }
  static constexpr size_t bytes(int64_t n, int64_t k, int64_t group) {
    if (is_tiled(F)) return tiles_of(n) * tiles_of(k) * kTileBytes;
    if (in_fragments(F, k, group)) return Fragments(F, k, group).bytes(n);
    int64_t groups = has_scales(F) ? n * (k / group) : 0;
    int64_t all = scales_offset(n, k) + groups * (F == Format::kUint4 ? 5 : 4);
    return (all + 63) / 64 * 64;
  }

  // Of GemmKernel: blocks of f32 rows are whole lines of 64 bytes.
  static constexpr int64_t block_rows(int64_t k, int64_t group) {
    if (is_tiled(F)) return kTile;
    if (in_fragments(F, k, group)) return kChunkRows;
    return F == Format::kF32 ? 16 : 0;
  }

  BANYAN_HOST_DEVICE constexpr int64_t groups() const { return quotient(k, group); }
  BANYAN_HOST_DEVICE constexpr const uint8_t* row(int64_t j) const {
    return data + j * row_bytes(k);
  }
  BANYAN_HOST_DEVICE constexpr uint8_t code(int64_t j, int64_t c) const {
    if (in_fragments(F, k, group)) {
      Fragments::Place place = Fragments(F, k, group).code(j, c);
      return has_nibbles(F) ? data[place.byte] >> (place.nibble * 4) & 15 : data[place.byte];
    }
    if constexpr (!has_nibbles(F)) return row(j)[c];
    return row(j)[c / 2] >> (c % 2 * 4) & 15;
  }
  // In bytes from the beginning.
  BANYAN_HOST_DEVICE constexpr int64_t scale_offset(int64_t j, int64_t g) const {
    if (in_fragments(F, k, group)) return Fragments(F, k, group).scale(j, g);
    return scales_offset(n, k) + (j * groups() + g) * 4;
  }
  BANYAN_HOST_DEVICE constexpr int64_t zero_offset(int64_t j, int64_t g) const {
    if (in_fragments(F, k, group)) return Fragments(F, k, group).zero(j, g * group);
    return scales_offset(n, k) + n * groups() * 4 + j * groups() + g;
  }
  // The scale of products, and of e2m1 half of it: its codes are doubled.
  BANYAN_HOST_DEVICE float scale(int64_t j, int64_t g) const {
    float scale = *reinterpret_cast<const float*>(data + scale_offset(j, g));
    return F == Format::kMxfp4 ? scale * 0.5f : scale;
  }
  BANYAN_HOST_DEVICE constexpr int zero(int64_t j, int64_t g) const {
    if constexpr (F == Format::kInt4) return 8;
    if constexpr (F != Format::kUint4) return 0;
    return data[zero_offset(j, g)];
  }

  // The element in column c, which is in group g, without its scale.
  BANYAN_HOST_DEVICE Element<F> at(int64_t j, int64_t c, int64_t g) const {
    if constexpr (F == Format::kF32) return reinterpret_cast<const float*>(row(j))[c];
    if constexpr (is_tiled(F)) {
      return to_float(*reinterpret_cast<const Element16<F>*>(data + tiled_offset(j, c, k)));
    }
    if constexpr (F == Format::kFp8) return to_float(Float8E4M3{code(j, c)});
    if constexpr (F == Format::kInt8) return static_cast<int8_t>(code(j, c));
    if constexpr (F == Format::kMxfp4) return twice_e2m1(code(j, c));
    return static_cast<Element<F>>(code(j, c)) - static_cast<Element<F>>(zero(j, g));
  }

  // Magnitudes 0, 1, 2, 3, 4, 6, 8 and 12, then the sign.
  BANYAN_HOST_DEVICE static constexpr int32_t twice_e2m1(uint8_t code) {
    int32_t step = code & 7;
    int32_t magnitude = step < 4 ? step : step < 6 ? 2 * step - 4 : 4 * step - 16;
    return (code & 8) != 0 ? -magnitude : magnitude;
  }

  const uint8_t* data;
  int64_t n, k, group;
};

}  // namespace banyan::cuda
