// Products with quantised weights by wgmma (kernels/cuda/fragment_gemm.h). Their codes become
// registers of 8-bit integers, from which zeros are subtracted, or of bf16. The floor for few rows
// is the packed bytes.
//
// A warpgroup that multiplies waits for memory, unpacks, multiplies and adds groups up, one after
// the other. Where rows are few, teams take turns with chunks of 128 columns, so that all but the
// adding of one overlaps that of the others.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/packed_pairs.cuh"
#include "kernels/cuda/device/product.cuh"
#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/stage_fetcher.cuh"
#include "kernels/cuda/fragment_gemm.h"

namespace banyan::cuda::device {

// Rows that follow each other, from a multiple of eight on.
template <class G>
class ChunkRowSource {
 public:
  __device__ ChunkRowSource(const GemmArgs& a, const OutputTile& tile, int64_t chunk)
      : rows_(a, tile, chunk) {
    auto count = static_cast<uint32_t>(tile.row_count);
    rows_.blocks += tile.row * kTileRowBytes;
    rows_.steps += tile.row * rows_.groups * int64_t{sizeof(float)};
    block_bytes_ = count * kTileRowBytes;
    step_bytes_ = (count + 7) / 8 * 8 * rows_.groups * sizeof(float);
  }

  __device__ uint32_t bytes() const { return G::kBlocks * block_bytes_ + step_bytes_; }
  __device__ void fetch(const Ring<G>& ring, uint32_t stage) {
    uint32_t to = ring.at(stage), full = ring.full(stage);
#pragma unroll
    for (int block = 0; block < G::kBlocks; ++block) {
      copy_bulk(to + G::kWeightBytes + static_cast<uint32_t>(block) * G::kBlockBytes,
                rows_.blocks + block * rows_.next_block, block_bytes_, full);
    }
    if constexpr (G::kIntegers) copy_bulk(to + G::kRowSteps, rows_.steps, step_bytes_, full);
    rows_.next();
  }

 private:
  StageRows<G> rows_;
  uint32_t block_bytes_, step_bytes_;
};

// Whose turn it is of the teams that share a tile's chunks, and what one hands on to the next: a
// thread to the one of the same index.
template <class G>
class Turns {
 public:
  static constexpr int kValues = G::kRows / 2;

  __device__ Turns(unsigned char* shared, uint32_t team)
      : values_(reinterpret_cast<float4*>(shared + G::kHandedOn) + threadIdx.x % kWarpgroup),
        team_(team),
        is_first_(team == 0) {}

  __device__ void begin() {
    if (!is_first_) {
      asm volatile("bar.sync %0, %1;" ::"r"(kFirst + team_), "n"(2 * kWarpgroup) : "memory");
    }
    is_first_ = false;
  }
  __device__ void end() const {
    uint32_t next = team_ + 1 == G::kTeams ? 0 : team_ + 1;
    asm volatile("bar.arrive %0, %1;" ::"r"(kFirst + next), "n"(2 * kWarpgroup) : "memory");
  }

  // Between the two. `place`: 0 or 1.
  template <class T>
  __device__ void take(T (&values)[kValues], int place) const {
#pragma unroll
    for (int i = 0; i < kValues / 4; ++i) {
      float4 four = values_[(place * (kValues / 4) + i) * kWarpgroup];
      memcpy(values + i * 4, &four, sizeof(four));
    }
  }
  template <class T>
  __device__ void put(const T (&values)[kValues], int place) const {
#pragma unroll
    for (int i = 0; i < kValues / 4; ++i) {
      float4 four;
      memcpy(&four, values + i * 4, sizeof(four));
      values_[(place * (kValues / 4) + i) * kWarpgroup] = four;
    }
  }

 private:
  static constexpr uint32_t kFirst = 4;  // of the teams' barriers

