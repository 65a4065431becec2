// The scores of DeepSeek's sparse attention (kernels/sparse.h), in two arithmetics: f32, and pairs
// of bf16 on a processor that multiplies those.
//
// Keys take the lanes of a vector: they are transposed once for all rows and heads of an item, and
// no sum runs across lanes. In pairs, codes of fp8 become bf16 on the way, which rounds nothing,
// and so do queries that were rounded to such codes.
#pragma once

#include "kernels/index_items.h"
#include "kernels/scratch.h"
#include "kernels/vector/dot.h"
#include "kernels/vector/vector.h"
#include "tensor/float_types.h"

namespace banyan::simd {

// Keys of one item, one after another.
template <class V, class S>
class IndexKeys {
 public:
  IndexKeys(const IndexScoresArgs& a, const IndexItem& item)
      : a_(a), item_(item), stride_(row_stride<S>(shape())) {}

  RowShape shape() const { return {.width = a_.width}; }
  const S* row(int64_t key) const {
    return static_cast<const S*>(a_.keys) +
           pool_offset(a_.page_table, *item_.span, key, 0, 1, a_.page_size, stride_);
  }
  // Those from `key` on; after the item's last key, that one again.
  template <int64_t N>
  void locate(int64_t key, const S* (&rows)[N]) const {
    for (int64_t n = 0; n < N; ++n) {
      bool follows = n > 0 && (key + n) % a_.page_size != 0;
      if (key + n >= item_.end && n > 0) {
        rows[n] = rows[n - 1];
      } else {
        rows[n] = follows ? rows[n - 1] + stride_ : row(key + n);
      }
    }
  }
  // What a score is multiplied by at the end, besides a code's unit.
  float scale(const S* row) const {
    if constexpr (kIsCode<S>) return row_scale(row, shape(), 0);
    return 1;
  }

 private:
  const IndexScoresArgs& a_;
  const IndexItem& item_;
  int64_t stride_;
};

// ---- Panels of keys ---------------------------------------------------------------------------

constexpr int64_t kIndexPanels = 2;  // that are multiplied together

// Keys and queries as floats. A line of a panel has a column of V::kLanes keys.
template <class Vector, class S>
struct IndexFloats {
  using V = Vector;
  using Key = S;
  using Query = float;
  using Line = typename V::F;
  static constexpr int64_t kLanes = V::kLanes, kColumns = 1;
  // Sums of two panels, their keys and a query take the registers.
  static constexpr int kHeads = (V::kRegisters - 4) / kIndexPanels;
  static constexpr float kUnit = kIsCode<S> ? kCodeUnit<S> : 1;

  static void fill(const S* const* keys, int64_t width, float* panel) {
    for (int64_t c = 0; c < width; c += kLanes) {
      typename V::F rows[kLanes];
#pragma GCC unroll 16
      for (int64_t n = 0; n < kLanes; ++n) {
        rows[n] =
            c + kLanes <= width ? V::load(keys[n] + c) : V::load_first(keys[n] + c, width - c);
      }
      V::transpose(rows);
      for (int64_t i = 0; i < kLanes && c + i < width; ++i) {
        V::store(panel + (c + i) * kLanes, rows[i]);
      }
    }
  }
  // Of each `count` columns in memory, the first one.
  static void store_query(const float* q, int64_t width, int64_t count, float* to) {
    for (int64_t c = 0; c < width; ++c) to[c * count] = q[c];
  }
  static Line load(const float* line) { return V::load(line); }
  static typename V::F add_products(typename V::F sum, const float* q, Line keys) {
    return V::fma(V::set(*q), keys, sum);
  }
};

// Keys and queries as bf16. A line of a panel has a pair of columns of sixteen keys.
template <class Vector, class S>
struct IndexPairs {
  using V = Vector;
  using Key = S;
  using Query = BFloat16;
  using Line = typename V::I;
  static constexpr int64_t kLanes = 16, kColumns = 2;
  static constexpr int kHeads = 8;
  static constexpr float kUnit = 1;

  static bool fits(const IndexScoresArgs& a) {
    int64_t columns = (kIsCode<S> ? 4 : 2) * kLanes;
    return a.width % columns == 0;
  }

