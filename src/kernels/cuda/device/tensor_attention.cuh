// Attention by wgmma (kernels/cuda/tensor_attention.h has what it computes). Rows of queries are
// the 64 rows of an instruction.
//
// A block has a warpgroup that fetches tiles of keys and of values, and one or two that multiply. A
// multiplier has the tensor cores multiply the keys of the next tile and the values of this one
// while it computes weights; two of them are on a multiprocessor, in one block or in two, so that
// one multiplies while the other computes. Of latents a tile is keys and values at once, of which
// only two fit: there one product follows the other, and two warpgroups have half of a tile's
// weights and half of the values' columns each. The floors are the bytes of the visible keys and
// values, and 2 (head_dim + value_dim) operations for each pair and head.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device/key_fetcher.cuh"
#include "kernels/cuda/device/packed_pairs.cuh"
#include "kernels/cuda/device/queue.cuh"

namespace banyan::cuda::device {

// A thread of a warpgroup. It has two rows of a tile, the one at accumulator_row(0) and the eighth
// after it, and a quarter of the columns of each.
template <class K>
class Attender {
 public:
  using T = typename K::Element;
  static constexpr int kScores = K::kOwnKeys / 2, kValues = K::kOwnValues / 2;  // of a thread

  __device__ Attender(const K& k, unsigned char* shared)
      : k_(k),
        a_(k.a),
        shared_(shared),
        keys_{shared_address(shared)},
        values_{shared_address(shared), K::kLatent ? 0 : 1},
        factor_(exponent_factor(k.a)),
        group_(of_first_lane(thread() / kWarpgroup)) {}

  __device__ void run(bool split) {
    for_attention_items<K::kTileRows>(Warp(), a_, split, blockIdx.x, gridDim.x,
                                      [&](const AttentionItem& item) { run_item(item, split); });
  }

 private:
  struct Rows {
    int32_t ends[2];       // of the keys of the two rows; 0 if there is no such row
    KeyRange seen_by_all;  // of the item's rows
  };
  // All of these have two rows. Softmax: of a part; its weights are of this thread's columns, see
  // RowSums.
  struct Softmax {
    RowMax<T> max[2];
    float weight[2] = {};
  };
  struct Kept {  // factors of what was summed so far
    float of[2];
  };
  struct Totals {  // of several parts
    float max[2] = {kLowest, kLowest}, weight[2] = {};
  };
  struct RowTotal {
    float max, weight;
  };
  // Where a row is in the arguments.
  struct RowPlace {
    int64_t token = 0, head = 0;  // head: of its head of keys
    bool exists = false;
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
  __device__ int own_row(int i) const {  // in the tile
    return accumulator_row(2 * i) + (K::kRowGroups > 1 ? group_ * int{kQueryTile} : 0);
  }
  // The first of the warpgroup's keys in a tile, and of its columns of values.
  __device__ int own_key() const { return K::kShareRows ? group_ * K::kOwnKeys : 0; }
  __device__ int own_column() const { return K::kShareRows ? group_ * K::kOwnValues : 0; }
  // Which of the two rows value i of a fragment is in.
  __device__ static constexpr int row_of(int i) { return i / 2 % 2; }

  __device__ RowPlace place_of(const AttentionItem& item, int row) const {
    int64_t per_token = rows_per_token(a_), at = item.row + row, token = quotient(at, per_token);
    int64_t head = at - token * per_token;
    bool exists = token < a_.spans[item.span].row_count && head < quotient(a_.q_heads, a_.kv_heads);
    return {token, head, exists};
  }

  __device__ Rows rows_of(const AttentionItem& item, const KeyRange& seen_by_all) const {
    Rows rows;
    rows.seen_by_all = seen_by_all;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      RowPlace place = place_of(item, own_row(i));
      rows.ends[i] = 0;
      if (place.exists) {
        rows.ends[i] = keys_of_token(a_, a_.spans[item.span], place.token, item.kv_head).end;
      }
    }
    return rows;
  }

