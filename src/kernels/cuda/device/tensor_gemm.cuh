// Products of bf16 or f16 by wgmma (kernels/cuda/tensor_gemm.h has what they compute). Features are
// the 64 rows of an instruction and rows of x its columns, whatever their number.
//
// A block has a warpgroup that fetches and warpgroups that multiply, 64 features each. They hand
// stages of shared memory to each other: 64 columns of the features and of the rows of x. One
// thread fetches them by bulk copies, of many rows a part for each block that shares them; rows of
// experts, which may lie anywhere, are gathered by all threads. The floors are n k 2 bytes of
// weights and 2 M n k operations.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/product.cuh"
#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/stage_fetcher.cuh"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// Rows of x that follow each other: all of a tile, or a part for all blocks that share them.
template <class G>
class TileRowSource {
 public:
  __device__ TileRowSource(const GemmArgs& a, const OutputTile& tile, int64_t column_tile) {
    RoundedRows rounded = rounded_rows(a);
    constexpr int kPart = G::kRows / G::kSharers;
    int first = G::kSharers > 1 ? static_cast<int>(cluster_rank()) * kPart : 0;
    rows_ = static_cast<uint32_t>(tile.row_count);
    int count = min(kPart, static_cast<int>(tile.row_count) - first);
    bytes_ = count > 0 ? static_cast<uint32_t>(count) * kTileRowBytes : 0;
    place_ = G::kWeightBytes + static_cast<uint32_t>(first) * kTileRowBytes;
    from_ = rounded.row(tile.row + first, tile.matrix * a.weights.segment_step, column_tile);
    next_columns_ = rounded.rows * kTileRowBytes;
  }

  // Of all blocks.
  __device__ uint32_t bytes() const { return rows_ * kTileRowBytes; }
  __device__ void fetch(const Ring<G>& ring, uint32_t stage) {
    uint32_t to = ring.at(stage) + place_;
    if constexpr (G::kSharers == 1) {
      copy_bulk(to, from_, bytes_, ring.full(stage));
    } else if (bytes_ > 0) {
      copy_bulk_to_blocks(to, from_, bytes_, ring.full(stage), (1 << G::kSharers) - 1);
    }
    from_ += next_columns_;
  }

 private:
  const std::byte* from_;
  int64_t next_columns_;           // bytes
  uint32_t rows_, bytes_, place_;  // of the tile; that this block fetches; in a stage
};

// A warpgroup that multiplies its 64 features of every tile.
template <class G>
class TileMultiplier {
 public:
  static constexpr int kValues = G::kRows / 2;  // of a thread
  static constexpr bool kScaled = kScalesRows<typename G::Element>;

  __device__ TileMultiplier(const G& g, unsigned char* shared)
      : g_(g),
        sums_(reinterpret_cast<float*>(shared + G::kSums)),
        ring_{shared_address(shared)},
        gathers_(gathers(g.a)) {}

  __device__ void run() {
    if constexpr (kScaled) wait_for_earlier_kernels();  // of which one writes the rows' factors
    if constexpr (G::kSplit) cluster_wait();            // until all have initialised their barriers
    for_block_tiles(g_, [&](const OutputTile& tile, int begin, int end) {
      float sums[kValues];
      if constexpr (G::kAdds) {
        float total[kValues] = {};
        for (int s = begin; s < end; ++s) {
          add_segment(sums);
#pragma unroll
          for (int i = 0; i < kValues; ++i) total[i] = __fadd_rn(total[i], sums[i]);
        }
        put(tile, total);
      } else {
        if constexpr (G::kSplit) expect_segments(tile);
        add_segment(sums);
        G::kSplit ? store_split(tile, sums) : put(tile, sums);
      }
    });
  }

