// How products fill their stages of shared memory: weights, then rows of x. A stage has the next
// columns of both, of weights a unit for each 64 features.
//
// A layout G has, for this,
//   kRows, kFeatures, kGroups (of 64 features), kMultipliers, kStages, kSources, kSplit, kSharers
//   segments           of the columns
//   stages_of(k)       stages of k columns
//   kUnitBytes         from one unit to the next in a stage
//   unit_bytes(args)   of a unit, a multiple of 16
//   kWeightBytes       where rows of x begin: kBlocks of kBlockBytes, with 128 bytes of each row
//   kIntegers          whether steps of the rows follow, at kRowSteps
//   kActivates         whether is_gated() may be, and a tile have gates and ups
// and a class for rows that follow each other:
//   Rows(args, tile, stage)           of a tile, from a stage of its columns on
//   bytes()                           of a stage
//   fetch(ring, stage)                begins to fetch the next columns
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/product.cuh"
#include "kernels/cuda/device/ring.cuh"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// Whether rows of x are gathered: those of experts are.
__device__ inline bool gathers(const GemmArgs& a) {
  return a.weights.begins != nullptr;
}

// Calls body(OutputTile, first segment, its end) for what this block computes.
template <class G, class Body>
__device__ void for_block_tiles(const G& g, const Body& body) {
  if constexpr (G::kSplit) {
    int64_t cluster = quotient(blockIdx.x, g.segments), clusters = quotient(gridDim.x, g.segments);
    int rank = static_cast<int>(cluster_rank());
    for_output_tiles(Warp(), g.a, cluster, clusters, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) { body(tile, rank, rank + 1); });
  } else if constexpr (G::kSharers > 1) {
    int64_t cluster = blockIdx.x / G::kSharers, clusters = gridDim.x / G::kSharers;
    int64_t own = cluster_rank() * G::kFeatures;
    for_output_tiles(Warp(), g.a, cluster, clusters, G::kRows, G::kSharers * G::kFeatures,
                     [&](OutputTile tile) {
                       tile.feature += own;  // of which there may be none
                       body(tile, 0, g.segments);
                     });
  } else {
    for_output_tiles(Warp(), g.a, blockIdx.x, gridDim.x, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) { body(tile, 0, g.segments); });
  }
}

// The weights of a tile, whose units follow each other in memory, or those of gates and of ups do.
template <class G>
class WeightSource {
 public:
  __device__ WeightSource(const G& g, const OutputTile& tile, int64_t stage)
      : unit_bytes_(G::unit_bytes(g.a)) {
    const GemmArgs& a = g.a;
    int64_t first = tile.feature / kTile, stages = G::stages_of(a.k), in_unit = 0;
    if constexpr (G::kActivates) {
      if (g.is_gated()) {  // half a tile of gates, and of ups
        in_unit = first % 2 * (kTileBytes / 2);
        first /= 2;
        to_ups_ = quotient(a.n, 2 * kTile) * stages * kTileBytes;
      }
    }
    next_group_ = stages * unit_bytes_;
    from_ = static_cast<const std::byte*>(a.weights.weight) +
            tile.matrix * a.weights.weight_stride + (first * stages + stage) * unit_bytes_ +
            in_unit;
    groups_ = static_cast<int>(least(G::kGroups, tiles_of(a.n) - first));
    if (G::kSharers > 1 && groups_ < 0) groups_ = 0;
    policy_ = cache_policy(tile_rows_wanted(a) <= G::kRows);
  }

  // Begins to fetch the next columns. `more` bytes of other copies fill the stage, too.
  __device__ void fetch(const Ring<G>& ring, uint32_t stage, uint32_t more) {
    uint32_t full = ring.full(stage), to = ring.at(stage);
    barrier_arrive_expecting(full, static_cast<uint32_t>(groups_) * unit_bytes_ + more);
    if constexpr (G::kActivates) {
      if (to_ups_ > 0) return fetch_gates(to, full);
    }
    const std::byte* from = from_;
#pragma unroll
    for (int i = 0; i < G::kGroups; ++i, to += G::kUnitBytes, from += next_group_) {
      if (i < groups_) copy_bulk(to, from, unit_bytes_, full, policy_);
    }
    from_ += unit_bytes_;
  }

 private:
  // Eight rows of gates, of ups, and so on.
  __device__ void fetch_gates(uint32_t to, uint32_t full) {
    constexpr uint32_t kBytes = kGateRows * kTileRowBytes;
    const std::byte* from = from_;
#pragma unroll
    for (int i = 0; i < kTile / kGateRows / 2; ++i, to += 2 * kBytes, from += kBytes) {
      copy_bulk(to, from, kBytes, full, policy_);
      copy_bulk(to + kBytes, from + to_ups_, kBytes, full, policy_);
    }
    from_ += unit_bytes_;
  }

  const std::byte* from_;  // of the first group
  int64_t next_group_;     // bytes
  int64_t to_ups_ = 0;     // bytes from gates to their ups, if a tile has both
  uint32_t unit_bytes_;
  int groups_;
  uint64_t policy_;
};

// The warp that fetches weights, and rows of x that follow each other: one of its threads does.
template <class G, class Rows>
class StageFetcher {
 public:
  __device__ StageFetcher(const G& g, unsigned char* shared)
      : g_(g), ring_{shared_address(shared)} {}

