// Products with quantised weights by wgmma (kernels/cuda/fragment_gemm.h). Their codes become
// registers of 8-bit integers, from which zeros are subtracted, or of bf16. The floor for few rows
// is the packed bytes.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/packed_pairs.cuh"
#include "kernels/cuda/device/product.cuh"
#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/ring.cuh"
#include "kernels/cuda/fragment_gemm.h"

namespace banyan::cuda::device {

// A thread of the warpgroup that fetches.
template <class G>
class ChunkFetcher {
 public:
  __device__ ChunkFetcher(const G& g, unsigned char* shared)
      : a_(g.a),
        fragments_(G::kFormat, g.a.k, g.a.group),
        sources_(reinterpret_cast<int*>(shared + G::kSources)),
        filler_(shared_address(shared)),
        policy_(cache_policy(tile_rows_wanted(g.a) <= G::kRows)) {}

  __device__ void run() {
    for_output_tiles(Warp(), a_, blockIdx.x, gridDim.x, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) {
                       find_sources<G::kRows>(a_, tile, filler_.thread(), sources_);
                       for (int64_t chunk = 0; chunk < fragments_.chunks(); ++chunk)
                         fetch(tile, chunk);
                     });
    filler_.finish();
  }

 private:
  __device__ static int thread() { return RingFiller<G>::thread(); }

  __device__ void fetch(const OutputTile& tile, int64_t chunk) {
    filler_.wait_empty();
    uint32_t stage = filler_.ring().stage, to = filler_.ring().at(stage);
    if (thread() == 0) {
      auto bytes = static_cast<uint32_t>(fragments_.chunk_bytes());
      const auto* matrix =
          static_cast<const std::byte*>(a_.weights.weight) + tile.matrix * a_.weights.weight_stride;
      int64_t at = tile.feature / kChunkRows * fragments_.chunks() + chunk;
      barrier_arrive_expecting(filler_.ring().full(stage), bytes);
      copy_bulk(to + G::kRowBytes, matrix + at * bytes, bytes, filler_.ring().full(stage), policy_);
    }
    int64_t segment = tile.matrix * a_.weights.segment_step;
    fetch_rows(to, segment, chunk);
    if constexpr (has_integers(G::kFormat)) fetch_steps(to + G::kRowSteps, segment, chunk);
    filler_.filled_stage();
  }

  // 16 bytes of a row of x: part `part` of its columns of the chunk.
  __device__ const std::byte* source(int r, int64_t segment, int64_t chunk, int part) const {
    if constexpr (has_integers(G::kFormat)) {
      return reinterpret_cast<const std::byte*>(quantised_rows(a_).codes(sources_[r], segment)) +
             chunk * kTileRowBytes + part * 16;
    } else {
      return rounded_rows(a_).chunk(sources_[r], segment, chunk * kChunkColumns + part * 8);
    }
  }

  __device__ void fetch_rows(uint32_t to, int64_t segment, int64_t chunk) {
    constexpr int kParts = G::kBlocks * 8;  // of a row
    int part = thread() % kParts;
    to += static_cast<uint32_t>(part / 8) * G::kBlockBytes;
#pragma unroll 4
    for (int r = thread() / kParts; r < G::kRows; r += kWarpgroup / kParts) {
      copy_16(to + swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(part % 8) * 16),
              source(r, segment, chunk, part));
    }
  }

  // Of groups that end in the chunk or after it.
  __device__ void fetch_steps(uint32_t to, int64_t segment, int64_t chunk) {
    QuantisedRows rows = quantised_rows(a_);
    int64_t groups = fragments_.chunk_groups();
    int64_t first = quotient(chunk * kChunkColumns, a_.group);
    for (int i = thread(); i < groups * G::kRows; i += kWarpgroup) {
      int group = i / G::kRows, r = i % G::kRows;
      int64_t g = least(first + group, rows.groups - 1);
      copy_4(to + static_cast<uint32_t>(i) * 4, rows.steps(sources_[r], segment) + g);
    }
  }

  const GemmArgs& a_;
  Fragments fragments_;
  int* sources_;
  RingFiller<G> filler_;
  uint64_t policy_;  // of weights
};

