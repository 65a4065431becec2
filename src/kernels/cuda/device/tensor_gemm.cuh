// Products of bf16 by wgmma (kernels/cuda/tensor_gemm.h has what they compute). Features are the
// 64 rows of an instruction and rows of x its columns, whatever their number.
//
// A block has one warp that fetches and warpgroups that multiply, 64 features each. They hand
// stages of shared memory to each other: 64 columns of the features, one bulk copy for each tile,
// and of the rows of x, which may lie anywhere. The floors are n k 2 bytes of weights and 2 M n k
// operations.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/product.cuh"
#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/ring.cuh"
#include "kernels/cuda/tensor_gemm.h"

namespace banyan::cuda::device {

// Calls body(OutputTile, first segment, its end) for what this block computes.
template <class G, class Body>
__device__ void for_block_tiles(const G& g, const Body& body) {
  if constexpr (G::kSplit) {
    int64_t cluster = quotient(blockIdx.x, g.segments), clusters = quotient(gridDim.x, g.segments);
    int rank = static_cast<int>(cluster_rank());
    for_output_tiles(g.a, cluster, clusters, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) { body(tile, rank, rank + 1); });
  } else {
    for_output_tiles(g.a, blockIdx.x, gridDim.x, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) { body(tile, 0, g.segments); });
  }
}

// A thread of the warp that fetches.
template <class G>
class TileFetcher {
 public:
  __device__ TileFetcher(const G& g, unsigned char* shared)
      : g_(g),
        sources_(reinterpret_cast<int*>(shared + G::kSources)),
        filler_(shared_address(shared)),
        rounded_(rounded_rows(g.a)) {}

  __device__ void run() {
    int64_t tiles = quotient(tiles_of(g_.a.k), g_.segments);  // of a segment
    for_block_tiles(g_, [&](const OutputTile& tile, int begin, int end) {
      if (filler_.filled() == 0) begin_with_weights(tile, begin * tiles, end * tiles);
      find_sources<G::kRows>(g_.a, tile, sources_);
      for (int64_t c = begin * tiles; c < end * tiles; ++c) fetch(tile, c);
    });
    filler_.finish();
  }

 private:
  __device__ static int lane() { return RingFiller<G>::lane(); }

  // Weights do not wait for the kernel before this one, which rounds x.
  __device__ void begin_with_weights(const OutputTile& tile, int64_t begin, int64_t end) {
    ahead_ = least(G::kStages, end - begin);
    for (int64_t i = 0; i < ahead_; ++i) {
      if (lane() == 0) fetch_weights(tile, begin + i, static_cast<uint32_t>(i));
    }
    wait_for_earlier_kernels();
  }

  __device__ void fetch(const OutputTile& tile, int64_t column_tile) {
    filler_.wait_empty();
    if (lane() == 0 && filler_.filled() >= ahead_) {
      fetch_weights(tile, column_tile, filler_.ring().stage);
    }
    fetch_rows(tile, column_tile);
    filler_.filled_stage();
  }

  __device__ void fetch_weights(const OutputTile& tile, int64_t column_tile, uint32_t stage) {
    const GemmArgs& a = g_.a;
    const Ring<G>& ring = filler_.ring();
    const auto* matrix =
        static_cast<const std::byte*>(a.weights.weight) + tile.matrix * a.weights.weight_stride;
    int64_t first = tile.feature / kTile, columns = tiles_of(a.k);
    int64_t count = least(G::kGroups, tiles_of(a.n) - first);
    barrier_arrive_expecting(ring.full(stage), static_cast<uint32_t>(count * kTileBytes));
    for (int64_t i = 0; i < count; ++i) {
      copy_bulk(ring.at(stage) + static_cast<uint32_t>(i * kTileBytes),
                matrix + ((first + i) * columns + column_tile) * kTileBytes, kTileBytes,
                ring.full(stage));
    }
  }

  __device__ void fetch_rows(const OutputTile& tile, int64_t column_tile) {
    int chunk = lane() % 8;
    uint32_t to = filler_.ring().at(filler_.ring().stage) + G::kWeightBytes;
    const BFloat16* x =
        rounded_.row(0, tile.matrix * g_.a.weights.segment_step) + column_tile * kTile + chunk * 8;
    int64_t stride = rounded_.segments * rounded_.columns;
#pragma unroll 8
    for (int r = lane() / 8; r < G::kRows; r += kWarp / 8) {
      copy_16(to + swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(chunk) * 16),
              x + sources_[r] * stride);
    }
  }

  const G& g_;
  int* sources_;
  RingFiller<G> filler_;
  RoundedRows rounded_;
  int64_t ahead_ = 0;  // of the first stages, those whose weights are under way
};

