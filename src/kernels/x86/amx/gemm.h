// GEMM on AMX tiles, over the packed layout of gemm.h. The B operand of a tile product is sixteen
// (or eight) lines of a block, the A operand sixteen prepared rows of x.
//
// The loops are templates over the tile registers T, so that they can be tested without AMX
// (tests/differential/emulated_tiles.h). bf16 and fp8 weights use this path for any number of rows;
// integers only for more than a few, since their sums are exact either way.
#pragma once

#include "kernels/scratch.h"
#include "kernels/vector/gemm.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constexpr int64_t kTileLines = 16;  // per B operand
constexpr int64_t kTileRows = 16;   // per A operand
constexpr int64_t kPairRows = 2 * kTileRows;
// Limits of one pass over rows, in rows and bytes, while a few blocks stay in the caches.
constexpr int64_t kAmxRowsMax = 512;
constexpr int64_t kAmxRowBytes = 1 << 20;
// Operand lines of a block that are multiplied before moving to the next rows. Those of two blocks
// fit the level-2 cache, and partial sums are rarely stored.
constexpr int64_t kAmxChunkLines = 1024;
// The same for four blocks unpacked for one tile of rows: they fit the level-1 cache.
constexpr int64_t kAmxUnpackedLines = 64;

// ---- Formats ---------------------------------------------------------------------------------

// An operand line is 64 bytes that are multiplied with one dword of x; a block's line has kParts of
// them. Up to kVectorRowsMax rows use the vector code.

template <class V>
struct AmxBf16Weights : Bf16PairWeights<V> {
  static constexpr int64_t kLineMultiple = kTileLines, kVectorRowsMax = 0;
  static constexpr bool kUnpacked = false;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bf16<C, A, B>();
  }
};

template <class V>
struct AmxInt8Weights : Int8Weights<V> {
  static constexpr int64_t kLineMultiple = kTileLines, kVectorRowsMax = 8;
  static constexpr bool kUnpacked = false;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bytes<C, A, B>();
  }
  static auto sum_of(const float* raw, const std::byte* x, const GemmShape& s, int64_t g) {
    auto start = AmxInt8Weights::start(x, nullptr, s, g, 0);
    auto sum = V::load_line(reinterpret_cast<const std::byte*>(raw), 0);
    return V::to_float(V::add_dwords(start, sum));
  }
};

template <class V>
struct AmxFp8Weights : Fp8PairWeights<V> {
  static constexpr int64_t kLineMultiple = kTileLines, kVectorRowsMax = 0;
  static constexpr bool kUnpacked = true;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_bf16<C, A, B>();
  }
  static auto zero_of(const std::byte*, const GemmShape&, int64_t) { return V::set_dword(0); }
  static auto operand(typename V::I line, int p, typename V::I) {
    return AmxFp8Weights::part(line, p);
  }
  static auto sum_of(const float* raw, const std::byte*, const GemmShape&, int64_t) {
    return V::load(raw);
  }
};

// Unpacks groups of four codes to signed bytes, so that no offset correction is needed.
template <class Nibbles>
struct AmxNibbles : Nibbles {
  using V = typename Nibbles::V;
  static constexpr int64_t kLineMultiple = kTileLines / Nibbles::kParts, kVectorRowsMax = 16;
  static constexpr bool kUnpacked = true;
  template <class T, int C, int A, int B>
  static void dot() {
    T::template dot_signed_bytes<C, A, B>();
  }
  static auto zero_of(const std::byte* block, const GemmShape& s, int64_t g) {
    if constexpr (!Nibbles::kZeros) {
      return V::set_dword(Nibbles::kOffset * 0x01010101);
    } else {
      auto zeros = V::load_bytes(block + zeros_at<Nibbles>(s, g));
      return V::multiply_dwords(zeros, V::set_dword(0x01010101));
    }
  }
  static auto operand(typename V::I line, int p, typename V::I zero) {
    return V::subtract_bytes(Nibbles::part(line, p), zero);
  }
  static auto sum_of(const float* raw, const std::byte*, const GemmShape&, int64_t) {
    return V::to_float(V::load_line(reinterpret_cast<const std::byte*>(raw), 0));
  }
};

// ---- Loops -----------------------------------------------------------------------------------

// Rows of x as A operands, `stride` bytes apart. Readable up to the next multiple of 32 rows.
struct AmxRows {
  const std::byte* x;
  int64_t stride;
  int64_t count;
};