  // Rounded and swizzled; rows that are not there are zeros.
  __device__ void load_queries(const AttentionItem& item) {
    sync();  // all warps have multiplied with the last ones
    int64_t heads = quotient(a_.q_heads, a_.kv_heads);
    float factor = query_factor(a_);
    constexpr int kChunks = K::kWidth / 8;
    int64_t row_begin = a_.spans[item.span].row_begin;
    auto rows = static_cast<int>(query_rows(a_, a_.spans[item.span]) - item.row);
#pragma unroll 2
    for (int i = thread(); i < K::kTileRows * kChunks; i += K::kMultipliers) {
      int r = i / kChunks, chunk = i % kChunks;
      uint4 rounded = {};
      // Of a step that decodes there are few.
      RowPlace place = r < rows ? place_of(item, r) : RowPlace{};
      if (place.exists) {
        const float* q = a_.q + (row_begin + place.token) * a_.q_row_stride +
                         (item.kv_head * heads + place.head) * K::kWidth + chunk * 8;
        Eight x = load_eight(q);
#pragma unroll
        for (float& value : x.at) value *= factor;
        rounded = {round_pair<T>(x.at[0], x.at[1]), round_pair<T>(x.at[2], x.at[3]),
                   round_pair<T>(x.at[4], x.at[5]), round_pair<T>(x.at[6], x.at[7])};
      }
      constexpr int kRows = kQueryTile;
      uint32_t to =
          K::kQueries + static_cast<uint32_t>(r / kRows) * K::kStageBytes +
          static_cast<uint32_t>(chunk / 8) * K::kBlockBytes +
          swizzled(static_cast<uint32_t>(r % kRows), static_cast<uint32_t>(chunk % 8) * 16);
      *reinterpret_cast<uint4*>(shared_ + to) = rounded;
    }
    fence_shared();
    sync();
  }

  // Of the parts of a long span, most are empty where a row has selected few keys.
  __device__ void run_item(const AttentionItem& item, bool split) {
    ItemKeys seen = keys_of<K::kTileRows>(a_, item);
    KeyRange keys = tile_keys(item, seen.any);
    if (keys.first >= keys.end) return;
    load_queries(item);
    attend(item, rows_of(item, seen.all), keys, boxed_keys(k_, seen.any), split);
  }

  // While weights of a tile are computed, tensor cores multiply the values of the one before it.
  __device__ void attend(const AttentionItem& item, const Rows& rows, const KeyRange& keys,
                         const KeyRange& boxed, bool split) {
    float scores[kScores], out[kValues];
    uint32_t weights[kKeyTile / 16][4];
    Softmax part;
    Totals of_thread, &totals = K::kTight ? shared_totals() : of_thread;
    totals = {};
    int32_t first = keys.first;
    bool starts = true;  // a part: nothing is summed yet
    int32_t second_part = part_begin(part_of(first) + 1);
    wait_for(keys_, covers(boxed, first));
    multiply_keys(scores);
    wait_for_keys<0>(scores);
    weigh(scores, rows, first, part);
    round_weights(scores, weights);
    for (int32_t next = first + kTileKeys; next < keys.end; next += kTileKeys) {
      if constexpr (K::kLatent) {
        multiply_values(weights, rows, first, starts, out);
        wait_for_values(out);
        wait_for(keys_, covers(boxed, next));
        multiply_keys(scores);
      } else {
        values_.wait_full();
        wait_for(keys_, covers(boxed, first) && covers(boxed, next));
        multiply_keys(scores);
        multiply_values(weights, rows, first, starts, out);
      }
      wait_for_keys<K::kLatent ? 0 : 1>(scores);
      first = next;
      starts = first == part_begin(part_of(first));
      Softmax before = part;
      if (starts) part = {};
      Kept kept = weigh(scores, rows, first, part);
      if constexpr (!K::kLatent) {
        if constexpr (!K::kTight) compute_weights_now(part);
        wait_for_values(out);
      }
      if (starts) {
        end_part<false>(item, rows, split, first > second_part, before, out, totals);
      } else {
        rescale(kept, out);
      }
      round_weights(scores, weights);
    }
    if constexpr (!K::kLatent) wait_for(values_, covers(boxed, first));
    multiply_values(weights, rows, first, starts, out);
    wait_for_values(out);
    end_part<true>(item, rows, split, first >= second_part, part, out, totals);
  }

  // Until the stage is full. Boxes come as products read them, without a fence.
  __device__ static void wait_for(const Ring<K>& ring, bool by_boxes) {
    ring.wait_full();
    if (!by_boxes) fence_shared();
  }