// A warpgroup that multiplies its 64 features of every tile.
template <class G>
class TileMultiplier {
 public:
  static constexpr int kValues = G::kRows / 2;  // of a thread

  __device__ TileMultiplier(const G& g, unsigned char* shared)
      : g_(g), sums_(reinterpret_cast<float*>(shared + G::kSums)), ring_{shared_address(shared)} {}

  __device__ void run() {
    for_block_tiles(g_, [&](const OutputTile& tile, int begin, int end) {
      float sums[kValues];
      if constexpr (G::kAdds) {
        float total[kValues] = {};
        for (int s = begin; s < end; ++s) {
          add_segment(sums);
#pragma unroll
          for (int i = 0; i < kValues; ++i) total[i] = __fadd_rn(total[i], sums[i]);
        }
        store(tile, total);
      } else {
        add_segment(sums);
        G::kSplit ? store_split(tile, sums) : store(tile, sums);
      }
    });
  }

 private:
  __device__ void add_segment(float (&sums)[kValues]) {
    int64_t tiles = quotient(tiles_of(g_.a.k), g_.segments);
    for (int64_t c = 0; c < tiles; ++c) {
      ring_.wait_full();
      uint64_t weights = tile_descriptor(ring_.at(ring_.stage) + group() * kTileBytes);
      uint64_t rows = tile_descriptor(ring_.at(ring_.stage) + G::kWeightBytes);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < kTile / 16; ++step) {
        Wgmma<G::kRows>::shared(sums, weights + step * kDescriptorStep,
                                rows + step * kDescriptorStep, c > 0 || step > 0 ? 1 : 0);
      }
      wgmma_commit();
      if (c > 0) {
        wgmma_wait<1>();
        ring_.release(ring_.back(1));
      }
      ring_.next();
    }
    wgmma_wait_for(sums);
    ring_.release(ring_.back(1));
  }

  __device__ void store(const OutputTile& tile, const float (&sums)[kValues]) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      put_output(g_.a, tile, accumulator_column(i),
                 static_cast<int>(group() * kTile) + accumulator_row(i), sums[i]);
    }
  }

  // Each block of the cluster adds up the segments of its part of the features.
  __device__ void store_split(const OutputTile& tile, const float (&sums)[kValues]) {
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      sums_[accumulator_column(i) * G::kFeatures + accumulator_row(i)] = sums[i];
    }
    cluster_barrier();
    int features = G::kFeatures / g_.segments;
    int first = static_cast<int>(cluster_rank()) * features;
    for (int i = static_cast<int>(threadIdx.x); i < G::kRows * features; i += 128) {
      int row = i / features, feature = first + i % features;
      uint32_t at = shared_address(sums_ + row * G::kFeatures + feature);
      float sum = 0;
      for (int s = 0; s < g_.segments; ++s) {
        sum = __fadd_rn(sum, load_from_block(at, static_cast<uint32_t>(s)));
      }
      put_output(g_.a, tile, row, feature, sum);
    }
    cluster_barrier();
  }

  __device__ static uint32_t group() { return threadIdx.x / 128; }

  const G& g_;
  float* sums_;
  Ring<G> ring_;
};

template <class G>
__global__ __launch_bounds__(G::kThreads) void run_tensor_gemm(const __grid_constant__ G g) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  // A stage's weights arrive by themselves.
  if (threadIdx.x == 0) init_ring<G>(shared_address(bytes), 1, G::kGroups);
  __syncthreads();
  if (threadIdx.x >= G::kMultipliers) {
    TileFetcher<G>(g, bytes).run();
    if constexpr (G::kSplit) {  // the warp is of the cluster, too
      for_block_tiles(g, [](const OutputTile&, int, int) {
        cluster_barrier();
        cluster_barrier();
      });
    }
  } else {
    TileMultiplier<G>(g, bytes).run();
  }
  wait_for_earlier_kernels();  // also where there was nothing to do: the next kernel asks only this
}

inline void multiply_tiles(const GemmArgs& args) {
  Queue& queue = queue_of(args.launch.queue);
  launch_tensor_gemm(args, queue.multiprocessors(), [&]<class G>(const G& kernel, int64_t blocks) {
    launch_after_rounding(queue, run_tensor_gemm<G>, kernel, blocks, kernel.cluster());
  });
}

}  // namespace banyan::cuda::device
