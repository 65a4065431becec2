// The selection of keys in sparse attention; the formulas' sources are in portable/sparse.cpp.
#pragma once

#include "kernels/index_items.h"
#include "kernels/launch.h"
#include "kernels/scratch.h"
#include "kernels/selected_rows.h"
#include "kernels/state_rows.h"
#include "kernels/vector/attention_tile.h"
#include "kernels/vector/dot.h"
#include "kernels/vector/vec_math.h"
#include "kernels/vector/vector.h"

namespace banyan::simd {

// ---- Sums of keys ----

// Adds a row of keys to `to`, with the bits of RowValues.
template <class V, class S>
inline void add_key(const S* key, int64_t width, float* to) {
  auto scale = V::set(1);
  if constexpr (kIsCode<S>) scale = V::set(row_scale(key, {.width = width}, 0) * kCodeUnit<S>);
  for (int64_t c = 0; c < width; c += V::kLanes) {
    auto x = load_up_to<V>(key + c, width - c);
    if constexpr (kIsCode<S>) x = V::mul(x, scale);
    store_up_to<V>(to + c, width - c, V::add(load_up_to<V>(to + c, width - c), x));
  }
}

// The sums of one head in the row whose last position is `last`.
template <class V, class S>
inline void sum_row(const KeySumsArgs& a, const SpanArgs& span, int64_t head, int64_t last) {
  int64_t in_row = a.block_tokens < a.page_size ? a.block_tokens : a.page_size;
  int64_t rows = a.page_size / in_row, stride = row_stride<S>({.width = a.width});
  auto row_of = [&](int64_t position) {
    int64_t page = a.page_table[span.page_begin + position / a.page_size];
    return a.sums + ((page * a.heads + head) * rows + position % a.page_size / in_row) * a.width;
  };
  int64_t first = last + 1 - in_row;
  float* to = row_of(last);
  const float* before = first % a.block_tokens == 0 ? nullptr : row_of(first - 1);
  for (int64_t c = 0; c < a.width; ++c) to[c] = before == nullptr ? 0 : before[c];
  const S* key = static_cast<const S*>(a.keys) +
                 pool_offset(a.page_table, span, first, head, a.heads, a.page_size, stride);
  for (int64_t j = 0; j < in_row; ++j) add_key<V>(key + j * stride, a.width, to);
}

// Updates the rows that end in the span, each from the one before, so one worker handles all rows
// of a head. Few steps have any.
template <class V, class S>
inline void sum_keys(const KeySumsArgs& a) {
  int64_t in_row = a.block_tokens < a.page_size ? a.block_tokens : a.page_size, ended = 0;
  for (const SpanArgs* s = a.spans; s < a.spans + a.span_count; ++s) {
    ended += (s->first_position + s->row_count) / in_row - s->first_position / in_row;
  }
  if (ended == 0) return;
  constexpr int64_t kAloneMax = 1 << 15;  // additions that finish before a worker wakes up
  Launch launch = a.launch;
  if (ended * in_row * a.heads * a.width <= kAloneMax) launch.threads = nullptr;
  parallel_interleaved(launch, [&](int64_t begin, int64_t step) {
    for (int64_t item = begin; item < a.span_count * a.heads; item += step) {
      const SpanArgs& span = a.spans[item / a.heads];
      int64_t end = span.first_position + span.row_count;
      int64_t next = (span.first_position / in_row + 1) * in_row;
      for (; next <= end; next += in_row) sum_row<V, S>(a, span, item % a.heads, next - 1);
    }
  });
}

template <class V>
void key_sums(const KeySumsArgs& a) {
  if (a.key_dtype == DType::kBF16) return sum_keys<V, BFloat16>(a);
  if (a.key_dtype == DType::kF16) return sum_keys<V, Float16>(a);
  if (a.key_dtype == DType::kI8) return sum_keys<V, int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return sum_keys<V, Float8E4M3>(a);
  sum_keys<V, float>(a);
}

// ---- Scores of blocks ----

// Calls body(span, i, r, head) for the rows of the part and all heads, shared out among workers:
// row i of the span, which is row r of the part.
template <class Body>
static inline void for_row_heads(const Launch& launch, const SpanArgs* spans, int64_t span_count,
                                 const RowPart& part, int64_t heads, int64_t grain,
                                 const Body& body) {
  parallel_for(launch, part.count * heads, grain, [&](int64_t begin, int64_t end) {
    int64_t r = begin / heads;
    for_span_rows(spans, span_count, part.begin + r, part.begin + (end + heads - 1) / heads,
                  [&](const SpanArgs& span, int64_t i) {
                    for (int64_t head = 0; head < heads; ++head) {
                      int64_t item = r * heads + head;
                      if (item >= begin && item < end) body(span, i, r, head);
                    }
                    ++r;
                  });
  });
}

template <class V>
inline void score_blocks(const BlockScoresArgs& a, const SpanArgs& span, int64_t i, int64_t head,
                         float* mean, float* scores) {
  constexpr int64_t kBlocks = 4;  // side by side
  int64_t group = a.q_heads / a.heads, width = a.width;
  const float* q = a.q + (span.row_begin + i) * a.q_row_stride + head * group * width;
  auto count = V::set(static_cast<float>(group));
  for (int64_t c = 0; c < width; c += V::kLanes) {
    auto sum = V::set(0);
    for (int64_t g = 0; g < group; ++g)
      sum = V::add(sum, load_up_to<V>(q + g * width + c, width - c));
    V::store(mean + c, V::div(sum, count));
  }
  int64_t blocks = (span.first_position + i) / a.block_tokens;
  for (int64_t b = 0; b < blocks; b += kBlocks) {
    const float* sums[kBlocks];
    for (int64_t n = 0; n < kBlocks; ++n) {
      int64_t block = b + n < blocks ? b + n : blocks - 1;
      sums[n] =
          a.sums +
          sums_row(a.page_table, span, block, head, a.heads, a.page_size, a.block_tokens) * width;
    }
    typename V::F dots[kBlocks];
#pragma GCC unroll 4
    for (int64_t n = 0; n < kBlocks; ++n) dots[n] = V::set(0);
    for (int64_t c = 0; c < width; c += V::kLanes) {
      auto x = V::load(mean + c);
#pragma GCC unroll 4
      for (int64_t n = 0; n < kBlocks; ++n) {
        dots[n] = V::fma(x, load_up_to<V>(sums[n] + c, width - c), dots[n]);
      }
    }
    float all[kBlocks];
    V::sum4(dots[0], dots[1], dots[2], dots[3], all);
    for (int64_t n = 0; n < kBlocks && b + n < blocks; ++n) {
      scores[b + n] = all[n] / static_cast<float>(a.block_tokens);
    }
  }
}

template <class V>
void block_scores(const BlockScoresArgs& a) {
  for_row_heads(
      a.launch, a.spans, a.span_count, a.part, a.heads, rows_per_job(a.entries_max * a.width),
      [&](const SpanArgs& span, int64_t i, int64_t r, int64_t head) {
        float* mean = worker_scratch(static_cast<size_t>(a.width + V::kLanes));
        score_blocks<V>(a, span, i, head, mean, a.scores + (r * a.heads + head) * a.entries_max);
      });
}

// ---- Scores of blocks by the best of their keys ----

// The largest product of each of `count` queries with contiguous keys.
template <class V, class S>
inline void raise_maxima(int64_t count, const float* const* q, const S* keys, int64_t key_count,
                         int64_t width, float* best) {
  int64_t stride = row_stride<S>({.width = width});
  for (int64_t j = 0; j < key_count; j += kTileOutputs) {
    const S* rows[kTileOutputs];  // the last one may repeat
    for (int64_t n = 0; n < kTileOutputs; ++n) {
      rows[n] = keys + (j + n < key_count ? j + n : key_count - 1) * stride;
    }
    float scales[kTileOutputs];
    if constexpr (kIsCode<S>) {
      for (int64_t n = 0; n < kTileOutputs; ++n) {
        scales[n] = row_scale(rows[n], {.width = width}, 0) * kCodeUnit<S>;
      }
    }
    for (int64_t i = 0; i < count; i += V::kTileRows) {
      int64_t side = count - i < V::kTileRows ? count - i : V::kTileRows;
      float dots[V::kTileRows][kTileOutputs];
      dot_tile_of<V, S>(side, q + i, rows, width, dots);
      for (int64_t r = 0; r < side; ++r) {
        for (int64_t n = 0; n < kTileOutputs; ++n) {
          float dot = kIsCode<S> ? dots[r][n] * scales[n] : dots[r][n];
          best[i + r] = dot > best[i + r] ? dot : best[i + r];
        }
      }
    }
  }
}

// Scores the blocks that begin in the item, for its rows and all heads, which share the reading of
// keys. The item ends at a block boundary, or after the last block that its rows score.
template <class V, class S>
inline void max_of_blocks(const BlockMaximaArgs& a, const IndexItem& item) {
  int64_t stride = row_stride<S>({.width = a.width}), block = a.block_tokens;
  auto* memory = worker_scratch(static_cast<size_t>(kIndexRows * a.heads * 3));
  auto** queries = reinterpret_cast<const float**>(memory);
  float* best = memory + kIndexRows * a.heads * 2;
  int64_t position = item.span->first_position + item.i;  // of the first row
  for (int64_t b = item.begin / block; (b + 1) * block <= item.end; ++b) {
    int64_t first = 0;  // row that scores the block
    while (first < item.rows && b >= (position + first) / block) ++first;
    int64_t count = (item.rows - first) * a.heads;
    for (int64_t n = 0; n < count; ++n) {
      queries[n] = index_query(a, item, first + n / a.heads, n % a.heads);
      best[n] = -__builtin_inff();
    }
    for (int64_t j = b * block, run = 0; j < (b + 1) * block && count > 0; j += run) {
      run = a.page_size - j % a.page_size;
      if (run > (b + 1) * block - j) run = (b + 1) * block - j;
      const S* keys = static_cast<const S*>(a.keys) +
                      pool_offset(a.page_table, *item.span, j, 0, 1, a.page_size, stride);
      raise_maxima<V>(count, queries, keys, run, a.width, best);
    }
    for (int64_t n = 0; n < count; ++n) {
      int64_t r = item.score_row + first + n / a.heads;
      a.scores[(r * a.heads + n % a.heads) * a.entries_max + b] = best[n];
    }
  }
}

template <class V, class S>
inline void score_maxima(const BlockMaximaArgs& a) {
  int64_t item_keys =
      kIndexKeys > a.block_tokens ? kIndexKeys / a.block_tokens * a.block_tokens : a.block_tokens;
  share_index_items(a, item_keys, [&](const auto& for_own_items) {
    for_own_items([&](const IndexItem& item) { max_of_blocks<V, S>(a, item); });
  });
}

template <class V>
void block_maxima(const BlockMaximaArgs& a) {
  if (a.key_dtype == DType::kBF16) return score_maxima<V, BFloat16>(a);
  if (a.key_dtype == DType::kF16) return score_maxima<V, Float16>(a);
  if (a.key_dtype == DType::kI8) return score_maxima<V, int8_t>(a);
  if (a.key_dtype == DType::kF8E4M3) return score_maxima<V, Float8E4M3>(a);
  score_maxima<V, float>(a);
}

// ---- The best of them ----

// The largest threshold that at least `count` of the `n` orders reach, where count <= n. Found bit
// by bit from the highest, with one pass over all orders per bit.
template <class V>
inline uint32_t threshold_of(const uint32_t* orders, int64_t n, int64_t count) {
  uint32_t threshold = 0;
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    uint32_t tried = threshold | bit, reach = 0;
    for (int64_t j = 0; j < n; ++j) reach += orders[j] >= tried ? 1 : 0;
    if (reach >= count) threshold = tried;
  }
  return threshold;
}