  __device__ void multiply_keys(float (&scores)[kScores]) {
    uint32_t of_group = K::kRowGroups > 1 ? group_ * K::kStageBytes : 0;
    uint64_t queries = tile_descriptor(shared_address(shared_ + K::kQueries) + of_group);
    uint64_t keys =
        tile_descriptor(keys_.at(keys_.stage) + static_cast<uint32_t>(own_key()) * kTileRowBytes);
    asm volatile("" : "+l"(queries));  // or registers keep a descriptor for each step
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < K::kWidth / 16; ++step) {
      uint64_t at = static_cast<uint64_t>(step / 4) * (K::kBlockBytes >> 4) +
                    static_cast<uint64_t>(step % 4) * kDescriptorStep;
      Wgmma<K::kOwnKeys, T>::shared(scores, queries + at, keys + at, step > 0 ? 1 : 0);
    }
    wgmma_commit();
  }
  // Later products may be under way.
  template <int later>
  __device__ void wait_for_keys(float (&scores)[kScores]) {
    wgmma_wait_for<later>(scores);
    if constexpr (!K::kLatent) release(keys_);
  }

  __device__ void mask(float (&scores)[kScores], const Rows& rows, int32_t first) const {
    if (a_.soft_cap > 0) soften_all(scores);
    if (all_see(rows, first)) return;
    KeyRange keys[2] = {keys_of_row(rows, 0), keys_of_row(rows, 1)};
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      int32_t key = first + own_key() + accumulator_column(j);
      if (!holds(keys[row_of(j)], key)) scores[j] = -kInfinity;
    }
  }
  // Few models cap their scores. They turn past one place, so that the code is there once: all
  // others fetch what follows it, too.
  __device__ void soften_all(float (&scores)[kScores]) const {
#pragma unroll 1
    for (int turn = 0; turn < kScores; ++turn) {
      float softened = softened_score(scores[0], a_);
#pragma unroll
      for (int j = 1; j < kScores; ++j) scores[j - 1] = scores[j];
      scores[kScores - 1] = softened;
    }
  }
  __device__ Totals& shared_totals() const {
    return reinterpret_cast<Totals*>(shared_ + K::kTotals)[thread()];
  }

  // Whether all rows of the item see all keys of the tile.
  __device__ static bool all_see(const Rows& rows, int32_t first) {
    return covers(rows.seen_by_all, first);
  }
  __device__ KeyRange keys_of_row(const Rows& rows, int i) const {
    int32_t end = rows.ends[i];
    bool windowed = a_.window > 0 && a_.selected.runs == nullptr && end > a_.window;
    return {windowed ? end - static_cast<int32_t>(a_.window) : 0, end};
  }
  __device__ static bool holds(const KeyRange& keys, int32_t key) {
    return key >= keys.first && key < keys.end;
  }

  // Scores become weights.
  __device__ Kept weigh(float (&scores)[kScores], const Rows& rows, int32_t first, Softmax& part) {
    mask(scores, rows, first);
    float2 largest = make_float2(largest_of_row(scores, 0), largest_of_row(scores, 1));
    if constexpr (K::kShareRows) {
      auto* maxima = reinterpret_cast<float2*>(shared_ + K::kMaxima);
      maxima[thread()] = largest;
      sync();
      float2 others = maxima[thread() ^ kWarpgroup];
      largest = make_float2(larger_of(largest.x, others.x), larger_of(largest.y, others.y));
    }
    Kept kept;
    float offset[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      kept.of[i] = part.max[i].raise((i == 0 ? largest.x : largest.y) * factor_);
      offset[i] = part.max[i].offset();
      part.weight[i] *= kept.of[i];
    }
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      scores[j] = weight_of<T>(scores[j], factor_, offset[row_of(j)]);
      part.weight[row_of(j)] += scores[j];
    }
    return kept;
  }
  // A branch that needs all weights and is never taken, as no sum of them is a negative zero.
  // Without it, ptxas computes them after the next wait for a product instead of during it.
  __device__ static void compute_weights_now(const Softmax& part) {
    uint32_t sums = __float_as_uint(part.weight[0]) | __float_as_uint(part.weight[1]);
    if (__any_sync(0xffffffffu, sums == 0x80000000u)) {
      asm volatile("nanosleep.u32 0;" ::: "memory");
    }
  }
  __device__ static float largest_of_row(const float (&scores)[kScores], int row) {
    float largest = -kInfinity;
#pragma unroll
    for (int j = 0; j < kScores; ++j) {
      if (row_of(j) == row) largest = larger_of(largest, scores[j]);
    }
    largest = larger_of(largest, __shfl_xor_sync(0xffffffffu, largest, 1));
    return larger_of(largest, __shfl_xor_sync(0xffffffffu, largest, 2));
  }
  // What was summed so far, to the new maxima.
  __device__ static void rescale(const Kept& kept, float (&out)[kValues]) {
    if (kept.of[0] == 1 && kept.of[1] == 1) return;
#pragma unroll
    for (int j = 0; j < kValues; ++j) out[j] *= kept.of[row_of(j)];
  }

  // The weights of 16 keys are the operand's fragment of these columns, once they are rounded. A
  // thread of each of the warpgroups that share rows has the same places in all fragments.
  __device__ void round_weights(const float (&weights)[kScores],
                                uint32_t (&rounded)[kKeyTile / 16][4]) {
    constexpr int kSteps = kKeyTile / 16, kOwnSteps = K::kOwnKeys / 16;
#pragma unroll
    for (int step = 0; step < kOwnSteps; ++step) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        rounded[step][j] = round_pair<T>(weights[step * 8 + 2 * j], weights[step * 8 + 2 * j + 1]);
      }
    }
    if constexpr (K::kShareRows) {
      auto* all = reinterpret_cast<uint4*>(shared_ + K::kExchange) + thread() % kWarpgroup;
#pragma unroll
      for (int step = 0; step < kOwnSteps; ++step) {
        const uint32_t(&own)[4] = rounded[step];
        all[(group_ * kOwnSteps + step) * kWarpgroup] = {own[0], own[1], own[2], own[3]};
      }
      sync();
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint4 of_step = all[step * kWarpgroup];
        rounded[step][0] = of_step.x, rounded[step][1] = of_step.y;
        rounded[step][2] = of_step.z, rounded[step][3] = of_step.w;
      }
    }
  }

  __device__ void multiply_values(const uint32_t (&weights)[kKeyTile / 16][4], const Rows& rows,
                                  int32_t first, bool starts, float (&out)[kValues]) {
    int keep = starts ? 0 : 1;
    if (!all_see(rows, first) && any(has_bad_values())) {
      if (starts) {
#pragma unroll
        for (int j = 0; j < kValues; ++j) out[j] = 0;
      }
      keep = 1;
      take_bad_values(rows, first, out);
    }
    auto block = static_cast<uint32_t>(own_column() / 64);
    uint64_t values =
        transposed_descriptor(values_.at(values_.stage) + block * K::kBlockBytes, K::kBlockBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeyTile / 16; ++step) {
      Wgmma<K::kOwnValues, T>::template registers<1>(
          out, weights[step], values + step * kTransposedStep, step > 0 ? 1 : keep);
    }
    wgmma_commit();
  }
  __device__ void wait_for_values(float (&out)[kValues]) {
    wgmma_wait_for<0>(out);
    release(values_);
    if constexpr (K::kLatent) keys_ = values_;
  }

  // The pairs of values in the stage, in units of 4 bytes.
  static constexpr int kPairs = kKeyTile * K::kValueWidth / 2;
  __device__ uint32_t* pairs() const {
    return reinterpret_cast<uint32_t*>(shared_ + values_.stage * K::kStageBytes);
  }
  __device__ static bool is_bad(uint32_t half) {
    constexpr uint32_t kExponent = std::is_same_v<T, Float16> ? 0x7c00 : 0x7f80;
    return (half & kExponent) == kExponent;
  }
  __device__ static float float_of_bad(uint32_t half) {
    if constexpr (std::is_same_v<T, Float16>) {
      return __uint_as_float((half & 0x8000u) << 16 | 0x7f800000u | (half & 0x3ffu) << 13);
    }
    return __uint_as_float(half << 16);
  }

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
    KeyRange keys[2] = {keys_of_row(rows, 0), keys_of_row(rows, 1)};