  static void fill(const BFloat16* const* keys, int64_t width, float* panel) {
    for (int64_t c = 0; c < width; c += 2 * kLanes) {
      Line rows[kLanes];
#pragma GCC unroll 16
      for (int64_t n = 0; n < kLanes; ++n) rows[n] = V::load_pairs(keys[n] + c);
      V::transpose(rows);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) store(panel + (c / 2 + i) * kLanes, rows[i]);
    }
  }
  // Bytes are taken apart by twos and put together in the order in which the processor
  // interleaves: of each sixteen columns the first eight, or the others.
  static void fill(const Float8E4M3* const* keys, int64_t width, float* panel) {
    for (int64_t c = 0; c < width; c += 4 * kLanes) {
      Line low[kLanes], high[kLanes];
#pragma GCC unroll 16
      for (int64_t n = 0; n < kLanes; ++n) {
        auto codes = V::load_pairs(reinterpret_cast<const BFloat16*>(keys[n] + c));
        auto even = V::fp8_to_bf16(V::even_bytes(codes)), odd = V::fp8_to_bf16(V::odd_bytes(codes));
        low[n] = V::interleave_low(even, odd);
        high[n] = V::interleave_high(even, odd);
      }
      V::transpose(low);
      V::transpose(high);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i) {
        float* line = panel + (c / 2 + i / 4 * 8 + i % 4) * kLanes;
        store(line, low[i]);
        store(line + 4 * kLanes, high[i]);
      }
    }
  }
  // Of each `count` pairs of columns in memory, the first one.
  static void store_query(const float* q, int64_t width, int64_t count, BFloat16* to) {
    for (int64_t c = 0; c < width; c += kLanes) {
      BFloat16 rounded[kLanes];
      V::store(rounded, V::load(q + c));
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; i += 2) {
        __builtin_memcpy(to + (c + i) * count, rounded + i, 2 * sizeof(BFloat16));
      }
    }
  }
  static Line load(const float* line) {
    return V::load_line(reinterpret_cast<const std::byte*>(line), 0);
  }
  static typename V::F add_products(typename V::F sum, const BFloat16* q, Line keys) {
    return V::dot2(sum, V::broadcast_pair(q), keys);
  }

 private:
  static void store(float* line, Line keys) {
    V::store_line(reinterpret_cast<std::byte*>(line), keys);
  }
};

// Adds what H heads see in the panels; `q` has for each line the columns of all H.
// Not inlined: sums over heads would take registers of the loop.
template <class Form, int H>
[[gnu::noinline]] void add_index_heads(const typename Form::Query* q, const float* weights,
                                       int64_t width, const float* panels,
                                       typename Form::V::F (&sums)[kIndexPanels]) {
  using V = typename Form::V;
  int64_t panel_floats = width / Form::kColumns * Form::kLanes;
  typename V::F dots[H][kIndexPanels];
#pragma GCC unroll 16
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 2
    for (int p = 0; p < kIndexPanels; ++p) dots[h][p] = V::set(0);
  }
  for (int64_t c = 0; c < width; c += Form::kColumns) {
    typename Form::Line keys[kIndexPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kIndexPanels; ++p) {
      keys[p] = Form::load(panels + p * panel_floats + c / Form::kColumns * Form::kLanes);
    }
#pragma GCC unroll 16
    for (int h = 0; h < H; ++h) {
      const auto* x = q + c * H + h * Form::kColumns;
#pragma GCC unroll 2
      for (int p = 0; p < kIndexPanels; ++p)
        dots[h][p] = Form::add_products(dots[h][p], x, keys[p]);
    }
  }
#pragma GCC unroll 16
  for (int h = 0; h < H; ++h) {
#pragma GCC unroll 2
    for (int p = 0; p < kIndexPanels; ++p) {
      auto seen = V::max(dots[h][p], V::set(0));  // 0 for what is no number
      sums[p] = V::fma(V::set(weights[h]), seen, sums[p]);
    }
  }
}

template <class Form, int H = Form::kHeads>
inline void add_index_heads_of(int64_t heads, const typename Form::Query* q, const float* weights,
                               int64_t width, const float* panels,
                               typename Form::V::F (&sums)[kIndexPanels]) {
  if constexpr (H > 1) {
    if (heads < H) {
      return add_index_heads_of<Form, H - 1>(heads, q, weights, width, panels, sums);
    }
  }
  add_index_heads<Form, H>(q, weights, width, panels, sums);
}

// Scores of one item after another, of one worker.
template <class Form>
class IndexScorer {
 public:
  static int64_t scratch_floats(const IndexScoresArgs& a) {
    int64_t panels = kIndexPanels * a.width / Form::kColumns * Form::kLanes;
    int64_t queries = kIndexRows * a.heads * a.width / Form::kColumns;
    return panels + queries + (kIsCode<S> ? 2 * a.width : 0);
  }
  IndexScorer(const IndexScoresArgs& a, float* memory)
      : a_(a),
        panels_(memory),
        queries_(reinterpret_cast<Query*>(panels_ + kIndexPanels * panel_floats())),
        rounded_(panels_ + scratch_floats(a) - (kIsCode<S> ? 2 * a.width : 0)) {}