  __device__ void run() {
    auto stages = static_cast<int>(quotient(G::stages_of(g_.a.k), g_.segments));  // of a segment
    for_block_tiles(g_, [&](const OutputTile& tile, int begin, int end) {
      fetch(tile, begin * stages, (end - begin) * stages);
    });
  }

 private:
  __device__ static bool copies() { return threadIdx.x % kWarp == 0; }

  // `count` stages of columns from the first on.
  __device__ void fetch(const OutputTile& tile, int first, int count) {
    Rows rows(g_.a, tile, first);
    WeightSource<G> weights(g_, tile, first);
    int ahead = 0;  // stages whose weights are under way
    if (is_first_) {
      ahead = min(G::kStages, count);
#pragma unroll 1
      for (int i = 0; i < ahead && copies(); ++i) {
        weights.fetch(ring_, static_cast<uint32_t>(i), rows.bytes());
      }
      wait_for_earlier_kernels();  // for which weights do not wait
      is_first_ = false;
    }
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      if (copies()) {
        if (i >= ahead) {
          barrier_wait(ring_.empty(ring_.stage), ring_.parity ^ 1);
          weights.fetch(ring_, ring_.stage, rows.bytes());
        }
        rows.fetch(ring_, ring_.stage);
      }
      ring_.next();
    }
  }

  const G& g_;
  Ring<G> ring_;
  bool is_first_ = true;
};

// Where the columns of a stage lie in the workspace, of all rows of x.
template <class G>
struct StageRows {
  __device__ StageRows(const GemmArgs& a, const OutputTile& tile, int64_t stage) {
    int64_t segment = tile.matrix * a.weights.segment_step;
    if constexpr (G::kIntegers) {
      QuantisedRows rows = quantised_rows(a);
      blocks = rows.codes_of(segment, stage);
      steps = reinterpret_cast<const std::byte*>(rows.steps_of(segment, stage));
      groups = static_cast<uint32_t>(rows.chunk_groups());
      next_steps = rows.chunk_steps() * int64_t{sizeof(float)};
    } else {
      blocks = rounded_rows(a).row(0, segment, stage * G::kBlocks);
    }
    next_block = a.x_rows * kTileRowBytes;
  }

  __device__ void next() {
    blocks += G::kBlocks * next_block;
    steps += next_steps;
  }

  const std::byte* blocks;           // [kBlocks, rows] of 128 bytes
  const std::byte* steps = nullptr;  // of integers: [rows / 8, groups, 8] floats
  int64_t next_block, next_steps = 0;
  uint32_t groups = 0;
};

// Rows of experts, which may lie anywhere: all threads of a warpgroup gather some each.
template <class G>
class RowGatherer {
 public:
  __device__ RowGatherer(const GemmArgs& a, const OutputTile& tile) : rows_(a, tile, 0) {}

  __device__ void gather(uint32_t to, const int* sources, int thread) {
    constexpr int kParts = G::kBlocks * 8;  // of a row, 16 bytes each
    int block = thread % kParts / 8;
    auto chunk = static_cast<uint32_t>(thread % 8);
    uint32_t block_to = to + G::kWeightBytes + static_cast<uint32_t>(block) * G::kBlockBytes;
    const std::byte* from = rows_.blocks + block * rows_.next_block;
#pragma unroll 4
    for (int r = thread / kParts; r < G::kRows; r += kWarpgroup / kParts) {
      int source = sources[r];
      copy_16(block_to + swizzled(static_cast<uint32_t>(r), chunk * 16),
              from + int64_t{source} * kTileRowBytes +
                  swizzled_chunk(static_cast<uint32_t>(source), chunk));
    }
    if constexpr (G::kIntegers) gather_steps(to + G::kRowSteps, sources, thread);
    rows_.next();
  }

 private:
  __device__ void gather_steps(uint32_t to, const int* sources, int thread) {
    for (int r = thread; r < G::kRows; r += kWarpgroup) {
      int source = sources[r];
      for (uint32_t group = 0; group < rows_.groups; ++group) {
        auto at = [&](uint32_t row) {
          return ((row / 8 * rows_.groups + group) * 8 + row % 8) * 4;
        };
        copy_4(to + at(static_cast<uint32_t>(r)), rows_.steps + at(static_cast<uint32_t>(source)));
      }
    }
  }

  StageRows<G> rows_;
};

// A thread of those that gather rows of x.
template <class G>
class StageGatherer {
 public:
  __device__ StageGatherer(const G& g, unsigned char* shared)
      : g_(g),
        sources_(reinterpret_cast<int*>(shared + G::kSources)),
        filler_(shared_address(shared)) {}

  __device__ void run() {
    auto stages = static_cast<int>(G::stages_of(g_.a.k));
    for_block_tiles(g_, [&](const OutputTile& tile, int, int) {
      find_sources<G::kRows>(g_.a, tile, filler_.thread(), sources_);
      WeightSource<G> weights(g_, tile, 0);
      RowGatherer<G> rows(g_.a, tile);
      for (int i = 0; i < stages; ++i) {
        filler_.wait_empty();
        uint32_t stage = filler_.ring().stage;
        if (filler_.thread() == 0) weights.fetch(filler_.ring(), stage, 0);
        rows.gather(filler_.ring().at(stage), sources_, filler_.thread());
        filler_.filled_stage();
      }
    });
    filler_.finish();
  }

 private:
  const G& g_;
  int* sources_;
  RingFiller<G> filler_;
};

}  // namespace banyan::cuda::device