#pragma unroll 1
    for (int32_t r = 0; r < kKeyTile; ++r) {
      int first_column = own_column();
      asm volatile("" : "+r"(first_column));  // or registers keep the places of all columns
#pragma unroll
      for (int j = 0; j < kValues; ++j) {
        int column = first_column + accumulator_column(j);
        uint32_t at = static_cast<uint32_t>(column / 64) * K::kBlockBytes +
                      swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(column % 64) * 2);
        uint32_t half = *reinterpret_cast<const uint16_t*>(
            reinterpret_cast<const unsigned char*>(pairs()) + at);
        if (is_bad(half) && holds(keys[row_of(j)], first + r)) out[j] += float_of_bad(half);
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

  // Keys and values take stages in turn.
  __device__ static void release(Ring<K>& ring) {
    ring.release(ring.stage);
    ring.template next<K::kLatent ? 1 : 2>();
  }

  // The sums of a part are complete: they are written, or merged with those of earlier parts, if
  // the part continues any.
  template <bool kLast>
  __device__ void end_part(const AttentionItem& item, const Rows& rows, bool split, bool continues,
                           const Softmax& part, const float (&out)[kValues], Totals& totals) {
    float2 weights = make_float2(quad_sum(part.weight[0]), quad_sum(part.weight[1]));
    if constexpr (K::kShareRows) {
      float2 others = exchanged(weights);
      weights = make_float2(weights.x + others.x, weights.y + others.y);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float weight = i == 0 ? weights.x : weights.y;
      if (split) {
        if (rows.ends[i] > 0) store_part(item, i, {part.max[i].exponent, weight}, out);
        continue;
      }
      Rescaled r = rescaled(totals.max[i], part.max[i].exponent);
      totals.max[i] = r.max;
      totals.weight[i] = totals.weight[i] * r.kept + weight * r.added;
      if (rows.ends[i] > 0) merge<kLast>(item, i, r, continues, totals, out);
    }
  }

  __device__ static float quad_sum(float weight) {
    float pair = weight + __shfl_xor_sync(0xffffffffu, weight, 1);
    return pair + __shfl_xor_sync(0xffffffffu, pair, 2);
  }
  // What the other warpgroup's thread with the same rows has.
  __device__ float2 exchanged(float2 value) {
    auto* values = reinterpret_cast<float2*>(shared_ + K::kExchange);
    sync();  // the weights there have been read
    values[thread()] = value;
    sync();
    float2 others = values[thread() ^ kWarpgroup];
    sync();
    return others;
  }

  // For MergeParts.
  __device__ void store_part(const AttentionItem& item, int i, RowTotal row,
                             const float (&out)[kValues]) {
    float* to = k_.parts + part_offset(a_, a_.spans[item.span], item.results, item.kv_head,
                                       item.row + own_row(i), item.parts.begin);
    if (thread() % 4 == 0 && own_column() == 0) {
      to[0] = row.max;
      to[1] = row.weight;
    }
    to += 2 + own_column();
#pragma unroll
    for (int j = 0; j < kValues; j += 2) {
      if (row_of(j) == i) pair_at(to, j) = make_float2(out[j], out[j + 1]);
    }
  }

  // The results of row i.
  struct Results {
    float* at;  // of the warpgroup's columns
    int64_t head;
  };
  __device__ Results results_of(const AttentionItem& item, int i) const {
    RowPlace place = place_of(item, own_row(i));
    int64_t head = item.kv_head * quotient(a_.q_heads, a_.kv_heads) + place.head;
    int64_t row = a_.spans[item.span].row_begin + place.token;
    return {a_.out + (row * a_.q_heads + head) * K::kValueWidth + own_column(), head};
  }
  // Accumulators j and j + 1 have neighbouring columns.
  __device__ static float2& pair_at(float* columns, int j) {
    return *reinterpret_cast<float2*>(columns + accumulator_column(j));
  }

  // Accumulators j and j + 1 of the sums so far: this thread's own place, or where there is no room
  // for one, that of the results.
  __device__ float2& sums_at(float* results, int j) const {
    if constexpr (!K::kKeepsSums) return pair_at(results, j);
    return reinterpret_cast<float2*>(shared_ + K::kSums)[j / 2 * K::kMultipliers + thread()];
  }

  template <bool kLast>
  __device__ void merge(const AttentionItem& item, int i, const Rescaled& r, bool continues,
                        const Totals& totals, const float (&out)[kValues]) {
    constexpr int kAtOnce = 32;  // accumulators, half of which are the row's: loads overlap
    Results to = results_of(item, i);
    LastStep step = last_step(a_, to.head, totals.max[i], totals.weight[i]);
#pragma unroll
    for (int first = 0; first < kValues; first += kAtOnce) {
      float2 sums[kAtOnce / 4];
#pragma unroll
      for (int k = 0; k < kAtOnce / 4; ++k) sums[k] = make_float2(0, 0);
      if (continues) {
#pragma unroll
        for (int k = 0; k < kAtOnce / 4; ++k) sums[k] = sums_at(to.at, first + 4 * k + 2 * i);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce / 4; ++k) {
        int j = first + 4 * k + 2 * i;
        float2 total = make_float2(sums[k].x * r.kept + out[j] * r.added,
                                   sums[k].y * r.kept + out[j + 1] * r.added);
        if constexpr (kLast) {
          pair_at(to.at, j) = make_float2(step(total.x), step(total.y));
        } else {
          sums_at(to.at, j) = total;
        }
      }
    }
  }

  const K& k_;
  const AttentionArgs& a_;
  unsigned char* shared_;
  Ring<K> keys_, values_;  // as the tiles of keys and of values follow each other
  float factor_;           // of scores
  int group_;              // of the warpgroups that multiply
};

