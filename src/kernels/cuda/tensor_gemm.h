// Products of bf16 on tensor cores: what the kernel on a card (device/tensor_gemm.cuh) and its
// emulation (emulated/tensor_gemm.h) share. Neither tiles nor the number of rows change a bit.
//
// x is rounded to bf16. The columns of a matrix are cut into segments by its shape alone. A segment
// is summed up from zero by wgmma, sixteen columns at a time (wgmma_arithmetic.h). Several segments
// are added to zero in ascending order in f32, then the bias.
#pragma once

#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// In how many segments the columns of `count` matrices [n, k] are summed up: as many as let the
// tiles of a few rows fill a card, each at least 256 columns and whole tiles.
BANYAN_HOST_DEVICE constexpr int gemm_segments(int64_t count, int64_t n, int64_t k) {
  constexpr int64_t kFullCard = 180, kColumnsMin = 256;  // blocks; columns of a segment
  int segments = 1;
  while (segments < 8 && count * tiles_of(n) * segments < kFullCard &&
         k % (2 * segments * kTile) == 0 && k / (2 * segments) >= kColumnsMin) {
    segments *= 2;
  }
  return segments;
}

// x in bf16: [x_rows, segments, columns], columns filled up with zeros to whole chunks.
struct RoundedRows {
  void* workspace;
  int64_t segments, columns;

  BANYAN_HOST_DEVICE static constexpr int64_t columns_of(int64_t k) {
    return (k + kChunkColumns - 1) / kChunkColumns * kChunkColumns;
  }
  BANYAN_HOST_DEVICE static constexpr size_t bytes(int64_t rows, int64_t segments, int64_t k) {
    return static_cast<size_t>(rows * segments * columns_of(k)) * sizeof(BFloat16);
  }
  BANYAN_HOST_DEVICE BFloat16* row(int64_t row, int64_t segment) const {
    return static_cast<BFloat16*>(workspace) + (row * segments + segment) * columns;
  }
};

BANYAN_HOST_DEVICE inline RoundedRows rounded_rows(const GemmArgs& a) {
  return {a.workspace, a.segments, RoundedRows::columns_of(a.k)};
}

// The rows of x that a product reads; begins lie in device memory.
BANYAN_HOST_DEVICE inline int64_t rows_read(const GemmArgs& a) {
  const GemmGroup& w = a.weights;
  return w.begins != nullptr && a.x_index == nullptr ? w.begins[w.count] : a.x_rows;
}

// The row of x for a row of y.
BANYAN_HOST_DEVICE inline int64_t source_row(const GemmArgs& a, int64_t row) {
  return a.x_index != nullptr ? a.x_index[row] : row;
}

// What a kernel that rounds or quantises rows of x reads and where it writes. Products of the same
// x that follow each other, such as those of queries, keys and values, share its work.
struct Operand {
  const void* rounding = nullptr;  // which kernel
  const float* x = nullptr;
  const int32_t *x_index = nullptr, *begins = nullptr;
  int64_t x_stride = 0, x_rows = 0, segments = 0, segment_stride = 0, k = 0, group = 0;
  const void* workspace = nullptr;
  bool operator==(const Operand&) const = default;
};
inline Operand operand_of(const void* rounding, const GemmArgs& a) {
  return {rounding,         a.x, a.x_index, a.weights.begins, a.x_stride, a.x_rows, a.segments,
          a.segment_stride, a.k, a.group,   a.workspace};
}

// A thread rounds eight columns.
struct RoundRows {
  static constexpr int64_t kColumns = 8;
  GemmArgs a;
  Shape shape() const {
    return {.blocks = 1 + a.x_rows * a.segments * RoundedRows::columns_of(a.k) / kColumns /
                              kBlockThreads};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    RoundedRows to = rounded_rows(a);
    int64_t parts = to.columns / kColumns;
    for_all(block, rows_read(a) * a.segments * parts, [&](int64_t i) {
      int64_t at = quotient(i, parts), first = (i - at * parts) * kColumns;
      int64_t row = quotient(at, a.segments), segment = at - row * a.segments;
      const float* x = a.x + row * a.x_stride + segment * a.segment_stride;
      struct alignas(16) {
        BFloat16 values[kColumns];
      } rounded;
      BANYAN_UNROLL
      for (int64_t c = 0; c < kColumns; ++c) {
        rounded.values[c] = from_float<BFloat16>(first + c < a.k ? x[first + c] : 0.0f);
      }
      *reinterpret_cast<decltype(rounded)*>(to.row(row, segment) + first) = rounded;
    });
  }
};

// A tile of outputs: rows of y times features of one matrix.
struct OutputTile {
  int64_t matrix, row, row_count, feature;
};

// Where tile t of a matrix lies in its `down` x `across` tiles of rows and features. Blocks that
// run at the same time share the features of a tile among eight tiles of rows, and so on.
struct TilePlace {
  int64_t down, across;
};
BANYAN_HOST_DEVICE constexpr TilePlace tile_place(int64_t t, int64_t down, int64_t across) {
  constexpr int64_t kBand = 8;
  int64_t band = quotient(t, kBand * across), within = t - band * kBand * across;
  int64_t height = least(kBand, down - band * kBand);
  int64_t column = quotient(within, height);
  return {band * kBand + within - column * height, column};
}

