// Matrix products on AMX tiles, over the packed layout of gemm.h: sixteen lines of a block are the
// B operand of a tile product, sixteen prepared rows of x the A operand.
//
// Templates over the tile registers T, so that the loops are tested where there are none
// (tests/differential/emulated_tiles.h). bf16 and fp8 weights take this path for any number of
// rows; integers, whose sums are exact either way, for more than a few.
#pragma once

#include "kernels/x86/gemm.h"
#include "kernels/x86/x86.h"

namespace banyan::x86 {

constexpr int64_t kTileLines = 16;  // of a B operand
constexpr int64_t kTileRows = 16;   // of an A operand
// Rows that pass while a few blocks stay in the caches.
constexpr int64_t kAmxRowsMax = 256;
// Operand lines of a block that are multiplied before the next rows are: two blocks take 32 KiB.
constexpr int64_t kAmxChunkLines = 256;
// Rows that integers leave to the vector code.
constexpr int64_t kVectorRowsMax = 8;

// ---- Formats ---------------------------------------------------------------------------------

// An operand line is 64 bytes that go with a dword of x: kParts of them for each line of a block.

template <class V>
struct AmxBf16Weights : Bf16PairWeights<V> {
  static constexpr int64_t kLineMultiple = kTileLines;
  static constexpr bool kUnpacked = false;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bf16<C, A, B>();
  }
};

template <class V>
struct AmxInt8Weights : Int8Weights<V> {
  static constexpr int64_t kLineMultiple = kTileLines;
  static constexpr bool kUnpacked = false;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bytes<C, A, B>();
  }
  static auto sum_of(const float* raw, const std::byte* x, const GemmShape& s, int64_t g) {
    auto start = AmxInt8Weights::start(x, nullptr, s, g, 0);
    return V::add_dwords(start, V::load_line(reinterpret_cast<const std::byte*>(raw), 0));
  }
};

template <class V>
struct AmxFp8Weights : Fp8PairWeights<V> {
  static constexpr int64_t kLineMultiple = kTileLines;
  static constexpr bool kUnpacked = true;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bf16<C, A, B>();
  }
  static auto sum_of(const float* raw, const std::byte*, const GemmShape&, int64_t) {
    return V::load(raw);
  }
};

// ---- Loops -----------------------------------------------------------------------------------

// Rows of x for A operands, `stride` bytes apart. Rows up to the next multiple of 32 can be read.
struct AmxRows {
  const std::byte* x;
  int64_t stride;
  int64_t count;
};

// Blocks that are multiplied together, and where their operand lines are.
struct AmxBlocks {
  const std::byte* block[4];
  const std::byte* lines[4];
  int64_t count;  // of blocks that are not stand-ins
};

// What the blocks accumulate for each row: raw tiles between chunks, and scaled sums.
struct AmxSums {
  alignas(64) float raw[kAmxRowsMax][4][kBlockOutputs];
  alignas(64) float scaled[kAmxRowsMax][4][kBlockOutputs];
};

// Adds the products of `count` operand lines with x, whose operands start `x_offset` bytes into a
// row, to the raw sums of the rows from `row` on: 2 x 2 tiles, or 1 x 4 for up to 16 rows.
template <class T, class F, int RowTiles>
void multiply_tiles(const AmxRows& rows, int64_t row, const AmxBlocks& blocks, int64_t count,
                    int64_t x_offset, bool from_zero, AmxSums& sums) {
  constexpr int kBlockTiles = 4 / RowTiles;
  constexpr int64_t kStride = sizeof(sums.raw[0]);
  float* raw[4];
  for (int i = 0; i < 4; ++i) raw[i] = sums.raw[row + i / kBlockTiles * kTileRows][i % kBlockTiles];
  if (from_zero) {
    T::template zero<0>(), T::template zero<1>();
    T::template zero<2>(), T::template zero<3>();
  } else {
    T::template load<0>(raw[0], kStride), T::template load<1>(raw[1], kStride);
    T::template load<2>(raw[2], kStride), T::template load<3>(raw[3], kStride);
  }
  const std::byte* x = rows.x + row * rows.stride + x_offset;
  for (int64_t l = 0; l < count; l += kTileLines, x += kTileLines * 4) {
    int64_t offset = l * kLineBytes;
    for (int b = 0; row == 0 && b < kBlockTiles; ++b) {
      for (int64_t ahead = 0; ahead < kTileLines * kLineBytes; ahead += kLineBytes) {
        __builtin_prefetch(blocks.lines[b] + offset + kPrefetchBytes + ahead);
      }
    }
    T::template load<4>(x, rows.stride);
    T::template load<6>(blocks.lines[0] + offset, kLineBytes);
    T::template load<7>(blocks.lines[1] + offset, kLineBytes);
    F::template dot<T, 0, 4, 6>();
    F::template dot<T, 1, 4, 7>();
    if constexpr (RowTiles == 2) {
      T::template load<5>(x + kTileRows * rows.stride, rows.stride);
      F::template dot<T, 2, 5, 6>();
      F::template dot<T, 3, 5, 7>();
    } else {
      T::template load<6>(blocks.lines[2] + offset, kLineBytes);
      T::template load<7>(blocks.lines[3] + offset, kLineBytes);
      F::template dot<T, 2, 4, 6>();
      F::template dot<T, 3, 4, 7>();
    }
  }
  T::template store<0>(raw[0], kStride), T::template store<1>(raw[1], kStride);
  T::template store<2>(raw[2], kStride), T::template store<3>(raw[3], kStride);
}