// Few rows are bound by reading weights, so blocks are read as continuous streams; see gemm.h.
static inline bool in_streams(const AmxRows& rows) {
  return rows.count <= kPairRows;
}

// Blocks that are multiplied together, and their operand lines.
struct AmxBlocks {
  const std::byte* block[4];
  const std::byte* lines[4];
  int64_t count;  // real blocks, without stand-ins
};

// Operand lines [begin, begin + count) of a row: whole groups, or part of one.
struct AmxChunk {
  int64_t begin, count;
  int64_t group_lines;
};

// A stored tile of sums: sixteen rows of sixteen outputs.
using AmxTile = float[kTileRows][kBlockOutputs];

// Sums of rows, four tiles per one or two blocks of 16 rows. `raw` holds the tiles of some groups,
// or of all rows if a group continues in the next chunk. The scaled sums carry over to the next
// chunk.
struct AmxSums {
  alignas(64) AmxTile raw[kAmxRowsMax / kPairRows][4];
  alignas(64) AmxTile scaled[kAmxRowsMax / kPairRows][4];
};
// Groups scaled together, with their sums in registers. Also hides the delay before a stored tile
// can be read back.
constexpr int64_t kAmxGroups = 4;
static_assert(kAmxGroups <= kAmxRowsMax / kPairRows);

// Where outputs go: row `row` of this pass is row y_row + row of y.
struct AmxOutputs {
  const GemmArgs& a;
  const GemmPart& part;
  int64_t y_row;
  int64_t first_block, stride;  // block b of this pass is first_block + b * stride
};

// Prefetches the lines of a later tile product.
static inline void prefetch_tile(const std::byte* line) {
  for (int64_t ahead = 0; ahead < kTileLines * kLineBytes; ahead += kLineBytes) {
    __builtin_prefetch(line + kPrefetchBytes + ahead);
  }
}

// Addresses in y of four tiles of sums, whose rows are `stride` bytes apart.
struct AmxPlace {
  float* tile[4];
  int64_t stride;
};

// Memory to prefetch while tiles multiply, a little per step: this pair of tiles' share of the next
// blocks, and the output lines. Without it each output store would miss the cache.
struct AmxFetch {
  bool streams = false;  // blocks are prefetched as they are read
  const std::byte* weights = nullptr;
  int64_t weight_lines = 0;  // per step
  float* y[4] = {};          // per block
  int64_t blocks = 0, y_stride = 0;
  int64_t rows = 0, step_rows = 0;  // remaining, and per step

  [[gnu::always_inline]] void step() {
    for (int64_t i = 0; i < weight_lines; ++i, weights += kLineBytes) {
      __builtin_prefetch(weights, 0, kPrefetchLevel);
    }
    for (int64_t i = 0; i < step_rows && rows > 0; ++i, --rows) {
      for (int64_t b = 0; b < blocks; ++b) {
        __builtin_prefetch(y[b], 1);
        y[b] += y_stride;
      }
    }
  }
};

// Accumulates products of `count` operand lines, starting `begin` lines into blocks.lines, with the
// operands at x. Uses 2 x 2 tiles, or 1 x 4 for up to 16 rows. Sums start from zero or from `sums`,
// and end there, or in y if given.
template <class T, class F, int RowTiles, int64_t Depth>
void multiply_lines(const std::byte* x, int64_t x_stride, const AmxBlocks& blocks, int64_t begin,
                    int64_t count, bool from_zero, AmxFetch& fetch, AmxTile* sums,
                    const AmxPlace* y = nullptr) {
  constexpr int kBlockTiles = 4 / RowTiles;
  if (from_zero) {
    T::template zero<0>(), T::template zero<1>();
    T::template zero<2>(), T::template zero<3>();
  } else {
    T::template load<0>(sums[0], kLineBytes), T::template load<1>(sums[1], kLineBytes);
    T::template load<2>(sums[2], kLineBytes), T::template load<3>(sums[3], kLineBytes);
  }
  for (int64_t l = begin; l < begin + count; l += Depth, x += Depth * 4) {
    int64_t offset = l * kLineBytes;
    if (!F::kUnpacked && fetch.streams) {
#pragma GCC unroll 2
      for (int b = 0; b < kBlockTiles; ++b) prefetch_tile(blocks.lines[b] + offset);
    }
    fetch.step();
    T::template load<4>(x, x_stride);
    T::template load<6>(blocks.lines[0] + offset, kLineBytes);
    T::template load<7>(blocks.lines[1] + offset, kLineBytes);
    F::template dot<T, 0, 4, 6>();
    F::template dot<T, 1, 4, 7>();
    if constexpr (RowTiles == 2) {
      T::template load<5>(x + kTileRows * x_stride, x_stride);
      F::template dot<T, 2, 5, 6>();
      F::template dot<T, 3, 5, 7>();
    } else {
      T::template load<6>(blocks.lines[2] + offset, kLineBytes);
      T::template load<7>(blocks.lines[3] + offset, kLineBytes);
      F::template dot<T, 2, 4, 6>();
      F::template dot<T, 3, 4, 7>();
    }
  }
  if (y != nullptr) {
    T::template store<0>(y->tile[0], y->stride), T::template store<1>(y->tile[1], y->stride);
    T::template store<2>(y->tile[2], y->stride), T::template store<3>(y->tile[3], y->stride);
  } else {
    T::template store<0>(sums[0], kLineBytes), T::template store<1>(sums[1], kLineBytes);
    T::template store<2>(sums[2], kLineBytes), T::template store<3>(sums[3], kLineBytes);
  }
}

