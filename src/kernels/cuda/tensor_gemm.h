// Products of bf16 or f16 on tensor cores: what the kernel on a GPU (device/tensor_gemm.cuh) and
// its emulation (emulated/tensor_gemm.h) share. Neither tiles nor the number of rows change a bit.
//
// x is rounded to bf16, or, times a power of two of the row, to f16 (scaled_rows.h). The columns of
// a matrix are cut into segments by its shape alone. A segment is summed up from zero by wgmma,
// sixteen columns at a time (wgmma_arithmetic.h). Several segments are added to zero in ascending
// order in f32. The sum is divided by the row's power of two, and the bias is added.
#pragma once

#include <type_traits>

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/lane_sums.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/cuda/weights.h"
#include "kernels/gemm.h"

namespace banyan::cuda {

// In how many segments the columns of `count` matrices [n, k] are summed up: as many as let the
// tiles of a few rows fill a GPU, each at least 256 columns and whole tiles.
inline constexpr int kSegmentsMax = 8;
BANYAN_HOST_DEVICE constexpr int gemm_segments(int64_t count, int64_t n, int64_t k) {
  constexpr int64_t kFullGpu = 180, kColumnsMin = 256;  // blocks; columns of a segment
  int segments = 1;
  while (segments < kSegmentsMax && count * tiles_of(n) * segments < kFullGpu &&
         k % (2 * segments * kTile) == 0 && k / (2 * segments) >= kColumnsMin) {
    segments *= 2;
  }
  return segments;
}

BANYAN_HOST_DEVICE inline RoundedRows rounded_rows(const GemmArgs& a) {
  return {a.workspace, a.x_rows, RoundedRows::column_tiles_of(a.k)};
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

// What products with weights T are multiplied by because their rows of x were: a factor for each
// row and segment of x, which follow the rounded rows.
template <class T>
inline constexpr bool kScalesRows = std::is_same_v<T, Float16>;
BANYAN_HOST_DEVICE inline float* row_factors(const GemmArgs& a) {
  size_t rows = RoundedRows::bytes(a.x_rows, a.segments, a.k);
  return reinterpret_cast<float*>(static_cast<std::byte*>(a.workspace) + rows);
}
template <class T>
size_t rounded_bytes(int64_t rows, int64_t segments, int64_t k) {
  size_t factors = kScalesRows<T> ? static_cast<size_t>(rows * segments) * sizeof(float) : 0;
  return RoundedRows::bytes(rows, segments, k) + factors;
}
// Of a row of y.
BANYAN_HOST_DEVICE inline float row_factor(const GemmArgs& a, int64_t row, int64_t matrix) {
  return row_factors(a)[source_row(a, row) * a.segments + matrix * a.weights.segment_step];
}

// What a kernel that rounds or quantises rows of x reads and where it writes. Products of the same
// x that follow each other, such as those of queries, keys and values, share its work.
struct Operand {
  const void* rounding = nullptr;  // which kernel
  const float* x = nullptr;
  const int32_t* begins =
      nullptr;  // where rows end: of sorted ones, not of those that are gathered
  int64_t x_stride = 0, x_rows = 0, segments = 0, segment_stride = 0, k = 0, group = 0;
  const void* workspace = nullptr;
  bool operator==(const Operand&) const = default;
};
inline Operand operand_of(const void* rounding, const GemmArgs& a) {
  const int32_t* begins = a.x_index == nullptr ? a.weights.begins : nullptr;
  return {rounding,         a.x, begins,  a.x_stride, a.x_rows, a.segments,
          a.segment_stride, a.k, a.group, a.workspace};
}

// A thread rounds eight columns.
struct RoundRows {
  static constexpr int64_t kColumns = 8;
  GemmArgs a;

  std::array<MemoryRange, 2> reads() const {
    int64_t columns = (a.segments - 1) * a.segment_stride + a.k;
    return {float_rows(a.x, a.x_rows, a.x_stride, columns),
            range_of(a.weights.begins, a.weights.begins != nullptr ? a.weights.count + 1 : 0)};
  }
  std::array<MemoryRange, 1> writes() const {
    return {{{a.workspace, RoundedRows::bytes(a.x_rows, a.segments, a.k)}}};
  }
  BANYAN_HOST_DEVICE int64_t parts() const {  // of a row
    return RoundedRows::column_tiles_of(a.k) * (kTile / kColumns);
  }
  Shape shape() const { return {.blocks = 1 + a.x_rows * a.segments * parts() / kBlockThreads}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    RoundedRows to = rounded_rows(a);
    for_all(block, rows_read(a) * a.segments * parts(), [&](int64_t i) {
      int64_t at = quotient(i, parts()), first = (i - at * parts()) * kColumns;
      int64_t row = quotient(at, a.segments), segment = at - row * a.segments;
      const float* x = a.x + row * a.x_stride + segment * a.segment_stride + first;
      to.store_eight(row, segment, first, rounded_eight<BFloat16>(x, a.k - first));
    });
  }
};

// A product, and what activates its gates and ups, if anything does.
struct TensorProduct {
  GemmArgs args;
  SiluMul activation = {};

  BANYAN_HOST_DEVICE bool is_gated() const { return activation.a.y != nullptr; }
};

// Kernels that activate multiply tiles of eight gates, then the eight ups that belong to them, and
// so on: the same thread sums up a gate and its up.
inline constexpr int64_t kGateRows = 8;
// The gate and the up, or the output, of feature j of such tiles.
BANYAN_HOST_DEVICE constexpr int64_t gate_of(int64_t j) {
  return j / (2 * kGateRows) * kGateRows + j % kGateRows;
}

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

// The rows of y that a matrix computes.
struct MatrixRows {
  int64_t begin, end;
};
BANYAN_HOST_DEVICE inline MatrixRows matrix_rows(const GemmArgs& a, int64_t matrix) {
  const GemmGroup& w = a.weights;
  if (matrix >= w.count) return {0, 0};
  if (w.begins == nullptr) return {0, a.x_rows};
  return {w.begins[matrix], w.begins[matrix + 1]};
}

// Calls body(OutputTile) for every tile that worker `index` of `count` computes, on all lanes of a
// warp. They look at a matrix each, since many experts may have no rows (lane_sums.h).
template <class Warp, class Body>
BANYAN_DEVICE void for_output_tiles(const Warp& warp, const GemmArgs& a, int64_t index,
                                    int64_t count, int64_t tile_rows, int64_t tile_features,
                                    const Body& body) {
  int64_t across = quotient(a.n + tile_features - 1, tile_features);
  auto tiles_down = [&](const MatrixRows& rows) {
    return quotient(rows.end - rows.begin + tile_rows - 1, tile_rows);
  };
  int64_t next = index;  // counted from the first tile of the warp's matrices
  for (int64_t first = 0; first < a.weights.count; first += kWarp) {
    auto sums = warp.sums_to([&](int lane) {
      return static_cast<int32_t>(tiles_down(matrix_rows(a, first + lane)) * across);
    });
    for (; next < last_sum(warp, sums); next += count) {
      int lane = lane_above(warp, sums, next);  // whose matrix has the tile
      int64_t before = sum_before(warp, sums, lane);
      MatrixRows rows = matrix_rows(a, first + lane);
      TilePlace place = tile_place(next - before, tiles_down(rows), across);
      int64_t row = rows.begin + place.down * tile_rows;
      body(OutputTile{first + lane, row, least(tile_rows, rows.end - row),
                      place.across * tile_features});
    }
    next -= last_sum(warp, sums);
  }
}

// ---- kernels on a GPU ----

// Whether a block can have so many registers of a thread: each quarter of a multiprocessor has
// 16,384 for every fourth warp.
constexpr bool fits_registers(int threads, int registers) {
  int warps_of_quarter = (threads / kWarp + 3) / 4;
  return warps_of_quarter * kWarp * registers <= 16384;
}

// Who sums up the segments of the columns: there is only one; a block all of them; or a cluster of
// blocks, one each, and then each block adds up a part of the features over distributed shared
// memory.
enum class Segments { kOne, kOfBlock, kOfCluster };

// Sharers: blocks of a cluster that multiply the same rows of x, by features of their own. Each
// fetches a part of the rows for all of them.
template <class T, int Rows, int Groups, Segments Of, int Sharers = 1>
struct TensorGemm {
  using Element = T;                                    // of weights and of rounded rows
  static constexpr int kRows = Rows, kGroups = Groups;  // of x; of threads that multiply
  static constexpr int kSharers = Sharers;
  static constexpr bool kSplit = Of == Segments::kOfCluster;
  static constexpr bool kAdds = Of == Segments::kOfBlock;
  static constexpr bool kGathers = !kSplit && kSharers == 1;  // or never: rows of experts
  static_assert(kSharers == 1 || (!kSplit && kRows % (8 * kSharers) == 0));
  static constexpr int kFeatures = kGroups * static_cast<int>(kTile);
  static constexpr int kMultipliers = kGroups * kWarpgroup;
  // One fetches whole tiles, all of them gather rows of experts, for which nothing is split.
  static constexpr int kFetchers = kSplit && kGroups == 1 ? kWarp : kWarpgroup;
  static constexpr int kThreads = kMultipliers + kFetchers;
  static constexpr int kBlocksPerMultiprocessor = kGroups > 1 ? 1 : 2;  // or more

  static constexpr uint32_t kUnitBytes = kTileBytes, kWeightBytes = kGroups * kUnitBytes;
  static constexpr bool kIntegers = false;
  static constexpr int kBlocks = 1;  // of rows of x
  static constexpr uint32_t kBlockBytes = kRows * kTileRowBytes;
  static constexpr uint32_t kStageBytes = kWeightBytes + kBlockBytes;
  // Of a split tile: sums of the segments of this block's part of the features, [segments,
  // features, rows]. Loads of a warp touch different banks. Those of many rows lie in stages that
  // all blocks have multiplied.
  static constexpr int kSumsStride = kRows + 2;
  static constexpr bool kSumsInStages = kRows > 32;
  static constexpr uint32_t kSumsBytes = kSplit ? kFeatures * kSumsStride * 4 : 0;
  static constexpr uint32_t kOwnSumsBytes = kSumsInStages ? 0 : kSumsBytes;
  // Clusters do not fill every multiprocessor, so that three of their blocks share one. Of its
  // shared memory each has 1 KB for the GPU and what comes after the stages, of which there are
  // eight at most.
  static constexpr uint32_t kRestBytes = 1024 + kRows * 4 + kOwnSumsBytes + (2 * 8 + 1) * 8;
  static constexpr uint32_t kRingBytes = kGroups > 1 ? 192 * 1024
                                         : kSplit    ? 228 * 1024 / 3 - kRestBytes
                                                     : 96 * 1024;
  static constexpr int kStages = static_cast<int>(least(8, kRingBytes / kStageBytes));
  // After the stages: rows of x, sums, barriers.
  static constexpr uint32_t kSources = kStages * kStageBytes;
  static constexpr uint32_t kSums = kSumsInStages ? 0 : kSources + kRows * 4;
  static constexpr uint32_t kBarriers = kSources + kRows * 4 + kOwnSumsBytes;
  static constexpr uint32_t kExchange = kBarriers + 2 * kStages * 8;
  static constexpr uint32_t kSharedBytes = kExchange + 8;
  static_assert(kRows % 8 == 0 && kStages >= 3 && kSums + kSumsBytes <= kBarriers);
  static_assert(kBlocksPerMultiprocessor * (kSharedBytes + 1024) <= 228 * 1024);

  // Of a thread: at the start, then, where warpgroups exchange them, of those that multiply and of
  // those that fetch.
  static constexpr bool kExchanges = kGroups > 1;
  static constexpr int kRegisters = kExchanges ? 168 : 128;
  static constexpr int kMultiplyRegisters = 216, kFetchRegisters = 72;
  static_assert(fits_registers(kThreads, kRegisters));
  static_assert(!kExchanges || kMultipliers * kMultiplyRegisters + kFetchers * kFetchRegisters <=
                                   kThreads * kRegisters);
  // Of many rows, activations in a kernel of their own are as fast: here tensor cores would wait.
  static constexpr bool kActivates = kGroups == 1 && kSharers == 1;

  GemmArgs a;
  int segments;  // of the columns
  SiluMul activation = {};

  BANYAN_HOST_DEVICE bool is_gated() const { return kActivates && activation.a.y != nullptr; }

  BANYAN_HOST_DEVICE static constexpr int64_t stages_of(int64_t k) { return tiles_of(k); }
  BANYAN_HOST_DEVICE static constexpr uint32_t unit_bytes(const GemmArgs&) { return kUnitBytes; }
  int cluster() const { return kSplit ? segments : kSharers; }

  // As many blocks as have tiles, or as fill the GPU: only it knows how many tiles experts have.
  // A cluster computes one tile: its blocks exchange sums once.
  int64_t blocks(int64_t multiprocessors) const {
    constexpr int64_t kAcross = kFeatures * kSharers;
    int64_t tiles =
        a.weights.count * ((a.x_rows + kRows - 1) / kRows) * ((a.n + kAcross - 1) / kAcross);
    if (kSplit) return tiles * segments;
    int64_t resident = multiprocessors * kBlocksPerMultiprocessor / kSharers;
    return (a.weights.begins != nullptr ? resident : least(tiles, resident)) * kSharers;
  }
};

// The rows of a matrix, or likely so: only the GPU knows how many experts have.
BANYAN_HOST_DEVICE inline int64_t likely_rows(const GemmArgs& a) {
  constexpr int64_t kLikelyTopK = 8;
  const GemmGroup& w = a.weights;
  if (w.begins == nullptr) return a.x_rows;
  return quotient(a.x_rows * (a.x_index != nullptr ? kLikelyTopK : 1) + w.count - 1, w.count);
}

// How many rows a tile should have: all of a matrix, but some more of experts. Many of those have
// more than is likely, and an expert whose rows do not fit in one tile reads its weights twice.
BANYAN_HOST_DEVICE inline int64_t tile_rows_wanted(const GemmArgs& a) {
  int64_t rows = likely_rows(a);
  return a.weights.begins == nullptr ? rows : rows + least(rows / 2 + 2, 24);
}

// So many rows are one tile of a single group.
inline constexpr int64_t kFewRows = 64;

// Whether the kernel of a product of gates and ups activates them: few rows, whole tiles of gates,
// and blocks of a cluster that each add up whole gates and ups.
inline bool may_activate(const GemmArgs& a) {
  const GemmGroup& w = a.weights;
  bool is_one = w.count == 1 && a.segments == 1;
  bool whole_pairs = kTile / gemm_segments(w.count, a.n, a.k) >= 2 * kGateRows;
  return (w.begins != nullptr || (is_one && whole_pairs)) && a.n % (2 * kTile) == 0 &&
         tile_rows_wanted(a) <= kFewRows;
}

// How long tiles of so many rows, two groups each, take a GPU, in units of a row's products:
// rounds of one tile for each multiprocessor, each of which also begins and ends. Experts hardly
// ever have whole tiles of rows.
inline int64_t time_of_tiles(const GemmArgs& a, int64_t rows, int64_t multiprocessors) {
  constexpr int64_t kFeatures = 2 * kTile, kBeginAndEnd = 24;
  int64_t likely = likely_rows(a), across = (a.n + kFeatures - 1) / kFeatures;
  int64_t tiles = a.weights.begins == nullptr
                      ? a.weights.count * ((likely + rows - 1) / rows) * across
                      : a.weights.count * (2 * likely + rows) * across / (2 * rows);
  return (tiles + multiprocessors - 1) / multiprocessors * (rows + kBeginAndEnd);
}

// Calls launch(kernel, blocks) with the TensorGemm for the rows: few read the weights as fast as
// memory gives them, many reuse them and are shared by two blocks. A Gpu has multiprocessors, and
// clusters<G>(size): how many of such clusters run at a time. All of it is what was fastest on an
// H200, or nearly so (tools/gpu/price.cu).
template <class T, class Gpu, class Launch>
class GemmLauncher {
 public:
  GemmLauncher(const TensorProduct& product, const Gpu& gpu, const Launch& launch)
      : a_(product.args),
        activation_(product.activation),
        gpu_(gpu),
        launch_(launch),
        segments_(gemm_segments(a_.weights.count, a_.n, a_.k)),
        rows_(tile_rows_wanted(a_)),
        dense_(a_.weights.begins == nullptr) {}

  void run() const {
    if (rows_ <= kFewRows) {
      return dense_ && segments_ > 1 ? run_few<Segments::kOfCluster>()
                                     : run_few<Segments::kOfBlock>();
    }
    if (rows_ <= 128) {
      if (!dense_ || segments_ == 1) return run<128, 2, Segments::kOfBlock>();
      if (run_clusters_once()) return;
      return run<64, 1, Segments::kOfBlock, 2>();
    }
    int64_t time = time_of(128);
    bool of_192 = dense_ && time_of(192) < time;
    if (of_192) time = time_of(192);
    if (segments_ == 1 && time_of(256) < time) return run_many<256, Segments::kOne>();
    if (of_192) return run<192, 2, Segments::kOfBlock, 2>();
    run_many<128, Segments::kOfBlock>();
  }

 private:
  template <int Rows, int Groups, Segments Of, int Sharers = 1>
  void run() const {
    TensorGemm<T, Rows, Groups, Of, Sharers> kernel{a_, segments_, activation_};
    launch_(kernel, kernel.blocks(gpu_.multiprocessors));
  }

  template <Segments Of>
  void run_few() const {
    // Tiles of 16 rows read weights faster where a block has all segments.
    if (Of == Segments::kOfCluster && rows_ <= 8) return run<8, 1, Segments::kOfCluster>();
    if (rows_ <= 16) return run<16, 1, Of>();
    if (rows_ <= 32) return run<32, 1, Of>();
    run<64, 1, Of>();
  }

  // Of experts, none are shared.
  template <int Rows, Segments Of>
  void run_many() const {
    dense_ ? run<Rows, 2, Of, 2>() : run<Rows, 2, Of>();
  }

  // By clusters that all run at a time: a second round would take as long as the first.
  bool run_clusters_once() const {
    using Split = TensorGemm<T, 128, 2, Segments::kOfCluster>;
    Split split{a_, segments_};
    int64_t clusters = split.blocks(gpu_.multiprocessors) / segments_;
    if (clusters > gpu_.template clusters<Split>(segments_)) return false;
    launch_(split, clusters * segments_);
    return true;
  }

  int64_t time_of(int64_t rows) const { return time_of_tiles(a_, rows, gpu_.multiprocessors); }

  const GemmArgs& a_;
  const SiluMul& activation_;
  const Gpu& gpu_;
  const Launch& launch_;
  int segments_;
  int64_t rows_;
  bool dense_;
};

template <class T, class Gpu, class Launch>
void launch_tensor_gemm(const TensorProduct& product, const Gpu& gpu, const Launch& launch) {
  GemmLauncher<T, Gpu, Launch>(product, gpu, launch).run();
}

}  // namespace banyan::cuda