// Adds the raw sums of group g, times what they are multiples of, to the scaled sums.
template <class F>
void scale_sums(const GemmShape& s, const AmxRows& rows, const AmxBlocks& blocks, int64_t g,
                AmxSums& sums) {
  using V = typename F::V;
  for (int64_t b = 0; b < blocks.count; ++b) {
    auto scale = F::scale(blocks.block[b], s, g, 0);
    for (int64_t r = 0; r < rows.count; ++r) {
      const std::byte* x = rows.x + r * rows.stride;
      auto sum = F::to_float(F::sum_of(sums.raw[r][b], x, s, g));
      auto factor = V::mul(F::step(x, s, g), scale);
      float* y = sums.scaled[r][b];
      V::store(y, V::fma(sum, factor, g == 0 ? V::set(0) : V::load(y)));
    }
  }
}

// Points blocks.lines at operand lines [begin, begin + count) of group g, unpacking them if need
// be.
template <class F>
void locate_lines(const GemmShape& s, int64_t g, int64_t begin, int64_t count,
                  std::byte (*unpacked)[kAmxChunkLines * kLineBytes], AmxBlocks& blocks) {
  using V = typename F::V;
  int64_t first = g * s.group_lines + begin / F::kParts;
  for (int64_t b = 0; b < blocks.count; ++b) {
    const std::byte* line = blocks.block[b] + s.header_bytes + first * kLineBytes;
    blocks.lines[b] = line;
    if constexpr (F::kUnpacked) {
      blocks.lines[b] = unpacked[b];
      for (int64_t l = 0; l < count; ++l) {
        auto operand = F::part(F::load_line(line + l / F::kParts * kLineBytes, 0), l % F::kParts);
        V::store_line(unpacked[b] + l * kLineBytes, operand);
      }
    }
  }
  for (int64_t b = blocks.count; b < 4; ++b) blocks.lines[b] = blocks.lines[0];
}

// All products of the rows with the blocks.
template <class T, class F, int RowTiles>
void multiply_chunks(const GemmShape& s, const AmxRows& rows, AmxBlocks& blocks, AmxSums& sums) {
  alignas(64) std::byte unpacked[F::kUnpacked ? 4 : 1][kAmxChunkLines * kLineBytes];
  int64_t group_lines = s.group_lines * F::kParts;
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t begin = 0; begin < group_lines; begin += kAmxChunkLines) {
      int64_t left = group_lines - begin;
      int64_t count = left < kAmxChunkLines ? left : kAmxChunkLines;
      locate_lines<F>(s, g, begin, count, unpacked, blocks);
      for (int64_t row = 0; row < rows.count; row += RowTiles * kTileRows) {
        multiply_tiles<T, F, RowTiles>(rows, row, blocks, count, (g * group_lines + begin) * 4,
                                       begin == 0, sums);
      }
    }
    if constexpr (F::kScaled) scale_sums<F>(s, rows, blocks, g, sums);
  }
}