  void score(const IndexItem& item) {
    store_queries(item);
    IndexKeys<V, S> keys(a_, item);
    const S* rows[kKeys];
    for (int64_t key = item.begin; key < item.end; key += kKeys) {
      keys.locate(key, rows);
      for (int64_t p = 0; p < kIndexPanels; ++p) {
        Form::fill(rows + p * Form::kLanes, a_.width, panels_ + p * panel_floats());
      }
      fetch(keys, key + kKeys, item.end);
      float scales[kKeys];
      for (int64_t n = 0; n < kKeys && kIsCode<S>; ++n) {
        scales[n] = Form::kUnit * keys.scale(rows[n]);
      }
      for (int64_t r = 0; r < item.rows; ++r) score_row(item, r, key, scales);
    }
  }

 private:
  using V = typename Form::V;
  using S = typename Form::Key;
  using Query = typename Form::Query;
  static constexpr int64_t kKeys = kIndexPanels * Form::kLanes;

  int64_t panel_floats() const { return a_.width / Form::kColumns * Form::kLanes; }
  void fetch(const IndexKeys<V, S>& keys, int64_t begin, int64_t end) const {
    constexpr int64_t kCacheLine = 64;
    int64_t bytes = a_.width * static_cast<int64_t>(sizeof(S));
    for (int64_t key = begin; key < end && key < begin + kKeys; ++key) {
      const auto* row = reinterpret_cast<const std::byte*>(keys.row(key));
      for (int64_t c = 0; c < bytes; c += kCacheLine) __builtin_prefetch(row + c);
    }
  }
  // In groups of heads that are multiplied together, so that they are read one after another.
  void store_queries(const IndexItem& item) {
    for (int64_t r = 0; r < item.rows; ++r) {
      for_query_groups<Form::kHeads>(a_.heads, [&](int64_t head, int64_t count) {
        Query* group = queries_ + (r * a_.heads + head) * a_.width;
        for (int64_t h = 0; h < count; ++h) {
          const float* q = round(index_query(a_, item, r, head + h));
          Form::store_query(q, a_.width, count, group + h * Form::kColumns);
        }
      });
    }
  }
  const float* round(const float* q) const {
    if constexpr (!kIsCode<S>) return q;
    round_query(q, a_.width, reinterpret_cast<S*>(rounded_ + a_.width), rounded_);
    return rounded_;
  }
  void score_row(const IndexItem& item, int64_t r, int64_t key, const float* scales) {
    typename V::F sums[kIndexPanels];
    for (auto& sum : sums) sum = V::set(0);
    const float* weights = index_weights(a_, item, r);
    for_query_groups<Form::kHeads>(a_.heads, [&](int64_t head, int64_t count) {
      add_index_heads_of<Form>(count, queries_ + (r * a_.heads + head) * a_.width, weights + head,
                               a_.width, panels_, sums);
    });
    float* to = a_.scores + (item.score_row + r) * a_.entries_max;
    for (int64_t p = 0; p < kIndexPanels && key < item.end; ++p, key += Form::kLanes) {
      if constexpr (kIsCode<S>) sums[p] = V::mul(sums[p], V::load(scales + p * Form::kLanes));
      store_up_to<V>(to + key, item.end - key, sums[p]);
    }
  }

  const IndexScoresArgs& a_;
  float* panels_;
  Query* queries_;  // [rows, groups of heads, columns of all heads of a group]
  float* rounded_;  // one query, and its codes after it
};

// ----------------------------------------------------------------------------------------------

template <class Form>
void score_index(const IndexScoresArgs& a) {
  using Scorer = IndexScorer<Form>;
  share_index_items(a, kIndexKeys, [&](const auto& for_own_items) {
    Scorer scorer(a, worker_scratch(static_cast<size_t>(Scorer::scratch_floats(a))));
    for_own_items([&](const IndexItem& item) { scorer.score(item); });
  });
}

template <class V>
void index_scores(const IndexScoresArgs& a) {
  if (a.key_dtype == DType::kBF16) return score_index<IndexFloats<V, BFloat16>>(a);
  if (a.key_dtype == DType::kF16) return score_index<IndexFloats<V, Float16>>(a);
  if (a.key_dtype == DType::kI8) return score_index<IndexFloats<V, int8_t>>(a);
  if (a.key_dtype == DType::kF8E4M3) return score_index<IndexFloats<V, Float8E4M3>>(a);
  score_index<IndexFloats<V, float>>(a);
}

template <class V>
void index_scores_pairs(const IndexScoresArgs& a) {
  using Plain = IndexPairs<V, BFloat16>;
  using Codes = IndexPairs<V, Float8E4M3>;
  if (a.key_dtype == DType::kBF16 && Plain::fits(a)) return score_index<Plain>(a);
  if (a.key_dtype == DType::kF8E4M3 && Codes::fits(a)) return score_index<Codes>(a);
  index_scores<V>(a);
}

}  // namespace banyan::simd