// Adds the raw sums of tile `tile` for groups [begin, end), starting at raw[0], times their scales
// to `scaled`. Group 0 initialises it. Handles the first R rows.
template <class F, int R>
void scale_rows(const GemmShape& s, const std::byte* x, int64_t x_stride, const std::byte* block,
                int64_t begin, int64_t end, const AmxTile (*raw)[4], int tile, AmxTile& scaled) {
  using V = typename F::V;
  typename V::F sums[R];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) sums[r] = begin == 0 ? V::set(0) : V::load(scaled[r]);
  for (int64_t g = begin; g < end; ++g) {
    auto scale = F::scale(block, s, g, 0);
    const AmxTile& of_group = raw[g - begin][tile];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      auto sum = F::sum_of(of_group[r], x + r * x_stride, s, g);
      sums[r] = V::fma(sum, V::mul(F::step(x + r * x_stride, s, g), scale), sums[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) V::store(scaled[r], sums[r]);
}

// The same for at least the first `rows` rows.
template <class F>
void scale_tile(const GemmShape& s, int64_t rows, const std::byte* x, int64_t x_stride,
                const std::byte* block, int64_t begin, int64_t end, const AmxTile (*raw)[4],
                int tile, AmxTile& scaled) {
  if (rows <= 1) return scale_rows<F, 1>(s, x, x_stride, block, begin, end, raw, tile, scaled);
  if (rows <= 4) return scale_rows<F, 4>(s, x, x_stride, block, begin, end, raw, tile, scaled);
  scale_rows<F, kTileRows>(s, x, x_stride, block, begin, end, raw, tile, scaled);
}

// Adds the products of a chunk with the rows at x to their raw and scaled sums.
template <class T, class F, int RowTiles, int64_t Depth>
void multiply_chunk(const GemmShape& s, const AmxRows& rows, int64_t row, const AmxBlocks& blocks,
                    const AmxChunk& chunk, const AmxPlace* y, AmxFetch& fetch, AmxSums& sums) {
  constexpr int kBlockTiles = 4 / RowTiles;
  const std::byte* x = rows.x + row * rows.stride;
  int64_t first = chunk.begin / chunk.group_lines;
  auto multiply_groups = [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      int64_t line = (g - first) * chunk.group_lines;
      multiply_lines<T, F, RowTiles, Depth>(x + g * chunk.group_lines * 4, rows.stride, blocks,
                                            line, chunk.group_lines, true, fetch,
                                            sums.raw[g - begin], y);
    }
  };
  auto scale_groups = [&](int64_t begin, int64_t end, const AmxTile(*raw)[4]) {
    if constexpr (F::kScaled) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        int64_t of_tile = i / kBlockTiles * kTileRows, left = rows.count - row - of_tile;
        if (i % kBlockTiles >= blocks.count || left <= 0) continue;
        scale_tile<F>(s, left, x + of_tile * rows.stride, rows.stride,
                      blocks.block[i % kBlockTiles], begin, end, raw, i,
                      sums.scaled[row / kPairRows][i]);
      }
    }
  };
  if (chunk.count < chunk.group_lines) {
    int64_t in_group = chunk.begin - first * chunk.group_lines;
    AmxTile(*raw)[4] = sums.raw + row / kPairRows;
    multiply_lines<T, F, RowTiles, Depth>(x + chunk.begin * 4, rows.stride, blocks, 0, chunk.count,
                                          in_group == 0, fetch, *raw);
    if (in_group + chunk.count == chunk.group_lines) scale_groups(first, first + 1, raw);
    return;
  }
  int64_t last = first + chunk.count / chunk.group_lines;
  for (int64_t g = first; g < last; g += kAmxGroups) {
    int64_t end = g + kAmxGroups < last ? g + kAmxGroups : last;
    multiply_groups(g, end);
    scale_groups(g, end, sums.raw);
  }
}

