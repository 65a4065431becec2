// Attention by wgmma (kernels/cuda/tensor_attention.h has what it computes). Rows of queries are the
// 64 rows of an instruction.
//
// A block has one warp that fetches tiles of keys and of values, in turn, and one warpgroup; two
// blocks share a multiprocessor, so that one multiplies while the other has its softmax. The floors
// are the bytes of the visible keys and values, and 4 head_dim operations for each pair and head.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/queue.cuh"
#include "kernels/cuda/device/ring.cuh"
#include "kernels/cuda/tensor_attention.h"

namespace banyan::cuda::device {

template <int Width>
struct TensorAttention {
  static constexpr int kWidth = Width;              // of a head
  static constexpr int kBlocks = kWidth / 64;       // of columns in shared memory
  static constexpr uint32_t kBlockBytes = kKeyTile * kTileRowBytes;
  static constexpr int kMultipliers = 128, kThreads = kMultipliers + kWarp;

  static constexpr int kStages = 8 / kBlocks;  // keys and values
  static constexpr uint32_t kStageBytes = kBlocks * kBlockBytes;
  static constexpr uint32_t kQueries = kStages * kStageBytes;
  static constexpr uint32_t kSources = kQueries + kBlocks * kBlockBytes;  // rows of the pools
  static constexpr uint32_t kBarriers = kSources + kKeyTile * 4;
  static constexpr uint32_t kSharedBytes = kBarriers + 2 * kStages * 8;
  static_assert(2 * (kSharedBytes + 1024) <= 228 * 1024);

  AttentionArgs a;
  float* parts;  // kPartScratchBytes
};

// Calls body(first position) for the tiles of keys that the rows of an item see of a part.
template <class Body>
__device__ void for_key_tiles(KeyRange keys, int32_t part, const Body& body) {
  constexpr auto kKeys = static_cast<int32_t>(kPartKeys), kTileKeys = static_cast<int32_t>(kKeyTile);
  int32_t begin = part * kKeys, end = min(begin + kKeys, keys.end);
  if (keys.first > begin) begin = keys.first / kTileKeys * kTileKeys;
  for (int32_t first = begin; first < end; first += kTileKeys) body(first);
}

// The keys that any row of an item sees.
__device__ inline KeyRange keys_of(const AttentionArgs& a, const AttentionItem& item) {
  const SpanArgs& span = a.spans[item.span];
  int64_t group = quotient(a.q_heads, a.kv_heads);
  int64_t last = least(item.row + kQueryTile, query_rows(a, span)) - 1;
  return {keys_at(span.first_position + quotient(item.row, group), a.window).first,
          keys_at(span.first_position + quotient(last, group), a.window).end};
}

// A thread of the warp that fetches.
template <class K>
class KeyFetcher {
 public:
  __device__ KeyFetcher(const K& k, unsigned char* shared)
      : a_(k.a),
        sources_(reinterpret_cast<int*>(shared + K::kSources)),
        filler_(shared_address(shared)) {}

  __device__ void run(bool split) {
    for_attention_items(a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
      KeyRange keys = keys_of(a_, item);
      for (int32_t part = item.parts.begin; part < item.parts.end; ++part) {
        for_key_tiles(keys, part, [&](int32_t first) {
          find_rows(item, keys, first);
          fetch(a_.k_pool);
          fetch(a_.v_pool);
        });
      }
    });
    filler_.finish();
  }

 private:
  // Of keys that no row sees there is none: their pages may be those of others by now.
  __device__ void find_rows(const AttentionItem& item, const KeyRange& keys, int32_t first) {
    __syncwarp();
    for (int r = filler_.lane(); r < kKeyTile; r += kWarp) {
      int32_t key = first + r;
      sources_[r] = key >= keys.first && key < keys.end
                        ? static_cast<int>(pool_offset(a_.page_table, a_.spans[item.span], key,
                                                       item.kv_head, a_.kv_heads, a_.page_size, 1))
                        : -1;
    }
    __syncwarp();
  }

  // Those become zeros: a weight of zero times what lies in memory might be NaN.
  __device__ void fetch(const void* pool) {
    constexpr int kChunks = K::kWidth / 8;  // of a row
    filler_.wait_empty();
    uint32_t to = filler_.ring().at(filler_.ring().stage);
    int chunk = filler_.lane() % kChunks;
    to += static_cast<uint32_t>(chunk / 8) * K::kBlockBytes;
    const auto* from = static_cast<const BFloat16*>(pool) + chunk * 8;
#pragma unroll 8
    for (int r = filler_.lane() / kChunks; r < kKeyTile; r += kWarp / kChunks) {
      int source = sources_[r];
      copy_16_or_zeros(
          to + swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(chunk % 8) * 16),
          from + int64_t{source < 0 ? 0 : source} * K::kWidth, source >= 0);
    }
    filler_.filled_stage();
  }

  const AttentionArgs& a_;
  int* sources_;
  RingFiller<K> filler_;
};

// The warpgroup. A thread has two rows of a tile, the one at accumulator_row(0) and the eighth
// after it, and a quarter of the columns of each.
template <class K>
class Attender {
 public:
  static constexpr int kScores = kKeyTile / 2, kValues = K::kWidth / 2;  // of a thread

