// Recurrences over a prompt on tensor cores, in tiles of 64 rows (slots.h has the notation). The
// rows of a prompt go through them, later rows one by one.
//
// With d(i, j) the product of the decays of rows j + 1 to i, S the state before the tile, and i and
// j counted from its first row, by the delta rule:
//
//   A_ij = k_i . d(i, j) key_j          for j < i
//   P_ij = query_i . d(i, j) key_j      for j <= i
//   T    = (I + A)^-1
//   u    = T v - (T d k) S              where row i of d k is d(i, -1) k_i
//   out  = (d query) S + P u
//   S    = d(63, -1) S + (d(63, j) key_j)^T u
//
// Other recurrences have u = v. One kernel (prepare_state_tiles.h) computes everything that does
// not depend on the state, for all tiles and heads in parallel: a single prompt fills the GPU. A
// second one (scan_state_tiles.h) goes from tile to tile with the state in registers. The operands
// of all products are split into two bf16 numbers (split_fragments.h).
//
// A product of decays can only underflow, and no decay is ever divided by. Rows after the last one
// of a prompt are zeros with a decay of 1, and row i only ever meets zeros of rows after it, so
// that finite numbers after it change none of its bits. Tiles begin at absolute multiples of 64
// rows: how a prompt is cut, and what else a step computes, changes no bit at all.
#pragma once

#include "kernels/cuda/slots.h"
#include "kernels/cuda/split_fragments.h"

namespace banyan::cuda {

BANYAN_HOST_DEVICE constexpr int64_t tiles_of_span(const SlotSpans& spans, int64_t s) {
  return (prompt_rows(spans, s) + kStateTile - 1) / kStateTile;
}

// What a tile's products leave to the scan of a head, in bytes from its begin. Operands are [64,
// 128], scores [64, 64].
struct PreparedTile {
  static constexpr int64_t kOperand = SplitTiles::bytes(kStateTile, kRegisterDim);
  static constexpr int64_t kQueries = 0;            // d query
  static constexpr int64_t kKeys = kOperand;        // d(63, j) key_j
  static constexpr int64_t kScores = 2 * kOperand;  // P
  static constexpr int64_t kDecay =                 // d(63, -1), f32
      kScores + SplitTiles::bytes(kStateTile, kStateTile);
  static constexpr int64_t kReads = kDecay + int64_t{kTileAlignment};  // -T d k
  static constexpr int64_t kValues = kReads + kOperand;  // T v as sums [columns / 64, 32, 128]

  // Up to here a scan copies it to shared memory.
  BANYAN_HOST_DEVICE static constexpr int64_t staged_bytes(bool corrects) {
    return corrects ? kValues : kReads;
  }
  BANYAN_HOST_DEVICE static constexpr int64_t bytes(bool corrects, int64_t value_dim) {
    return corrects ? kValues + kStateTile * value_dim * int64_t{sizeof(float)} : kReads;
  }

  std::byte* at;

  BANYAN_HOST_DEVICE SplitTiles operand(int64_t offset) const {
    return {at + offset, kStateTile, kRegisterDim};
  }
  BANYAN_HOST_DEVICE SplitTiles scores() const { return {at + kScores, kStateTile, kStateTile}; }
  BANYAN_HOST_DEVICE float* decay() const { return reinterpret_cast<float*>(at + kDecay); }
  // Value i of a thread, of the columns of a scan.
  BANYAN_HOST_DEVICE float* value(int64_t piece, int i, int thread) const {
    return reinterpret_cast<float*>(at + kValues) + (piece * (kStateTile / 2) + i) * kBlockThreads +
           thread;
  }
};
static_assert(PreparedTile::kReads % kTileAlignment == 0 &&
              kRegisterDim * sizeof(float) <= kTileAlignment);

// Some of the tiles of the prompts of a step, counted over its spans.
struct StateTiles {
  std::byte* scratch = nullptr;
  int64_t first = 0, count = 0, heads = 0;
  int64_t bytes = 0;  // of a tile and head

  constexpr int64_t total_bytes() const { return count * heads * bytes; }
  BANYAN_HOST_DEVICE PreparedTile of(int64_t number, int64_t head) const {
    return {scratch + ((number - first) * heads + head) * bytes};
  }
};

// Where a tile is; none if there are fewer.
struct StateTilePlace {
  int64_t span = -1, tile = 0;
};

// Each thread counts the tiles of consecutive spans.
struct TileFinder {
  int32_t counts[kBlockThreads];
  int32_t span, tile;

  template <class Block>
  BANYAN_DEVICE StateTilePlace find(Block& block, const SlotSpans& spans, int64_t number) {
    int64_t share = (spans.count + Block::kThreads - 1) / Block::kThreads;
    auto end_of = [&](int thread) { return least((thread + 1) * share, spans.count); };
    block.each([&](int thread) {
      int64_t tiles = 0;
      for (int64_t s = thread * share; s < end_of(thread); ++s) tiles += tiles_of_span(spans, s);
      counts[thread] = static_cast<int32_t>(tiles);
      if (thread == 0) span = -1;
    });
    block.exclusive_sums(counts);
    block.each([&](int thread) {
      int64_t left = number - counts[thread];
      for (int64_t s = thread * share; s < end_of(thread) && left >= 0; ++s) {
        int64_t tiles = tiles_of_span(spans, s);
        if (left < tiles) {
          span = static_cast<int32_t>(s);
          tile = static_cast<int32_t>(left);
        }
        left -= tiles;
      }
    });
    return {span, tile};
  }
};

}  // namespace banyan::cuda