// Whether the launch splits rows: threads look at spans of their own, and one of them decides.
template <class K>
__device__ bool splits(const K& k, unsigned char* shared) {
  const AttentionArgs& a = k.a;
  auto* sums = reinterpret_cast<unsigned long long*>(shared + K::kWork);
  auto* most = reinterpret_cast<int*>(sums + 2);
  if (threadIdx.x == 0) sums[0] = sums[1] = 0, *most = 0;
  __syncthreads();
  for (int64_t s = threadIdx.x; s < a.span_count; s += K::kThreads) {
    AttentionWork work = work_of(a, a.spans[s], K::kTileRows);
    atomicAdd(&sums[0], static_cast<unsigned long long>(work.tiles));
    atomicAdd(&sums[1], static_cast<unsigned long long>(work.results));
    atomicMax(most, static_cast<int>(work.most_parts));
  }
  __syncthreads();
  int* decision = most + 1;
  if (threadIdx.x == 0) {
    AttentionWork work{static_cast<int64_t>(sums[0]), static_cast<int64_t>(sums[1]), *most};
    *decision = plan_of(a, work, k.blocks).split ? 1 : 0;
  }
  __syncthreads();
  return *decision != 0;
}

template <class K>
__global__ __maxnreg__(K::kRegisters) void run_tensor_attention(const __grid_constant__ K k) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  let_next_kernel_begin();
  if (threadIdx.x == 0) {
    for (int i = 0; i < K::kCodeCopies; ++i) {
      barrier_init(shared_address(bytes + K::kCodeBarriers + i * 8), 1);
    }
    init_ring<K>(shared_address(bytes), kWarpgroup, K::kGroups);
  }
  if (threadIdx.x == K::kMultipliers && k.box_rows > 0) {
    prefetch_map(k.keys);
    prefetch_map(k.values);
  }
  wait_for_earlier_kernels();
  bool split = splits(k, bytes);
  if (threadIdx.x >= K::kMultipliers) {
    release_registers<K::kFetchRegisters>();
    KeyFetcher<K>(k, bytes).run(split);
  } else {
    take_registers<K::kMultiplyRegisters>();
    Attender<K>(k, bytes).run(split);
  }
}

// Calls merge(MergeParts) after the launch.
template <class Merge>
void attend_tiles(const AttentionArgs& args, const Merge& merge) {
  Queue& queue = queue_of(args.launch.queue);
  launch_tensor_attention(
      args, reinterpret_cast<float*>(queue.scratch()), queue.multiprocessors(),
      [&](const PoolRows& rows) { return queue.maps().find(rows); },
      [&]<class K>(const K& kernel, const MergeParts& parts) {
        launch_early(queue, run_tensor_attention<K>, kernel, kernel.blocks);
        merge(parts);
      });
}

}  // namespace banyan::cuda::device