  __device__ Attender(const K& k, unsigned char* shared)
      : k_(k), a_(k.a), queries_(shared + K::kQueries), ring_{shared_address(shared)} {}

  __device__ void run(bool split) {
    for_attention_items(a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
      load_queries(item);
      Rows rows = rows_of(item);
      attend(item, rows, split);
    });
  }

 private:
  // The two rows of this thread.
  struct Rows {
    KeyRange keys[2];  // of these rows; none if there is no such row
    KeyRange all;      // of the item
  };
  struct PartSums {
    float max[2], weight[2];
    float out[kValues];
  };

  __device__ static void sync() { asm volatile("bar.sync 1, 128;" ::: "memory"); }
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  // Which of the two rows value i of a fragment is in.
  __device__ static constexpr int row_of(int i) { return i / 2 % 2; }

  __device__ Rows rows_of(const AttentionItem& item) const {
    Rows rows;
    const SpanArgs& span = a_.spans[item.span];
    rows.all = keys_of(a_, item);
    int64_t group = quotient(a_.q_heads, a_.kv_heads), count = query_rows(a_, span);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      int64_t row = item.row + accumulator_row(2 * i);
      rows.keys[i] = row < count ? keys_at(span.first_position + quotient(row, group),
                                           a_.window)
                                 : KeyRange{0, 0};
    }
    return rows;
  }

  // Rounded and swizzled; rows that are not there are zeros.
  __device__ void load_queries(const AttentionItem& item) {
    sync();  // all warps have multiplied with the last ones
    const SpanArgs& span = a_.spans[item.span];
    int64_t group = quotient(a_.q_heads, a_.kv_heads), count = query_rows(a_, span);
    constexpr int kChunks = K::kWidth / 8;
    for (int i = thread(); i < kQueryTile * kChunks; i += K::kMultipliers) {
      int r = i / kChunks, chunk = i % kChunks;
      int64_t row = item.row + r, token = quotient(row, group);
      const float* q = a_.q + (span.row_begin + token) * a_.q_row_stride +
                       (item.kv_head * group + row - token * group) * K::kWidth + chunk * 8;
      struct alignas(16) {
        BFloat16 values[8];
      } rounded = {};
#pragma unroll
      for (int c = 0; c < 8; ++c) {
        if (row < count) rounded.values[c] = from_float<BFloat16>(q[c]);
      }
      uint32_t to = static_cast<uint32_t>(chunk / 8) * K::kBlockBytes +
                    swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(chunk % 8) * 16);
      *reinterpret_cast<decltype(rounded)*>(queries_ + to) = rounded;
    }
    fence_shared();
    sync();
  }

  __device__ void add_part(const Rows& rows, int32_t part, PartSums& sums) {
    float max[2] = {kLowest, kLowest}, weights[2] = {};  // of this thread's columns: see RowSums
#pragma unroll
    for (int i = 0; i < kValues; ++i) sums.out[i] = 0;
    for_key_tiles(rows.all, part, [&](int32_t first) {
      float scores[kScores];
      multiply_keys(scores);
      mask(scores, rows, first);
      float kept[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float larger = max[i];
#pragma unroll
        for (int j = 0; j < kScores; ++j) {
          if (row_of(j) == i) larger = Largest()(larger, scores[j]);
        }
        larger = Largest()(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
        larger = Largest()(larger, __shfl_xor_sync(0xffffffffu, larger, 2));
        kept[i] = exp_of_difference(max[i] - larger);
        max[i] = larger;
        weights[i] *= kept[i];
      }
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        int i = row_of(j);
        scores[j] = exp_of_difference(scores[j] - max[i]);
        weights[i] += scores[j];
      }
#pragma unroll
      for (int j = 0; j < kValues; ++j) sums.out[j] *= kept[row_of(j)];
      multiply_values(scores, sums.out);
    });
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums.max[i] = max[i];
      float pair = weights[i] + __shfl_xor_sync(0xffffffffu, weights[i], 1);
      sums.weight[i] = pair + __shfl_xor_sync(0xffffffffu, pair, 2);
    }
  }

  __device__ void multiply_keys(float (&scores)[kScores]) {
    ring_.wait_full();
    uint64_t queries = tile_descriptor(shared_address(queries_));
    uint64_t keys = tile_descriptor(ring_.at(ring_.stage));
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < K::kWidth / 16; ++step) {
      uint64_t at = static_cast<uint64_t>(step / 4) * (K::kBlockBytes >> 4) +
                    static_cast<uint64_t>(step % 4) * kDescriptorStep;
      Wgmma<kKeyTile>::shared(scores, queries + at, keys + at, step > 0 ? 1 : 0);
    }
    wgmma_commit();
    wgmma_wait_for(scores);
    release();
  }

  __device__ void mask(float (&scores)[kScores], const Rows& rows, int32_t first) const {
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      int32_t key = first + accumulator_column(j);
      const KeyRange& keys = rows.keys[row_of(j)];
      scores[j] = key >= keys.first && key < keys.end ? score_of(scores[j], a_) : -kInfinity;
    }
  }

  // The weights of 16 keys are the operand's fragment of these columns, once they are rounded.
  __device__ void multiply_values(const float (&weights)[kScores], float (&out)[kValues]) {
    uint32_t fragments[kKeyTile / 16][4];
#pragma unroll
    for (int step = 0; step < kKeyTile / 16; ++step) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t low = from_float<BFloat16>(weights[step * 8 + 2 * j]).bits;
        uint32_t high = from_float<BFloat16>(weights[step * 8 + 2 * j + 1]).bits;
        fragments[step][j] = low | high << 16;
      }
    }
    ring_.wait_full();
    uint64_t values = transposed_descriptor(ring_.at(ring_.stage), K::kBlockBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeyTile / 16; ++step) {
      Wgmma<K::kWidth>::template registers<1>(out, fragments[step],
                                              values + step * kTransposedStep, 1);
    }
    wgmma_commit();
    wgmma_wait_for(out);
    release();
  }

  __device__ void release() {
    if (thread() == 0) barrier_arrive(ring_.empty(ring_.stage));
    ring_.next();
  }

  // For MergeParts.
  __device__ void store_part(const AttentionItem& item, const Rows& rows, const PartSums& sums) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (rows.keys[i].end == 0) continue;
      float* to = part(item, i);
      if (thread() % 4 == 0) {
        to[0] = sums.max[i];
        to[1] = sums.weight[i];
      }