  float4* values_;
  uint32_t team_;
  bool is_first_;
};

// A thread of a team that multiplies. kGroups: how many groups a chunk has, or 0 if it is a part of
// one.
template <class G, int kGroups>
class ChunkMultiplier {
 public:
  static constexpr int kValues = G::kRows / 2;  // of a thread
  static constexpr int kSteps = G::kSteps;
  static constexpr int kSums = kGroups > 0 ? kGroups : 1;  // of a chunk
  static constexpr int kGroupSteps = kSteps / kSums;
  static constexpr bool kIntegers = G::kIntegers;
  using Sum = Element<G::kFormat>;

  __device__ ChunkMultiplier(const G& g, unsigned char* shared)
      : g_(g),
        fragments_(G::kFormat, g.a.k, g.a.group),
        chunks_(static_cast<int>(fragments_.chunks())),
        team_(team()),
        gathers_(gathers(g.a)),
        shared_(shared),
        ring_{shared_address(shared), G::kTakesTurns ? team_ : 0} {}

  __device__ void run(unsigned char* shared) {
    if constexpr (G::kTakesTurns) {
      take_turns(Turns<G>(shared, team_));
    } else {
      for_block_tiles(g_, [&](const OutputTile& tile, int, int) {
        float y[kValues] = {};
        Sum sums[1][kValues];
        for (int chunk = 0; chunk < chunks_; ++chunk) add_chunk(chunk, sums, y);
        put_outputs<false>(g_.a, tile, static_cast<int>(team_ * kChunkRows), y);
      });
    }
  }

 private:
  // Read from a lane, so that the compiler sees that it is the same for a warp.
  __device__ static uint32_t team() {
    return __shfl_sync(0xffffffffu, threadIdx.x / kWarpgroup, 0);
  }

  // All chunks of a tile, of one group after the other.
  __device__ void add_chunk(int chunk, Sum (&sums)[1][kValues], float (&y)[kValues]) {
    uint32_t fragments[kSteps][4];
    const unsigned char* stage = begin_chunk(fragments);
#pragma unroll
    for (int group = 0; group < kSums; ++group) {
      bool keeps = kGroups == 0 && !begins_group(chunk);
      start(fragments, group, sums, keeps ? 1 : 0);
      Factors<1> factors(*this, stage, group);
      wait_for(sums);
      if (kGroups > 0 ? exists(chunk, group) : ends_group(chunk)) factors.add(sums[0], 0, y);
    }
    ring_.release(ring_.stage);
    ring_.next();
  }

  // Chunks are counted through all tiles of the block, for one team after the other.
  __device__ void take_turns(Turns<G> turns) {
    int next = 0;  // the team that takes the next tile's first chunk
    bool any = false;
    for_block_tiles(g_, [&](const OutputTile& tile, int, int) {
      int first = static_cast<int>(team_) - next;
      if (first < 0) first += G::kTeams;
      for (int chunk = first; chunk < chunks_; chunk += G::kTeams) {
        float y[kValues];
        add_own_chunk(chunk, turns, y);
        if (chunk == chunks_ - 1) put_outputs<false>(g_.a, tile, 0, y);
      }
      next = (next + chunks_) % G::kTeams;
      any = true;
    });
    if (any && static_cast<int>(team_) == next) turns.begin();  // that the last one has ended
  }

  __device__ void add_own_chunk(int chunk, Turns<G>& turns, float (&y)[kValues]) {
    uint32_t fragments[kSteps][4];
    Sum sums[kSums][kValues];
    const unsigned char* stage = begin_chunk(fragments);
    // wgmma adds to the sum of a group's columns before, which has no other bits than theirs.
    constexpr bool kAfterOthers = kGroups == 0 && !kIntegers;
    bool begins = begins_group(chunk), ends = ends_group(chunk);
    if (kAfterOthers) {
      turns.begin();
      if (!begins) turns.take(sums[0], 1);
    }
    start(fragments, 0, sums, kAfterOthers && !begins ? 1 : 0);
    Factors<kSums> factors(*this, stage, 0);
    wait_for(sums);
    ring_.release(ring_.stage);
    ring_.template next<G::kTeams>();
    if (!kAfterOthers) turns.begin();
    take_y(chunk, turns, y);
    if constexpr (kGroups > 0) {
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (exists(chunk, group)) factors.add(sums[group], group, y);
      }
    } else {
      if (!kAfterOthers && !begins) add_handed_on(turns, sums[0]);
      ends ? factors.add(sums[0], 0, y) : turns.put(sums[0], 1);
    }
    turns.put(y, 0);
    turns.end();
  }

