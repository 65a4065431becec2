// Attention by wgmma (kernels/cuda/tensor_attention.h has what it computes). Rows of queries are
// the 64 rows of an instruction.
//
// A block has a warpgroup that fetches tiles of keys and of values, and one that multiplies; two
// blocks share a multiprocessor, so that one multiplies while the other has its softmax. Of latents
// two warpgroups compute the same weights, and half of the values each. The floors are the bytes of
// the visible keys and values, and 2 (head_dim + value_dim) operations for each pair and head.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/key_fetcher.cuh"
#include "kernels/cuda/device/queue.cuh"

namespace banyan::cuda::device {

// As from_float rounds, but that one NaN stands for all.
__device__ inline uint32_t round_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// A thread of a warpgroup. It has two rows of a tile, the one at accumulator_row(0) and the eighth
// after it, and a quarter of the columns of each.
template <class K>
class Attender {
 public:
  static constexpr int kScores = kKeyTile / 2, kValues = K::kOwnValues / 2;  // of a thread

  __device__ Attender(const K& k, unsigned char* shared)
      : k_(k), a_(k.a), shared_(shared), ring_{shared_address(shared)} {}

  __device__ void run(bool split) {
    for_attention_items(a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
      load_queries(item);
      attend(item, rows_of(item), split);
    });
  }

 private:
  struct Rows {
    KeyRange keys[2];  // of the two rows; none if there is no such row
    ItemKeys item;
  };
  struct PartSums {
    float max[2], weight[2];
    float out[kValues];
  };
  struct Softmax {
    float max, weight;
  };
  // Where a row is in the arguments.
  struct RowPlace {
    int64_t token, head;  // head: of its head of keys
    bool exists;
  };

  // All threads of the warpgroups.
  __device__ static void sync() {
    asm volatile("bar.sync 1, %0;" ::"n"(K::kMultipliers) : "memory");
  }
  // Whether any of them says so.
  __device__ static bool any(bool mine) {
    uint32_t all;
    asm volatile(
        "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; bar.red.or.pred q, 1, %2, p; "
        "selp.u32 %0, 1, 0, q; }"
        : "=r"(all)
        : "r"(mine ? 1 : 0), "n"(K::kMultipliers)
        : "memory");
    return all != 0;
  }
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int group() { return thread() / 128; }
  // Which of the two rows value i of a fragment is in.
  __device__ static constexpr int row_of(int i) { return i / 2 % 2; }

  __device__ RowPlace place_of(const AttentionItem& item, int row) const {
    int64_t per_token = rows_per_token(a_), at = item.row + row, token = quotient(at, per_token);
    int64_t head = at - token * per_token;
    bool exists = token < a_.spans[item.span].row_count && head < quotient(a_.q_heads, a_.kv_heads);
    return {token, head, exists};
  }

