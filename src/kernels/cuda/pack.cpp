#include "kernels/cuda/pack.h"

#include <cstring>
#include <vector>

#include "kernels/scales.h"

namespace banyan::cuda {
namespace {

// The columns [begin, begin + kTile) of a row. Eight at a time stay together.
void pack_row_of_tile(const PackArgs& a, int64_t r, int64_t begin) {
  constexpr int64_t kTogether = 8;
  const auto* from = static_cast<const uint16_t*>(a.source) + r * a.k;
  for (int64_t c = begin; c < begin + kTile; c += kTogether) {
    uint16_t columns[kTogether] = {};
    if (c + kTogether <= a.k) {
      std::memcpy(columns, from + c, sizeof(columns));
    } else if (c < a.k) {
      std::memcpy(columns, from + c, (a.k - c) * sizeof(uint16_t));
    }
    std::memcpy(static_cast<std::byte*>(a.packed) + tiled_offset(a.row_begin + r, c, a.k), columns,
                sizeof(columns));
  }
}

// Tile after tile: the other way round, every row would touch a page of each.
void pack_tiles(const PackArgs& a) {
  for (int64_t begin = 0; begin < a.k; begin += kTile) {
    for (int64_t r = 0; r < a.row_count; ++r) pack_row_of_tile(a, r, begin);
  }
}

// `to` is where the row's first code lies in the chunk, `columns` where others lie from there.
template <Format F>
void pack_row_of_chunk(const uint8_t* from, int64_t count, const Fragments::Place* columns,
                       uint8_t* to) {
  for (int64_t c = 0; c < kChunkColumns; ++c) {
    uint8_t code = c < count ? from[c] : uint8_t{0};
    uint8_t& byte = to[columns[c].byte];
    if (!has_nibbles(F) || columns[c].nibble == 0) {  // which comes first
      byte = code;
    } else {
      byte = static_cast<uint8_t>(byte | code << 4);
    }
  }
}

// Where a code lies is the sum of what its row and its column add.
template <Format F>
void pack_fragments(const PackArgs& a) {
  Fragments fragments(F, a.k, a.group);
  Fragments::Place columns[kChunkColumns];
  for (int64_t c = 0; c < kChunkColumns; ++c) columns[c] = fragments.code(0, c);
  const auto* from = static_cast<const uint8_t*>(a.source);
  for (int64_t begin = 0; begin < a.k; begin += kChunkColumns) {
    for (int64_t r = 0; r < a.row_count; ++r) {
      auto* to = static_cast<uint8_t*>(a.packed) + fragments.code(a.row_begin + r, begin).byte;
      pack_row_of_chunk<F>(from + r * a.k + begin, a.k - begin, columns, to);
    }
  }
}

template <Format F>
void pack_codes(const PackArgs& a) {
  if (is_tiled(F)) return pack_tiles(a);
  if (in_fragments(F, a.k, a.group)) return pack_fragments<F>(a);
  auto* to = static_cast<uint8_t*>(a.packed) + a.row_begin * Packed<F>::row_bytes(a.k);
  const auto* from = static_cast<const uint8_t*>(a.source);
  if (!has_nibbles(F)) {
    std::memcpy(to, from, a.row_count * Packed<F>::row_bytes(a.k));
    return;
  }
  for (int64_t r = 0; r < a.row_count; ++r) {
    for (int64_t c = 0; c < a.k; c += 2) {
      uint8_t high = c + 1 < a.k ? from[r * a.k + c + 1] : uint8_t{0};
      *to++ = static_cast<uint8_t>(from[r * a.k + c] | high << 4);
    }
  }
}

void pack_zero(const PackArgs& a, int64_t r, int64_t g) {
  constexpr Format kFormat = Format::kUint4;
  auto* to = static_cast<uint8_t*>(a.packed);
  int64_t row = a.row_begin + r, first = g * a.group;
  uint8_t zero = a.zeros[r * (a.k / a.group) + g];
  if (!in_fragments(kFormat, a.k, a.group)) {
    to[Packed<kFormat>(a.packed, a.n, a.k, a.group).zero_offset(row, g)] = zero;
    return;
  }
  for (int64_t c = first; c < first + a.group; c += least(kChunkColumns, a.group)) {
    to[Fragments(kFormat, a.k, a.group).zero(row, c)] = zero;
  }
}

// Scales of int4 and uint4 as other tables store them, so that all have the same values.
template <Format F>
void pack_scales(const PackArgs& a) {
  int64_t groups = a.k / a.group;
  auto* to = static_cast<std::byte*>(a.packed);
  Packed<F> packed(a.packed, a.n, a.k, a.group);
  std::vector<Float16> halves(groups);
  for (int64_t r = 0; r < a.row_count; ++r) {
    const float* from = a.scales + r * groups;
    float multiplier = row_multiplier(from, groups);
    encode_scales(from, groups, multiplier, halves.data());
    for (int64_t g = 0; g < groups; ++g) {
      bool rounded = F == Format::kInt4 || F == Format::kUint4;
      float scale = rounded ? to_float(halves[g]) * multiplier : from[g];
      std::memcpy(to + packed.scale_offset(a.row_begin + r, g), &scale, sizeof scale);
      if (F == Format::kUint4) pack_zero(a, r, g);
    }
  }
}

}  // namespace

template <Format F>
void pack_weights(const PackArgs& a) {
  pack_codes<F>(a);
  if constexpr (has_scales(F)) pack_scales<F>(a);
}

template void pack_weights<Format::kF32>(const PackArgs&);
template void pack_weights<Format::kBF16>(const PackArgs&);
template void pack_weights<Format::kF16>(const PackArgs&);
template void pack_weights<Format::kInt8>(const PackArgs&);
template void pack_weights<Format::kInt4>(const PackArgs&);
template void pack_weights<Format::kUint4>(const PackArgs&);
template void pack_weights<Format::kMxfp4>(const PackArgs&);
template void pack_weights<Format::kFp8>(const PackArgs&);

}  // namespace banyan::cuda