// A thread of the warpgroup that multiplies.
template <class G>
class ChunkMultiplier {
 public:
  static constexpr int kValues = G::kRows / 2;  // of a thread
  static constexpr int kSteps = G::kSteps;
  using Sum = Element<G::kFormat>;

  __device__ ChunkMultiplier(const G& g, unsigned char* shared)
      : a_(g.a),
        fragments_(G::kFormat, g.a.k, g.a.group),
        shared_(shared),
        ring_{shared_address(shared)} {}

  __device__ void run() {
    for_output_tiles(Warp(), a_, blockIdx.x, gridDim.x, G::kRows, G::kFeatures,
                     [&](const OutputTile& tile) {
                       float y[kValues] = {};
                       Sum sums[kValues];
                       for (int64_t chunk = 0; chunk < fragments_.chunks(); ++chunk)
                         add_chunk(chunk, sums, y);
                       put_outputs<false>(a_, tile, 0, y);
                     });
  }

 private:
  __device__ void add_chunk(int64_t chunk, Sum (&sums)[kValues], float (&y)[kValues]) {
    ring_.wait_full();
    fence_shared();
    const unsigned char* stage = shared_ + ring_.stage * G::kStageBytes;
    uint32_t fragments[kSteps][4];
    load_fragments(stage + G::kRowBytes, fragments);
    switch (fragments_.chunk_groups()) {
      case 4:
        add_groups<kSteps / 4>(chunk, stage, fragments, sums, y);
        break;
      case 2:
        add_groups<kSteps / 2>(chunk, stage, fragments, sums, y);
        break;
      default:
        add_part_of_group(chunk, stage, fragments, sums, y);
    }
    ring_.release(ring_.stage);
    ring_.next();
  }

  // Groups of kGroupSteps steps each.
  template <int kGroupSteps>
  __device__ void add_groups(int64_t chunk, const unsigned char* stage,
                             const uint32_t (&fragments)[kSteps][4], Sum (&sums)[kValues],
                             float (&y)[kValues]) {
#pragma unroll
    for (int group = 0; group < kSteps / kGroupSteps; ++group) {
      multiply<kGroupSteps>(fragments, group * kGroupSteps, 0, sums);
      bool exists = chunk * kChunkColumns + group * kGroupSteps * (kChunkColumns / kSteps) < a_.k;
      if (exists) add_group(stage, group, sums, y);
    }
  }

  // A group of this chunk, or of several.
  __device__ void add_part_of_group(int64_t chunk, const unsigned char* stage,
                                    const uint32_t (&fragments)[kSteps][4], Sum (&sums)[kValues],
                                    float (&y)[kValues]) {
    int64_t column = chunk * kChunkColumns, next = column + kChunkColumns;
    bool begins = column == quotient(column, a_.group) * a_.group;
    bool ends = next == quotient(next, a_.group) * a_.group || next >= a_.k;
    multiply<kSteps>(fragments, 0, begins ? 0 : 1, sums);
    if (ends) add_group(stage, 0, sums, y);
  }