 private:
  __device__ void add_segment(float (&sums)[kValues]) {
    int64_t tiles = quotient(tiles_of(g_.a.k), g_.segments);
    for (int64_t c = 0; c < tiles; ++c) {
      ring_.wait_full();
      if (G::kGathers && gathers_) fence_shared();
      uint64_t weights = tile_descriptor(ring_.at(ring_.stage) + group() * kTileBytes);
      uint64_t rows = tile_descriptor(ring_.at(ring_.stage) + G::kWeightBytes);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < kTile / 16; ++step) {
        Wgmma<G::kRows, typename G::Element>::shared(sums, weights + step * kDescriptorStep,
                                                     rows + step * kDescriptorStep,
                                                     c > 0 || step > 0 ? 1 : 0);
      }
      wgmma_commit();
      if (c > 0) {
        wgmma_wait<1>();
        release(ring_.back(1));
      }
      ring_.next();
    }
    wgmma_wait_for(sums);
    release(ring_.back(1));
  }

  __device__ void put(const OutputTile& tile, const float (&sums)[kValues]) const {
    if (g_.is_gated()) return put_activated<kScaled>(g_, tile, sums);
    put_outputs<kScaled>(g_.a, tile, own_features(), sums);
  }

  // For all blocks that write to the stage.
  __device__ void release(uint32_t stage) const {
    if constexpr (G::kSharers == 1) return ring_.release(stage);
    uint32_t lane = threadIdx.x % kWarp;
    if (lane < G::kSharers) barrier_arrive_at_block(ring_.empty(stage), lane);
  }

  // By one thread: how much the others will send.
  __device__ void expect_segments(const OutputTile& tile) const {
    if (threadIdx.x > 0) return;
    auto pairs = static_cast<uint32_t>(tile.row_count + 1) / 2;  // of rows
    barrier_arrive_expecting(exchange(), pairs * G::kFeatures * sizeof(float2));
  }
  // Each block of the cluster adds up the segments of its part of the features, which all of them
  // send it.
  __device__ void store_split(const OutputTile& tile, const float (&sums)[kValues]) {
    int part = G::kFeatures / g_.segments, rows = static_cast<int>(tile.row_count);
    int rank = static_cast<int>(cluster_rank()), row = accumulator_column(0);
    if constexpr (G::kSumsInStages) {
      cluster_arrive_relaxed();
      cluster_wait();
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // of a thread's features
      int feature = own_features() + accumulator_row(2 * half);
      int owner = static_cast<int>(quotient(feature, part)), of_owner = feature - owner * part;
      float* sums_there = sums_ + (rank * part + of_owner) * G::kSumsStride + row;
      uint32_t to = address_in_block(shared_address(sums_there), owner);
      uint32_t barrier = address_in_block(exchange(), owner);
#pragma unroll
      for (int i = 2 * half; i < kValues; i += 4, to += 8 * sizeof(float)) {
        if (row + i / 4 * 8 < rows) store_2_to_block(to, sums[i], sums[i + 1], barrier);
      }
    }
    barrier_wait(exchange(), 0);
    int outputs = g_.is_gated() ? part / 2 : part;
    for (int i = static_cast<int>(threadIdx.x); i < rows * outputs; i += G::kMultipliers) {
      row = static_cast<int>(quotient(i, outputs));
      int output = i - row * outputs;
      if (g_.is_gated()) {
        int gate = output / int{kGateRows} * 2 * int{kGateRows} + output % int{kGateRows};
        GatedOutputs<G, kScaled>(g_, tile, rank * part + gate)
            .put(row, split_sum(gate, row), split_sum(gate + int{kGateRows}, row));
      } else {
        put_output<kScaled>(g_.a, tile, row, rank * part + output, split_sum(output, row));
      }
    }
  }

  // Over the segments, of a feature of this block's part.
  __device__ float split_sum(int feature, int row) const {
    int part = G::kFeatures / g_.segments;
    float sum = 0;
#pragma unroll
    for (int s = 0; s < kSegmentsMax; ++s) {
      if (s >= g_.segments) break;
      sum = __fadd_rn(sum, sums_[(s * part + feature) * G::kSumsStride + row]);
    }
    return sum;
  }

  __device__ uint32_t exchange() const { return ring_.shared + G::kExchange; }
  __device__ static uint32_t group() { return threadIdx.x / 128; }
  __device__ static int own_features() { return static_cast<int>(group() * kTile); }  // the first

  const G& g_;
  float* sums_;
  Ring<G> ring_;
  bool gathers_;
};

template <class G>
__device__ void fetch_tiles(const G& g, unsigned char* shared) {
  if (G::kGathers && gathers(g.a)) {
    if constexpr (G::kGathers) StageGatherer<G>(g, shared).run();
  } else if (threadIdx.x < G::kMultipliers + kWarp) {
    StageFetcher<G, TileRowSource<G>>(g, shared).run();
    __syncwarp();
  }
  if constexpr (G::kSplit) {  // as those that multiply do
    cluster_wait();
    if constexpr (G::kSumsInStages) {
      cluster_arrive_relaxed();
      cluster_wait();
    }
  }
}

template <class G>
__global__ __maxnreg__(G::kRegisters) void run_tensor_gemm(const __grid_constant__ G g) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  let_next_kernel_begin();
  // A stage's weights arrive by themselves.
  if (threadIdx.x == 0) {
    init_ring<G>(shared_address(bytes), gathers(g.a) ? kWarpgroup + 1 : 1,
                 G::kSharers * G::kGroups);
    if constexpr (G::kSplit) {
      barrier_init(shared_address(bytes) + G::kExchange, 1);
      fence_barrier_init();
    }
  }
  if constexpr (G::kSplit || G::kSharers > 1) cluster_arrive_relaxed();
  G::kSharers > 1 ? cluster_wait() : __syncthreads();
  if (gathers(g.a)) wait_for_earlier_kernels();  // which write where experts begin
  if (threadIdx.x >= G::kMultipliers) {
    if constexpr (G::kExchanges) release_registers<G::kFetchRegisters>();
    fetch_tiles(g, bytes);
  } else {
    if constexpr (G::kExchanges) take_registers<G::kMultiplyRegisters>();
    TileMultiplier<G>(g, bytes).run();
  }
  wait_for_earlier_kernels();  // also where there was nothing to do: the next kernel asks only this
  // Others may still copy to this block, and arrive at its barriers, which only a release orders.
  if constexpr (G::kSharers > 1) {
    cluster_arrive();
    cluster_wait();
  }
}

// What launch_tensor_gemm asks a GPU.
struct GemmGpu {
  int64_t multiprocessors;

  template <class G>
  int64_t clusters(int size) const {
    static thread_local int64_t known[kSegmentsMax + 1] = {};  // one more: asking takes long
    if (known[size] == 0) known[size] = resident_clusters(run_tensor_gemm<G>, size) + 1;
    return known[size] - 1;
  }
};

template <class T>
void multiply_tiles(const TensorProduct& product) {
  Queue& queue = queue_of(product.args.launch.queue);
  launch_tensor_gemm<T>(product, GemmGpu{queue.multiprocessors()},
                        [&]<class G>(const G& kernel, int64_t blocks) {
                          launch_early(queue, run_tensor_gemm<G>, kernel, blocks, kernel.cluster());
                        });
}

}  // namespace banyan::cuda::device