// Calls body(OutputTile) for every tile that worker `index` of `count` computes.
template <class Body>
BANYAN_HOST_DEVICE void for_output_tiles(const GemmArgs& a, int64_t index, int64_t count,
                                         int64_t tile_rows, int64_t tile_features,
                                         const Body& body) {
  const GemmGroup& w = a.weights;
  int64_t across = quotient(a.n + tile_features - 1, tile_features), item = 0;
  for (int64_t i = 0; i < w.count; ++i) {
    int64_t begin = w.begins != nullptr ? w.begins[i] : 0;
    int64_t end = w.begins != nullptr ? w.begins[i + 1] : a.x_rows;
    int64_t down = quotient(end - begin + tile_rows - 1, tile_rows);
    int64_t first = remainder(index + count - remainder(item, count), count);
    for (int64_t t = first; t < down * across; t += count) {
      TilePlace place = tile_place(t, down, across);
      int64_t row = begin + place.down * tile_rows;
      body(OutputTile{i, row, least(tile_rows, end - row), place.across * tile_features});
    }
    item += down * across;
  }
}

// ---- kernels on a card ----

// Who sums up the segments of the columns: there is only one; a block all of them; or a cluster of
// blocks, one each, and then each block adds up a part of the features over distributed shared
// memory.
enum class Segments { kOne, kOfBlock, kOfCluster };

template <int Rows, int Groups, Segments Of>
struct TensorGemm {
  static constexpr int kRows = Rows, kGroups = Groups;  // of x; of threads that multiply
  static constexpr bool kSplit = Of == Segments::kOfCluster;
  static constexpr bool kAdds = Of == Segments::kOfBlock;
  static constexpr int kFeatures = kGroups * static_cast<int>(kTile);
  static constexpr int kMultipliers = kGroups * 128, kThreads = kMultipliers + kWarp;

  static constexpr uint32_t kWeightBytes = kGroups * kTileBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kRows * kTileRowBytes;
  // Two blocks share a multiprocessor if they have one group each.
  static constexpr int kStages = static_cast<int>(least(8, kGroups * 96 * 1024 / kStageBytes));
  // Behind the stages: sums of this block's segment [rows, features], rows of x, barriers.
  static constexpr uint32_t kSums = kStages * kStageBytes;
  static constexpr uint32_t kSources = kSums + (kSplit ? kRows * kFeatures * 4 : 0);
  static constexpr uint32_t kBarriers = kSources + kRows * 4;
  static constexpr uint32_t kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(kRows % 8 == 0 && kStages >= 3 && kSharedBytes <= 227 * 1024);

  GemmArgs a;
  int segments;  // of the columns

  int cluster() const { return kSplit ? segments : 1; }

  // As many blocks as have tiles, or as fill the card: only it knows how many tiles experts have.
  // A cluster computes one tile, so that its fetching warp is done when it meets the others.
  int64_t blocks(int64_t multiprocessors) const {
    int64_t tiles =
        a.weights.count * ((a.x_rows + kRows - 1) / kRows) * ((a.n + kFeatures - 1) / kFeatures);
    if (kSplit) return tiles * segments;
    int64_t resident = multiprocessors * (kGroups > 1 ? 1 : 2);
    return a.weights.begins != nullptr ? resident : least(tiles, resident);
  }
};

// The rows of a matrix, or likely so: only the card knows how many experts have.
inline int64_t likely_rows(const GemmArgs& a) {
  constexpr int64_t kLikelyTopK = 8;
  const GemmGroup& w = a.weights;
  if (w.begins == nullptr) return a.x_rows;
  return (a.x_rows * (a.x_index != nullptr ? kLikelyTopK : 1) + w.count - 1) / w.count;
}

// Calls launch(kernel, blocks) with the TensorGemm for the rows: few read the weights as fast as
// memory gives them, many reuse them.
template <class Launch>
void launch_tensor_gemm(const GemmArgs& args, int64_t multiprocessors, const Launch& launch) {
  const GemmGroup& w = args.weights;
  int segments = gemm_segments(w.count, args.n, args.k);
  int64_t rows = likely_rows(args);
  auto run = [&]<class G>(G kernel) { launch(kernel, kernel.blocks(multiprocessors)); };
  auto run_few = [&]<Segments Of>(std::integral_constant<Segments, Of>) {
    if (rows <= 8) return run(TensorGemm<8, 1, Of>{args, segments});
    if (rows <= 16) return run(TensorGemm<16, 1, Of>{args, segments});
    run(TensorGemm<32, 1, Of>{args, segments});
  };
  if (rows <= 32 && (segments == 1 || w.begins != nullptr)) {
    run_few(std::integral_constant<Segments, Segments::kOfBlock>());
  } else if (rows <= 32) {
    run_few(std::integral_constant<Segments, Segments::kOfCluster>());
  } else if (rows <= 64) {
    run(TensorGemm<64, 1, Segments::kOfBlock>{args, segments});
  } else if (rows > 128 && segments == 1) {
    run(TensorGemm<256, 2, Segments::kOne>{args, segments});
  } else {
    run(TensorGemm<128, 2, Segments::kOfBlock>{args, segments});
  }
}

}  // namespace banyan::cuda