// Points blocks.lines at a chunk's operand lines, unpacked if necessary. Streams also prefetch.
template <class F, size_t Bytes>
void locate_lines(const GemmShape& s, const AmxChunk& chunk, bool streams,
                  std::byte (*unpacked)[Bytes], AmxBlocks& blocks) {
  using V = typename F::V;
  for (int64_t b = 0; b < blocks.count; ++b) {
    // Formats without unpacking store all scales before the lines, so the lines are contiguous.
    static_assert(F::kUnpacked || F::kUnitGroups == 0);
    blocks.lines[b] = blocks.block[b] + lines_at<F>(s, 0) + chunk.begin / F::kParts * kLineBytes;
    if constexpr (F::kUnpacked) {
      blocks.lines[b] = unpacked[b];
      for (int64_t l = 0; l < chunk.count;) {
        int64_t g = (chunk.begin + l) / chunk.group_lines;
        int64_t group_left = (g + 1) * chunk.group_lines - chunk.begin - l;
        int64_t end = group_left < chunk.count - l ? l + group_left : chunk.count;
        int64_t in_group = chunk.begin + l - g * chunk.group_lines;
        const std::byte* line =
            blocks.block[b] + lines_at<F>(s, g) + in_group / F::kParts * kLineBytes;
        auto zero = F::zero_of(blocks.block[b], s, g);
        for (; l < end; l += F::kParts, line += kLineBytes) {
          if (streams) __builtin_prefetch(line + kPrefetchBytes);
          auto codes = F::load_line(line, 0);
#pragma GCC unroll 2
          for (int p = 0; p < F::kParts; ++p) {
            V::store_line(unpacked[b] + (l + p) * kLineBytes, F::operand(codes, p, zero));
          }
        }
      }
    }
  }
  for (int64_t b = blocks.count; b < 4; ++b) blocks.lines[b] = blocks.lines[0];
}

// Whether tiles can be stored directly to y: only whole ones without a bias.
template <int RowTiles>
bool place_tiles(const AmxBlocks& blocks, const AmxRows& rows, int64_t row, const AmxOutputs& out,
                 AmxPlace& place) {
  constexpr int kBlockTiles = 4 / RowTiles;
  const GemmArgs& a = out.a;
  int64_t last_block = out.first_block + (kBlockTiles - 1) * out.stride;
  bool whole = blocks.count == kBlockTiles && (last_block + 1) * kBlockOutputs <= a.n &&
               (RowTiles == 1 || rows.count - row >= kPairRows);
  if (!whole || a.bias != nullptr) return false;
  float* y = a.y + (out.y_row + row) * a.y_stride + out.part.y_column;
  for (int64_t i = 0; i < 4; ++i) {
    place.tile[i] = y + i / kBlockTiles * kTileRows * a.y_stride +
                    (out.first_block + i % kBlockTiles * out.stride) * kBlockOutputs;
  }
  place.stride = a.y_stride * sizeof(float);
  return true;
}

// Writes the sums of up to 32 rows, starting at `row`, plus the bias.
template <class V, int RowTiles>
void write_outputs(const AmxOutputs& out, const AmxBlocks& blocks, const AmxTile* sums, int64_t row,
                   int64_t count) {
  constexpr int kBlockTiles = 4 / RowTiles;
  const GemmArgs& a = out.a;
  for (int64_t b = 0; b < blocks.count; ++b) {
    int64_t j = (out.first_block + b * out.stride) * kBlockOutputs;
    int64_t lanes = a.n - j < kBlockOutputs ? a.n - j : kBlockOutputs;
    auto bias = out.part.bias ? load_up_to<V>(out.part.bias + j, lanes) : V::set(-0.0f);
    float* y = a.y + (out.y_row + row) * a.y_stride + out.part.y_column + j;
    for (int64_t r = 0; r < count; ++r) {
      const float* sum = sums[r / kTileRows * kBlockTiles + b][r % kTileRows];
      store_up_to<V>(y + r * a.y_stride, lanes, V::add(V::load(sum), bias));
    }
  }
}