#pragma unroll
      for (int j = 0; j < kValues; ++j) {
        if (row_of(j) == i) to[2 + accumulator_column(j)] = sums.out[j];
      }
    }
  }

  __device__ float* part(const AttentionItem& item, int i) const {
    return k_.parts + part_offset(a_, a_.spans[item.span], item.results, item.kv_head,
                                  item.row + accumulator_row(2 * i), item.parts.begin);
  }

  __device__ void attend(const AttentionItem& item, const Rows& rows, bool split) {
    float max[2] = {kLowest, kLowest}, weight[2] = {};
    for (int32_t p = item.parts.begin; p < item.parts.end; ++p) {
      PartSums sums;
      add_part(rows, p, sums);
      if (split) return store_part(item, rows, sums);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Rescaled r = rescaled(max[i], sums.max[i]);
        max[i] = r.max;
        weight[i] = weight[i] * r.kept + sums.weight[i] * r.added;
        if (rows.keys[i].end > 0) {
          merge(item, i, r, {max[i], weight[i]}, p == item.parts.begin, p + 1 == item.parts.end,
                sums);
        }
      }
    }
  }

  // Between parts the sums of row i are where its results will be: registers do not hold both.
  struct Softmax {
    float max, weight;
  };
  __device__ void merge(const AttentionItem& item, int i, const Rescaled& r, Softmax softmax,
                        bool first, bool last, const PartSums& sums) {
    int64_t group = quotient(a_.q_heads, a_.kv_heads);
    int64_t row = item.row + accumulator_row(2 * i), token = quotient(row, group);
    int64_t head = item.kv_head * group + row - token * group;
    float* out = a_.out + ((a_.spans[item.span].row_begin + token) * a_.q_heads + head) * K::kWidth;
    LastStep step = last_step(a_, head, softmax.max, softmax.weight);
#pragma unroll
    for (int j = 0; j < kValues; ++j) {
      if (row_of(j) != i) continue;
      float& to = out[accumulator_column(j)];
      float total = (first ? 0 : to) * r.kept + sums.out[j] * r.added;
      to = last ? step(total) : total;
    }
  }

  const K& k_;
  const AttentionArgs& a_;
  unsigned char* queries_;
  Ring<K> ring_;
};

template <class K>
__global__ __maxnreg__(200) void run_tensor_attention(const __grid_constant__ K k) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  if (threadIdx.x == 0) init_ring<K>(shared_address(bytes), 0, 1);
  __syncthreads();
  bool split = attention_plan(k.a).split;
  if (threadIdx.x >= K::kMultipliers) {
    KeyFetcher<K>(k, bytes).run(split);
  } else {
    Attender<K>(k, bytes).run(split);
  }
}

template <class K>
void launch_tensor_attention(const AttentionArgs& args, float* parts) {
  Queue& queue = queue_of(args.launch.queue);
  auto* function = run_tensor_attention<K>;
  BANYAN_CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(K::kSharedBytes)));
  auto blocks = static_cast<unsigned>(2 * queue.multiprocessors());
  function<<<blocks, K::kThreads, K::kSharedBytes, queue.stream()>>>(K{args, parts});
  BANYAN_CHECK_CUDA(cudaGetLastError());
}

// Writes parts, or the results where it does not split rows: MergeParts does the rest.
inline float* attend_tiles(const AttentionArgs& args) {
  auto* parts = reinterpret_cast<float*>(queue_of(args.launch.queue).scratch(kPartScratchBytes));
  if (args.head_dim == 64) {
    launch_tensor_attention<TensorAttention<64>>(args, parts);
  } else {
    launch_tensor_attention<TensorAttention<128>>(args, parts);
  }
  return parts;
}

}  // namespace banyan::cuda::device