  // What the tile's chunks before have summed up.
  __device__ static void take_y(int chunk, const Turns<G>& turns, float (&y)[kValues]) {
    if (chunk > 0) return turns.take(y, 0);
#pragma unroll
    for (int i = 0; i < kValues; ++i) y[i] = 0;
  }

  __device__ static void add_handed_on(const Turns<G>& turns, Sum (&sums)[kValues]) {
    Sum before[kValues];
    turns.take(before, 1);
#pragma unroll
    for (int i = 0; i < kValues; ++i) sums[i] += before[i];
  }

  __device__ bool begins_group(int chunk) const {
    return remainder(chunk * kChunkColumns, g_.a.group) == 0;
  }
  __device__ bool ends_group(int chunk) const {
    return begins_group(chunk + 1) || chunk + 1 == chunks_;
  }
  __device__ bool exists(int chunk, int group) const {
    constexpr int kColumns = static_cast<int>(kChunkColumns);
    return chunk * kColumns + group * (kColumns / kSums) < static_cast<int>(g_.a.k);
  }

  __device__ const unsigned char* begin_chunk(uint32_t (&fragments)[kSteps][4]) {
    ring_.wait_full();
    if (gathers_) fence_shared();
    const unsigned char* stage = shared_ + ring_.stage * G::kStageBytes;
    load_fragments(unit(stage), fragments);
#pragma unroll
    for (int i = 0; i < kSteps * 4; ++i) {  // before the first wgmma_fence
      asm volatile("" : "+r"(fragments[i / 4][i % 4])::"memory");
    }
    return stage;
  }
  // Of this team's features.
  __device__ const unsigned char* unit(const unsigned char* stage) const {
    return stage + (G::kTakesTurns ? 0 : team_ * G::kUnitBytes);
  }