// Rows that start at row `first` of the part, with blocks [begin, end).
template <class T, class F, int RowTiles>
void multiply_amx_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part,
                       const AmxRows& rows, int64_t first, int64_t begin, int64_t end) {
  using V = typename F::V;
  constexpr int64_t kBlocks = 4 / RowTiles;
  AmxSums sums;
  // One tile of rows is as fast as the blocks are read: in streams that go on, see gemm.h.
  int64_t stride = RowTiles == 1 ? (end - begin + kBlocks - 1) / kBlocks : 1;
  int64_t step = RowTiles == 1 ? 1 : kBlocks;
  int64_t last = RowTiles == 1 ? begin + stride : end;
  for (int64_t at = begin; at < last; at += step) {
    AmxBlocks blocks = {.count = 0};
    for (int64_t b = 0; b < 4; ++b) {
      int64_t block = at + b * stride;
      bool real = b < kBlocks && block < end;
      blocks.count += real ? 1 : 0;
      blocks.block[b] =
          static_cast<const std::byte*>(part.weight) + (real ? block : at) * s.block_bytes;
    }
    multiply_chunks<T, F, RowTiles>(s, rows, blocks, sums);
    for (int64_t b = 0; b < blocks.count; ++b) {
      int64_t j = (at + b * stride) * kBlockOutputs;
      int64_t lanes = a.n - j < kBlockOutputs ? a.n - j : kBlockOutputs;
      auto bias = a.bias ? load_up_to<V>(a.bias + j, lanes) : V::set(-0.0f);
      for (int64_t r = 0; r < rows.count; ++r) {
        const float* sum = F::kScaled ? sums.scaled[r][b] : sums.raw[r][b];
        float* y = a.y + (part.row_begin + first + r) * a.y_stride + part.y_column + j;
        store_up_to<V>(y, lanes, V::add(V::load(sum), bias));
      }
    }
  }
}

// The prepared rows [first, first + count) of a part side by side: where they are, or, when an
// index scatters them, copied to the worker's scratch.
template <class F>
AmxRows place_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t first,
                   int64_t count, int worker) {
  auto* workspace = static_cast<std::byte*>(a.workspace);
  int64_t row = part.row_begin + first;
  if (a.x_index == nullptr) {
    return {.x = workspace + (row * a.segments + part.segment) * s.prepared_bytes,
            .stride = a.segments * s.prepared_bytes,
            .count = count};
  }
  std::byte* scratch =
      workspace + (a.x_rows * a.segments + 2 * kTileRows * a.segments + worker * 2 * kTileRows) *
                      s.prepared_bytes;
  for (int64_t r = 0; r < count; ++r) {
    int64_t source = a.x_index[row + r] * a.segments + part.segment;
    std::memcpy(scratch + r * s.prepared_bytes, workspace + source * s.prepared_bytes,
                s.prepared_bytes);
  }
  return {.x = scratch, .stride = s.prepared_bytes, .count = count};
}

template <class T, class F>
struct AmxMultiply {
  static void blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                     int64_t end, int worker) {
    bool whole_tiles = s.group_lines * F::kParts % kTileLines == 0;
    if (F::kQuantised && (part.row_count <= kVectorRowsMax || !whole_tiles)) {
      return VectorMultiply<F>::blocks(a, s, part, begin, end, worker);
    }
    T::begin();
    int64_t rows_max = a.x_index ? 2 * kTileRows : kAmxRowsMax;
    for (int64_t first = 0; first < part.row_count; first += rows_max) {
      int64_t left = part.row_count - first;
      AmxRows rows = place_rows<F>(a, s, part, first, left < rows_max ? left : rows_max, worker);
      if (rows.count <= kTileRows) {
        multiply_amx_rows<T, F, 1>(a, s, part, rows, first, begin, end);
      } else {
        multiply_amx_rows<T, F, 2>(a, s, part, rows, first, begin, end);
      }
    }
    T::end();
  }

  // Behind the prepared rows, what a tile may read beyond the last one, and a scratch for each
  // worker.
  static size_t workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group,
                                int workers) {
    int64_t all = rows * segments + 2 * kTileRows * (segments + workers);
    return static_cast<size_t>(all) * shape_of<F>(k, group).prepared_bytes;
  }
};

template <class T, class V>
constexpr TileProducts tile_products() {
  return {.bf16 = gemm_kernel<AmxBf16Weights<V>, AmxMultiply<T, AmxBf16Weights<V>>>(),
          .int8 = gemm_kernel<AmxInt8Weights<V>, AmxMultiply<T, AmxInt8Weights<V>>>(),
          .fp8 = gemm_kernel<AmxFp8Weights<V>, AmxMultiply<T, AmxFp8Weights<V>>>()};
}

}  // namespace banyan::x86