// The prefetch share of the pair of tiles at `row`, over a chunk of `lines` operand lines.
template <int RowTiles, int64_t Depth>
AmxFetch fetch_of(const GemmShape& s, const AmxRows& rows, int64_t row, const AmxBlocks& blocks,
                  const AmxChunk& chunk, int64_t lines, const AmxOutputs& out) {
  constexpr int64_t kRows = RowTiles * kTileRows, kBlockTiles = 4 / RowTiles;
  AmxFetch fetch;
  int64_t steps = (chunk.count + Depth - 1) / Depth;
  fetch.streams = in_streams(rows);
  if (!fetch.streams) {
    int64_t pairs = (rows.count + kRows - 1) / kRows;
    int64_t of_pair = kBlockTiles * s.block_bytes * chunk.count / lines / pairs;
    fetch.weights = blocks.block[0] + kBlockTiles * s.block_bytes * (lines + chunk.begin) / lines +
                    of_pair * (row / kRows);
    fetch.weight_lines = (of_pair / kLineBytes + steps - 1) / steps;
  }
  if (chunk.begin + chunk.count < lines) return fetch;
  const GemmArgs& a = out.a;
  fetch.blocks = blocks.count;
  fetch.y_stride = a.y_stride;
  for (int64_t b = 0; b < blocks.count; ++b) {
    fetch.y[b] = a.y + (out.y_row + row) * a.y_stride + out.part.y_column +
                 (out.first_block + b * out.stride) * kBlockOutputs;
  }
  fetch.rows = rows.count - row < kRows ? rows.count - row : kRows;
  fetch.step_rows = (kRows + steps - 1) / steps;
  return fetch;
}

// All products of the rows with the blocks.
template <class T, class F, int RowTiles, int64_t Depth>
void multiply_rows_with_blocks(const GemmShape& s, const AmxRows& rows, AmxBlocks& blocks,
                               const AmxOutputs& out, AmxSums& sums) {
  constexpr int64_t kRows = RowTiles * kTileRows;
  constexpr int64_t kLines = F::kUnpacked && RowTiles == 1 ? kAmxUnpackedLines : kAmxChunkLines;
  alignas(64) std::byte unpacked[F::kUnpacked ? 4 / RowTiles : 1][kLines * kLineBytes];
  int64_t group_lines = s.group_lines * F::kParts, lines = s.groups * group_lines;
  int64_t whole_groups = kLines / group_lines * group_lines;
  for (int64_t begin = 0; begin < lines;) {
    int64_t in_group = begin % group_lines, left = lines - begin;
    int64_t most = whole_groups > 0 ? whole_groups : kLines;
    if (whole_groups == 0 && group_lines - in_group < most) most = group_lines - in_group;
    AmxChunk chunk = {begin, left < most ? left : most, group_lines};
    locate_lines<F>(s, chunk, in_streams(rows), unpacked, blocks);
    begin += chunk.count;
    for (int64_t row = 0; row < rows.count; row += kRows) {
      AmxFetch fetch = fetch_of<RowTiles, Depth>(s, rows, row, blocks, chunk, lines, out);
      AmxPlace y;
      bool direct =
          !F::kScaled && chunk.count == lines && place_tiles<RowTiles>(blocks, rows, row, out, y);
      multiply_chunk<T, F, RowTiles, Depth>(s, rows, row, blocks, chunk, direct ? &y : nullptr,
                                            fetch, sums);
      if (direct) continue;
      if (begin < lines) continue;
      int64_t count = rows.count - row < kRows ? rows.count - row : kRows;
      int64_t pair = F::kScaled || chunk.count < lines ? row / kPairRows : 0;
      const AmxTile* from = F::kScaled ? sums.scaled[pair] : sums.raw[pair];
      write_outputs<typename F::V, RowTiles>(out, blocks, from, row, count);
    }
  }
}

// Multiplies rows from `first` of the part with blocks [begin, end).
template <class T, class F, int RowTiles, int64_t Depth>
void multiply_amx_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part,
                       const AmxRows& rows, int64_t first, int64_t begin, int64_t end) {
  constexpr int64_t kBlocks = 4 / RowTiles;
  AmxSums sums;
  bool streams = in_streams(rows);
  int64_t stride = streams ? (end - begin + kBlocks - 1) / kBlocks : 1;
  int64_t step = streams ? 1 : kBlocks;
  int64_t last = streams ? begin + stride : end;
  for (int64_t at = begin; at < last; at += step) {
    AmxBlocks blocks = {.count = 0};
    for (int64_t b = 0; b < 4; ++b) {
      int64_t block = at + b * stride;
      bool real = b < kBlocks && block < end;
      blocks.count += real ? 1 : 0;
      blocks.block[b] = part.weight + (real ? block : at) * s.block_bytes;
    }
    AmxOutputs out = {a, part, part.row_begin + first, at, stride};
    multiply_rows_with_blocks<T, F, RowTiles, Depth>(s, rows, blocks, out, sums);
  }
}