// Writes the runs of a row: all entries above the threshold, and the first of those equal to it.
template <class V>
inline void select_row(const SelectKeysArgs& a, const float* scores, int64_t row, int64_t head,
                       int64_t position) {
  Candidates c = candidates_at(a.rule, position);
  RunWriter writer(a, row, head, position);
  if (c.count == c.all) return writer.add(0, c.all);
  int64_t n = c.end - c.first;
  auto* orders = reinterpret_cast<uint32_t*>(worker_scratch(static_cast<size_t>(n)));
  for (int64_t j = 0; j < n; ++j) orders[j] = score_order(scores[c.first + j]);
  uint32_t threshold = threshold_of<V>(orders, n, c.count);
  int64_t equals = c.count;
  for (int64_t j = 0; j < n; ++j) equals -= orders[j] > threshold ? 1 : 0;
  writer.add(0, c.first);
  for (int64_t j = 0; j < n; ++j) {
    if (orders[j] < threshold || (orders[j] == threshold && equals-- <= 0)) continue;
    writer.add(c.first + j, c.first + j + 1);
  }
  writer.add(c.end, c.all);
}

template <class V>
void select_keys(const SelectKeysArgs& a) {
  constexpr int64_t kPasses = 32;
  for_row_heads(a.launch, a.spans, a.span_count, a.part, a.heads,
                rows_per_job(a.entries_max * kPasses / V::kLanes),
                [&](const SpanArgs& span, int64_t i, int64_t r, int64_t head) {
                  select_row<V>(a, a.scores + (r * a.heads + head) * a.entries_max,
                                span.row_begin + i, head, span.first_position + i);
                });
}

}  // namespace banyan::simd