  __device__ Rows rows_of(const AttentionItem& item) const {
    Rows rows;
    rows.item = keys_of(a_, item);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      RowPlace place = place_of(item, accumulator_row(2 * i));
      rows.keys[i] = {0, 0};
      if (place.exists) {
        rows.keys[i] = keys_of_token(a_, a_.spans[item.span], place.token, item.kv_head);
      }
    }
    return rows;
  }

  // Rounded and swizzled; rows that are not there are zeros.
  __device__ void load_queries(const AttentionItem& item) {
    sync();  // all warps have multiplied with the last ones
    int64_t heads = quotient(a_.q_heads, a_.kv_heads);
    constexpr int kChunks = K::kWidth / 8;
    for (int i = thread(); i < kQueryTile * kChunks; i += K::kMultipliers) {
      int r = i / kChunks, chunk = i % kChunks;
      RowPlace place = place_of(item, r);
      const float* q = a_.q + (a_.spans[item.span].row_begin + place.token) * a_.q_row_stride +
                       (item.kv_head * heads + place.head) * K::kWidth + chunk * 8;
      uint4 rounded = {};
      if (place.exists) {
        Eight x = load_eight(q);
        rounded = {round_pair(x.at[0], x.at[1]), round_pair(x.at[2], x.at[3]),
                   round_pair(x.at[4], x.at[5]), round_pair(x.at[6], x.at[7])};
      }
      uint32_t to = K::kQueries + static_cast<uint32_t>(chunk / 8) * K::kBlockBytes +
                    swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(chunk % 8) * 16);
      *reinterpret_cast<uint4*>(shared_ + to) = rounded;
    }
    fence_shared();
    sync();
  }

  __device__ void attend(const AttentionItem& item, const Rows& rows, bool split) {
    float max[2] = {kLowest, kLowest}, weight[2] = {};
    PartRange parts = parts_of(item, rows.item.any);
    for (int32_t p = parts.begin; p < parts.end; ++p) {
      PartSums sums;
      add_part(rows, p, sums);
      if (split) return store_part(item, rows, sums);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        Rescaled r = rescaled(max[i], sums.max[i]);
        max[i] = r.max;
        weight[i] = weight[i] * r.kept + sums.weight[i] * r.added;
        if (rows.keys[i].end > 0) {
          merge(item, i, r, {max[i], weight[i]}, p == parts.begin, p + 1 == parts.end, sums);
        }
      }
    }
  }

  __device__ void add_part(const Rows& rows, int32_t part, PartSums& sums) {
    float max[2] = {kLowest, kLowest}, weights[2] = {};  // of this thread's columns: see RowSums
#pragma unroll
    for (int i = 0; i < kValues; ++i) sums.out[i] = 0;
    for_key_tiles(rows.item.any, part, [&](int32_t first) {
      float scores[kScores];
      multiply_keys(scores);
      mask(scores, rows, first);
      weigh(scores, max, weights, sums.out);
      multiply_values(scores, rows, first, sums.out);
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
    fence_shared();
    uint64_t queries = tile_descriptor(shared_address(shared_ + K::kQueries));
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
    if constexpr (!K::kLatent) release();
  }

  __device__ void mask(float (&scores)[kScores], const Rows& rows, int32_t first) const {
#pragma unroll
    for (int j = 0; j < kScores; ++j) scores[j] *= a_.scale;
    if (a_.soft_cap > 0) soften_all(scores);
    if (all_see(rows, first)) return;
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      if (!holds(rows.keys[row_of(j)], first + accumulator_column(j))) scores[j] = -kInfinity;
    }
  }
  // Few models cap their scores. They turn past one place, so that the code is there once: all
  // others fetch what follows it, too.
  __device__ void soften_all(float (&scores)[kScores]) const {
#pragma unroll 1
    for (int turn = 0; turn < kScores; ++turn) {
      float softened = soften(scores[0], a_.soft_cap);
#pragma unroll
      for (int j = 1; j < kScores; ++j) scores[j - 1] = scores[j];
      scores[kScores - 1] = softened;
    }
  }
  // Whether all rows of the item see all keys of the tile.
  __device__ static bool all_see(const Rows& rows, int32_t first) {
    return first >= rows.item.all.first && first + kKeyTile <= rows.item.all.end;
  }
  __device__ static bool holds(const KeyRange& keys, int32_t key) {
    return key >= keys.first && key < keys.end;
  }

  // Scores become weights; what was summed so far is rescaled to the new maxima.
  __device__ static void weigh(float (&scores)[kScores], float (&max)[2], float (&weights)[2],
                               float (&out)[kValues]) {
    float kept[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float larger = max[i];
#pragma unroll
      for (int j = 0; j < kScores; ++j) {
        if (row_of(j) == i) larger = larger_of(larger, scores[j]);
      }
      larger = larger_of(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
      larger = larger_of(larger, __shfl_xor_sync(0xffffffffu, larger, 2));
      kept[i] = exp_of_difference(max[i] - larger);
      max[i] = larger;
      weights[i] *= kept[i];
    }
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      scores[j] = exp_of_difference(scores[j] - max[row_of(j)]);
      weights[row_of(j)] += scores[j];
    }
#pragma unroll
    for (int j = 0; j < kValues; ++j) out[j] *= kept[row_of(j)];
  }

  // The weights of 16 keys are the operand's fragment of these columns, once they are rounded.
  __device__ void multiply_values(const float (&weights)[kScores], const Rows& rows, int32_t first,
                                  float (&out)[kValues]) {
    uint32_t fragments[kKeyTile / 16][4];
#pragma unroll
    for (int step = 0; step < kKeyTile / 16; ++step) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        fragments[step][j] = round_pair(weights[step * 8 + 2 * j], weights[step * 8 + 2 * j + 1]);
      }
    }
    if constexpr (!K::kLatent) {
      ring_.wait_full();
      fence_shared();
    }
    if (!all_see(rows, first) && any(has_bad_values())) take_bad_values(rows, first, out);
    auto block = static_cast<uint32_t>(group() * K::kOwnValues / 64);
    uint64_t values =
        transposed_descriptor(ring_.at(ring_.stage) + block * K::kBlockBytes, K::kBlockBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeyTile / 16; ++step) {
      Wgmma<K::kOwnValues>::template registers<1>(out, fragments[step],
                                                  values + step * kTransposedStep, 1);
    }
    wgmma_commit();
    wgmma_wait_for(out);
    release();
  }

  // The pairs of values in the stage, in units of 4 bytes.
  static constexpr int kPairs = kKeyTile * K::kValueWidth / 2;
  __device__ uint32_t* pairs() const {
    return reinterpret_cast<uint32_t*>(shared_ + ring_.stage * K::kStageBytes);
  }
  __device__ static bool is_bad(uint32_t half) { return (half & 0x7f80u) == 0x7f80u; }

  __device__ bool has_bad_values() const {
    bool bad = false;
    for (int i = thread(); i < kPairs; i += K::kMultipliers) {
      uint32_t pair = pairs()[i];
      bad = bad || is_bad(pair) || is_bad(pair >> 16);
    }
    return bad;
  }

  // Adds values that are not finite to the sums of the rows that see them, and makes them zeros.
  __device__ void take_bad_values(const Rows& rows, int32_t first, float (&out)[kValues]) {
    for (int32_t r = 0; r < kKeyTile; ++r) {
#pragma unroll
      for (int j = 0; j < kValues; ++j) {
        int column = group() * K::kOwnValues + accumulator_column(j);
        uint32_t at = static_cast<uint32_t>(column / 64) * K::kBlockBytes +
                      swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(column % 64) * 2);
        auto value = *reinterpret_cast<const BFloat16*>(
            reinterpret_cast<const unsigned char*>(pairs()) + at);
        if (is_bad(value.bits) && holds(rows.keys[row_of(j)], first + r)) {
          out[j] += to_float(value);
        }
      }
    }
    sync();
    for (int i = thread(); i < kPairs; i += K::kMultipliers) {
      uint32_t& pair = pairs()[i];
      if (is_bad(pair)) pair &= 0xffff0000u;
      if (is_bad(pair >> 16)) pair &= 0x0000ffffu;
    }
    fence_shared();
    sync();
  }

  __device__ void release() {
    ring_.release(ring_.stage);
    ring_.next();
  }

  // For MergeParts.
  __device__ void store_part(const AttentionItem& item, const Rows& rows, const PartSums& sums) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (rows.keys[i].end == 0) continue;
      float* to = k_.parts + part_offset(a_, a_.spans[item.span], item.results, item.kv_head,
                                         item.row + accumulator_row(2 * i), item.parts.begin);
      if (thread() % 4 == 0 && group() == 0) {
        to[0] = sums.max[i];
        to[1] = sums.weight[i];
      }