  // Begins to compute the sums of `count` groups from `first` on, added to what they are if `keep`.
  template <int count>
  __device__ void start(const uint32_t (&fragments)[kSteps][4], int first,
                        Sum (&sums)[count][kValues], int keep) {
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < count * kGroupSteps; ++i) {
      int step = first * kGroupSteps + i;
      Sum(&sum)[kValues] = sums[i / kGroupSteps];
      uint32_t block = ring_.at(ring_.stage) + G::kWeightBytes +
                       static_cast<uint32_t>(step / 4) * G::kBlockBytes;
      uint64_t rows = tile_descriptor(block) + static_cast<uint64_t>(step % 4) * kDescriptorStep;
      int adds = i % kGroupSteps > 0 ? 1 : keep;
      if constexpr (kIntegers) {
        IntegerWgmma<G::kRows>::registers(sum, fragments[step], rows, adds);
      } else {
        Wgmma<G::kRows, BFloat16>::template registers<0>(sum, fragments[step], rows, adds);
      }
    }
    wgmma_commit();
  }
  template <int count>
  __device__ static void wait_for(Sum (&sums)[count][kValues]) {
#pragma unroll
    for (int i = 0; i < count; ++i) wgmma_wait_for(sums[i]);
  }

  __device__ void load_fragments(const unsigned char* chunk, uint32_t (&fragments)[kSteps][4]) {
    const auto* codes = reinterpret_cast<const uint4*>(chunk) + threadIdx.x % kWarpgroup;
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
        const unsigned char* of =
            chunk + fragments_.zeros_offset() + step / kGroupSteps * kChunkRows;
        zeros[0] = of[accumulator_row(0)] * 0x01010101u;
        zeros[1] = of[accumulator_row(2)] * 0x01010101u;
      }
      unpack_nibbles(first, second, zeros, fragment);
    }
  }

  // What sums of `count` groups of a chunk are multiplied by: the scales of a thread's two features
  // and, of integers, the steps of its rows.
  template <int count>
  class Factors {
   public:
    __device__ Factors(const ChunkMultiplier& m, const unsigned char* stage, int first) {
      const auto* scales =
          reinterpret_cast<const float*>(m.unit(stage) + m.fragments_.code_bytes()) +
          first * kChunkRows;
      const auto* steps =
          reinterpret_cast<const float2*>(stage + G::kRowSteps) + first * 4 + threadIdx.x % 4;
#pragma unroll
      for (int group = 0; group < count; ++group, scales += kChunkRows) {
        scales_[group][0] = scales[accumulator_row(0)];
        scales_[group][1] = scales[accumulator_row(2)];
        if constexpr (G::kFormat == Format::kMxfp4) {
          scales_[group][0] *= 0.5f, scales_[group][1] *= 0.5f;
        }
        if constexpr (kIntegers) {
#pragma unroll
          for (int i = 0; i < kValues / 4; ++i) steps_[group][i] = steps[(i * kSums + group) * 4];
        }
      }
    }

    __device__ void add(const Sum (&sums)[kValues], int group, float (&y)[kValues]) const {
#pragma unroll
      for (int i = 0; i < kValues; ++i) {
        float factor = scales_[group][i / 2 % 2];
        if constexpr (kIntegers) {
          const float2& steps = steps_[group][i / 4];
          factor = __fmul_rn(i % 2 == 0 ? steps.x : steps.y, factor);
        }
        y[i] = __fmaf_rn(static_cast<float>(sums[i]), factor, y[i]);
      }
    }

   private:
    float scales_[count][2];
    float2 steps_[count][kValues / 4];
  };

  const G& g_;
  Fragments fragments_;
  int chunks_;
  uint32_t team_;
  bool gathers_;
  const unsigned char* shared_;
  Ring<G> ring_;
};

template <class G>
__device__ void multiply_chunks(const G& g, unsigned char* shared) {
  if (g.a.group > kChunkColumns) return ChunkMultiplier<G, 0>(g, shared).run(shared);
  switch (Fragments(G::kFormat, g.a.k, g.a.group).chunk_groups()) {
    case 4:
      return ChunkMultiplier<G, 4>(g, shared).run(shared);
    case 2:
      return ChunkMultiplier<G, 2>(g, shared).run(shared);
    default:
      return ChunkMultiplier<G, 1>(g, shared).run(shared);
  }
}

template <class G>
__global__ __maxnreg__(G::kRegisters) void run_fragment_gemm(const __grid_constant__ G g) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  let_next_kernel_begin();
  // A stage's weights arrive by themselves.
  if (threadIdx.x == 0) {
    init_ring<G>(shared_address(bytes), gathers(g.a) ? kWarpgroup + 1 : 1,
                 G::kTakesTurns ? 1 : G::kTeams);
  }
  __syncthreads();
  if (gathers(g.a)) wait_for_earlier_kernels();  // which write where experts begin
  if (threadIdx.x < G::kMultipliers) {
    take_registers<G::kMultiplyRegisters>();
    multiply_chunks(g, bytes);
  } else {
    release_registers<G::kFetchRegisters>();
    if (gathers(g.a)) {
      StageGatherer<G>(g, bytes).run();
    } else if (threadIdx.x < G::kMultipliers + kWarp) {
      StageFetcher<G, ChunkRowSource<G>>(g, bytes).run();
    }
  }
  wait_for_earlier_kernels();  // also where there was nothing to do: the next kernel asks only this
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