// Prepared rows [first, first + count) of a part, contiguous: in place or, if an index scatters
// them, copied to the worker's scratch.
static inline AmxRows place_rows(const GemmArgs& a, const GemmShape& s, const GemmPart& part,
                                 int64_t first, int64_t count) {
  auto* workspace = static_cast<std::byte*>(a.workspace);
  int64_t row = part.row_begin + first;
  if (a.x_index == nullptr) {
    return {.x = workspace + (row * a.segments + part.segment) * s.prepared_bytes,
            .stride = a.segments * s.prepared_bytes,
            .count = count};
  }
  size_t bytes = kPairRows * s.prepared_bytes;
  auto* scratch = reinterpret_cast<std::byte*>(worker_scratch(bytes / sizeof(float)));
  for (int64_t r = 0; r < count; ++r) {
    int64_t source = a.x_index[row + r] * a.segments + part.segment;
    std::memcpy(scratch + r * s.prepared_bytes, workspace + source * s.prepared_bytes,
                s.prepared_bytes);
  }
  return {.x = scratch, .stride = s.prepared_bytes, .count = count};
}

// Splits rows evenly into as many passes as the cache size requires.
static inline int64_t rows_of_pass(const GemmShape& s, int64_t rows) {
  int64_t most = kAmxRowBytes / s.prepared_bytes;
  most = most < kPairRows ? kPairRows : (most < kAmxRowsMax ? most : kAmxRowsMax);
  int64_t passes = (rows + most - 1) / most;
  return ((rows + passes - 1) / passes + kPairRows - 1) / kPairRows * kPairRows;
}

template <class T, class F>
struct AmxMultiply {
  static void blocks(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                     int64_t end) {
    if (part.row_count <= F::kVectorRowsMax) {
      return VectorMultiply<F>::blocks(a, s, part, begin, end);
    }
    if (s.group_lines * F::kParts % kTileLines == 0) {
      of_depth<kTileLines>(a, s, part, begin, end);
    } else {
      of_depth<kTileLines / 2>(a, s, part, begin, end);
    }
  }

  // With operands that are Depth lines deep.
  template <int64_t Depth>
  static void of_depth(const GemmArgs& a, const GemmShape& s, const GemmPart& part, int64_t begin,
                       int64_t end) {
    int64_t rows_max = a.x_index ? kPairRows : rows_of_pass(s, part.row_count);
    for (int64_t first = 0; first < part.row_count; first += rows_max) {
      int64_t left = part.row_count - first;
      AmxRows rows = place_rows(a, s, part, first, left < rows_max ? left : rows_max);
      // A tile product takes time proportional to its rows.
      T::begin(Depth, rows.count < kTileRows ? static_cast<int>(rows.count) : 16);
      if (rows.count <= kTileRows) {
        multiply_amx_rows<T, F, 1, Depth>(a, s, part, rows, first, begin, end);
      } else {
        multiply_amx_rows<T, F, 2, Depth>(a, s, part, rows, first, begin, end);
      }
    }
    T::end();
  }

  // Includes padding after the prepared rows, which a tile may read.
  static size_t workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
    int64_t all = (rows + kPairRows) * segments;
    return all * shape_of<F>(k, group).prepared_bytes;
  }
};

template <class T, class F>
constexpr GemmKernel tile_kernel() {
  return gemm_kernel<F, AmxMultiply<T, F>>();
}

template <class T, class V>
constexpr TileProducts tile_products() {
  return {.bf16 = tile_kernel<T, AmxBf16Weights<V>>(),
          .int8 = tile_kernel<T, AmxInt8Weights<V>>(),
          .int4 = tile_kernel<T, AmxNibbles<Int4Weights<V, false>>>(),
          .uint4 = tile_kernel<T, AmxNibbles<Int4Weights<V, true>>>(),
          .mxfp4 = tile_kernel<T, AmxNibbles<Mxfp4Weights<V>>>(),
          .fp8 = tile_kernel<T, AmxFp8Weights<V>>()};
}

}  // namespace banyan::simd