#pragma unroll
      for (int j = 0; j < kValues; ++j) {
        if (row_of(j) == i) {
          to[2 + group() * K::kOwnValues + accumulator_column(j)] = sums.out[j];
        }
      }
    }
  }

  // Between parts the sums of row i are where its results will be: registers do not hold both.
  __device__ void merge(const AttentionItem& item, int i, const Rescaled& r, Softmax softmax,
                        bool first, bool last, const PartSums& sums) {
    RowPlace place = place_of(item, accumulator_row(2 * i));
    int64_t head = item.kv_head * quotient(a_.q_heads, a_.kv_heads) + place.head;
    int64_t row = a_.spans[item.span].row_begin + place.token;
    float* out = a_.out + (row * a_.q_heads + head) * K::kValueWidth + group() * K::kOwnValues;
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
  unsigned char* shared_;
  Ring<K> ring_;
};

// Whether the launch splits rows: threads look at spans of their own.
template <class K>
__device__ bool splits(const AttentionArgs& a, unsigned char* shared) {
  auto* sums = reinterpret_cast<unsigned long long*>(shared + K::kWork);
  auto* most = reinterpret_cast<int*>(sums + 2);
  if (threadIdx.x == 0) sums[0] = sums[1] = 0, *most = 0;
  __syncthreads();
  for (int64_t s = threadIdx.x; s < a.span_count; s += K::kThreads) {
    AttentionWork work = work_of(a, a.spans[s]);
    atomicAdd(&sums[0], static_cast<unsigned long long>(work.tiles));
    atomicAdd(&sums[1], static_cast<unsigned long long>(work.results));
    atomicMax(most, static_cast<int>(work.most_parts));
  }
  __syncthreads();
  return plan_of(a, {static_cast<int64_t>(sums[0]), static_cast<int64_t>(sums[1]), *most}).split;
}

template <class K>
__global__ __maxnreg__(K::kRegisters) void run_tensor_attention(const __grid_constant__ K k) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  let_next_kernel_begin();
  if (threadIdx.x == 0) init_ring<K>(shared_address(bytes), kWarpgroup, K::kGroups);
  wait_for_earlier_kernels();
  bool split = splits<K>(k.a, bytes);
  if (threadIdx.x >= K::kMultipliers) {
    release_registers<K::kFetchRegisters>();
    KeyFetcher<K>(k, bytes).run(split);
  } else {
    take_registers<K::kMultiplyRegisters>();
    Attender<K>(k, bytes).run(split);
  }
}

// Writes parts, or the results where it does not split rows: MergeParts does the rest.
inline const float* attend_tiles(const AttentionArgs& args) {
  Queue& queue = queue_of(args.launch.queue);
  auto* parts = reinterpret_cast<float*>(queue.scratch());
  launch_tensor_attention(args, parts, queue.multiprocessors(),
                          [&]<class K>(const K& kernel, int64_t blocks) {
                            launch_early(queue, run_tensor_attention<K>, kernel, blocks);
                          });
  return parts;
}

}  // namespace banyan::cuda::device