  // The products of `count` steps from `first` on, added to the sums if `keep`.
  template <int count>
  __device__ void multiply(const uint32_t (&fragments)[kSteps][4], int first, int keep,
                           Sum (&sums)[kValues]) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < count; ++i) {
      int step = first + i;
      uint64_t rows = tile_descriptor(ring_.at(ring_.stage) +
                                      static_cast<uint32_t>(step / 4) * G::kBlockBytes) +
                      static_cast<uint64_t>(step % 4) * kDescriptorStep;
      if constexpr (has_integers(G::kFormat)) {
        IntegerWgmma<G::kRows>::registers(sums, fragments[step], rows, i > 0 ? 1 : keep);
      } else {
        Wgmma<G::kRows, BFloat16>::template registers<0>(sums, fragments[step], rows,
                                                         i > 0 ? 1 : keep);
      }
    }
    wgmma_commit();
    wgmma_wait_for(sums);
  }

  __device__ void load_fragments(const unsigned char* chunk, uint32_t (&fragments)[kSteps][4]) {
    const auto* codes = reinterpret_cast<const uint4*>(chunk) + threadIdx.x;
    constexpr int kSlab = 2048 / sizeof(uint4);
    if constexpr (G::kFormat == Format::kInt8) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint4 words = codes[step * kSlab];
        fragments[step][0] = words.x, fragments[step][1] = words.y;
        fragments[step][2] = words.z, fragments[step][3] = words.w;
      }
    } else {
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        uint4 words = codes[step / 2 * kSlab];
        unpack(chunk, step, words.x, words.y, fragments[step]);
        unpack(chunk, step + 1, words.z, words.w, fragments[step + 1]);
      }
    }
  }

  __device__ void unpack(const unsigned char* chunk, int step, uint32_t first, uint32_t second,
                         uint32_t (&fragment)[4]) const {
    if constexpr (G::kFormat == Format::kFp8) {
      fragment[0] = pair_of_fp8<0>(first), fragment[1] = pair_of_fp8<2>(first);
      fragment[2] = pair_of_fp8<0>(second), fragment[3] = pair_of_fp8<2>(second);
    } else if constexpr (G::kFormat == Format::kMxfp4) {
      unpack_e2m1(first, fragment[0], fragment[1]);
      unpack_e2m1(second, fragment[2], fragment[3]);
    } else {
      uint32_t zeros[2] = {0x08080808u, 0x08080808u};
      if constexpr (G::kFormat == Format::kUint4) {
        const unsigned char* of = chunk + fragments_.zeros_offset() +
                                  step * fragments_.chunk_groups() / kSteps * kChunkRows;
        zeros[0] = of[accumulator_row(0)] * 0x01010101u;
        zeros[1] = of[accumulator_row(2)] * 0x01010101u;
      }
      unpack_nibbles(first, second, zeros, fragment);
    }
  }

  // `group`: of those that the chunk has scales of.
  __device__ void add_group(const unsigned char* stage, int group, const Sum (&sums)[kValues],
                            float (&y)[kValues]) const {
    const auto* scales =
        reinterpret_cast<const float*>(stage + G::kRowBytes + fragments_.code_bytes()) +
        group * kChunkRows;
    const auto* steps = reinterpret_cast<const float*>(stage + G::kRowSteps) + group * G::kRows;
    float scale[2] = {scales[accumulator_row(0)], scales[accumulator_row(2)]};
    if constexpr (G::kFormat == Format::kMxfp4) scale[0] *= 0.5f, scale[1] *= 0.5f;
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      float factor = scale[i / 2 % 2];
      if constexpr (has_integers(G::kFormat)) factor = steps[accumulator_column(i)] * factor;
      y[i] = __fmaf_rn(static_cast<float>(sums[i]), factor, y[i]);
    }
  }

  const GemmArgs& a_;
  Fragments fragments_;
  const unsigned char* shared_;
  Ring<G> ring_;
};

template <class G>
__global__ __launch_bounds__(G::kThreads) void run_fragment_gemm(const __grid_constant__ G g) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  let_next_kernel_begin();
  // A stage's weights arrive by themselves.
  if (threadIdx.x == 0) init_ring<G>(shared_address(bytes), kWarpgroup + 1, G::kGroups);
  __syncthreads();
  wait_for_earlier_kernels();
  if (threadIdx.x >= G::kMultipliers) {
    ChunkFetcher<G>(g, bytes).run();
  } else {
    ChunkMultiplier<G>(g, bytes).run();
  }
}

template <Format F>
void multiply_fragments(const GemmArgs& args) {
  Queue& queue = queue_of(args.launch.queue);
  launch_fragment_gemm<F>(args, queue.multiprocessors(),
                          [&]<class G>(const G& kernel, int64_t blocks) {
                            launch_early(queue, run_fragment_gemm<G>, kernel, blocks);
                          });
}

}  // namespace banyan::cuda::device
