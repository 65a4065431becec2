// The scores of DeepSeek's sparse attention (kernels/sparse.h), in two arithmetics: f32, and pairs
// of bf16 on a processor that multiplies those.
//
// In pairs, sixteen keys take the lanes of a vector: they are transposed once for all rows and
// heads of an item, and no sum runs across lanes. Codes of fp8 become bf16 on the way, which rounds
// nothing, and so do queries that were rounded to such codes.
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

// ---- In f32 ----------------------------------------------------------------------------------

template <class V, class S>
class IndexFloats {
 public:
  static int64_t scratch_floats(const IndexScoresArgs& a) {
    return kIsCode<S> ? kIndexRows * a.heads * a.width + a.width : 0;
  }
  IndexFloats(const IndexScoresArgs& a, float* memory) : a_(a), memory_(memory) {}

  void score(const IndexItem& item) {
    if constexpr (kIsCode<S>) round_queries(item);
    IndexKeys<V, S> keys(a_, item);
    for (int64_t key = item.begin; key < item.end; key += kTileOutputs) {
      const S* rows[kTileOutputs];
      keys.locate(key, rows);
      int64_t count = item.end - key < kTileOutputs ? item.end - key : kTileOutputs;
      for (int64_t r = 0; r < item.rows; ++r) {
        float sums[kTileOutputs] = {};
        add_heads(item, r, rows, sums);
        float* to = a_.scores + (item.score_row + r) * a_.entries_max + key;
        for (int64_t n = 0; n < count; ++n) {
          to[n] = kIsCode<S> ? sums[n] * kCodeUnit<S> * keys.scale(rows[n]) : sums[n];
        }
      }
    }
  }

 private:
  void round_queries(const IndexItem& item) {
    S* codes = reinterpret_cast<S*>(memory_ + kIndexRows * a_.heads * a_.width);
    for (int64_t n = 0; n < item.rows * a_.heads; ++n) {
      round_query(index_query(a_, item, n / a_.heads, n % a_.heads), a_.width, codes,
                  memory_ + n * a_.width);
    }
  }
  const float* query(const IndexItem& item, int64_t r, int64_t head) const {
    if constexpr (kIsCode<S>) return memory_ + (r * a_.heads + head) * a_.width;
    return index_query(a_, item, r, head);
  }
  void add_heads(const IndexItem& item, int64_t r, const S* const* rows, float* sums) const {
    const float* weights = index_weights(a_, item, r);
    for (int64_t head = 0; head < a_.heads; head += V::kTileRows) {
      int64_t count = a_.heads - head < V::kTileRows ? a_.heads - head : V::kTileRows;
      const float* q[V::kTileRows];
      for (int64_t h = 0; h < count; ++h) q[h] = query(item, r, head + h);
      float dots[V::kTileRows][kTileOutputs];
      dot_tile_of<V, S>(count, q, rows, a_.width, dots);
      for (int64_t h = 0; h < count; ++h) {
        for (int n = 0; n < kTileOutputs; ++n) {
          float dot = dots[h][n] > 0 ? dots[h][n] : 0;
          sums[n] = __builtin_fmaf(weights[head + h], dot, sums[n]);
        }
      }
    }
  }

  const IndexScoresArgs& a_;
  float* memory_;  // rounded queries, and codes of one
};

// ---- In pairs --------------------------------------------------------------------------------

constexpr int64_t kIndexLanes = 16;      // keys of a panel
constexpr int64_t kIndexPanels = 2;      // that are multiplied together
constexpr int64_t kIndexWidthMax = 256;  // of a key; wider ones take the f32 form
constexpr int64_t kIndexHeads = 8;       // of one register tile
constexpr int64_t kPanelLine = 64;       // bytes of a pair of columns of all keys of a panel

// Fills a panel, [width / 2] lines of a pair of columns of sixteen keys.
template <class V>
inline void fill_panel(const BFloat16* const* keys, int64_t width, std::byte* panel) {
  for (int64_t c = 0; c < width; c += 2 * kIndexLanes) {
    typename V::I rows[kIndexLanes];
    for (int64_t n = 0; n < kIndexLanes; ++n) rows[n] = V::load_pairs(keys[n] + c);
    V::transpose(rows);
    for (int64_t i = 0; i < kIndexLanes; ++i) {
      V::store_line(panel + (c / 2 + i) * kPanelLine, rows[i]);
    }
  }
}

// Bytes are taken apart by twos and put together in the order in which the processor interleaves:
// of each sixteen columns the first eight, or the others.
template <class V>
inline void fill_panel(const Float8E4M3* const* keys, int64_t width, std::byte* panel) {
  for (int64_t c = 0; c < width; c += 4 * kIndexLanes) {
    typename V::I low[kIndexLanes], high[kIndexLanes];
    for (int64_t n = 0; n < kIndexLanes; ++n) {
      auto codes = V::load_pairs(reinterpret_cast<const BFloat16*>(keys[n] + c));
      auto even = V::fp8_to_bf16(V::even_bytes(codes)), odd = V::fp8_to_bf16(V::odd_bytes(codes));
      low[n] = V::interleave_low(even, odd);
      high[n] = V::interleave_high(even, odd);
    }
    V::transpose(low);
    V::transpose(high);
    for (int64_t i = 0; i < kIndexLanes; ++i) {
      std::byte* line = panel + (c / 2 + i / 4 * 8 + i % 4) * kPanelLine;
      V::store_line(line, low[i]);
      V::store_line(line + 4 * kPanelLine, high[i]);
    }
  }
}

// Adds what H heads from `q` on, [H, width], see in the panels.
template <class V, int H>
inline void add_index_heads(const BFloat16* q, const float* weights, int64_t width,
                            const std::byte* panels, typename V::F (&sums)[kIndexPanels]) {
  int64_t panel_bytes = width / 2 * kPanelLine;
  typename V::F dots[H][kIndexPanels];
  for (int h = 0; h < H; ++h) {
    for (int p = 0; p < kIndexPanels; ++p) dots[h][p] = V::set(0);
  }
  for (int64_t c = 0; c < width; c += 2) {
    typename V::I keys[kIndexPanels];
    for (int p = 0; p < kIndexPanels; ++p) {
      keys[p] = V::load_line(panels + p * panel_bytes + c / 2 * kPanelLine, 0);
    }
    for (int h = 0; h < H; ++h) {
      auto x = V::broadcast_pair(q + h * width + c);
      for (int p = 0; p < kIndexPanels; ++p) dots[h][p] = V::dot2(dots[h][p], x, keys[p]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int p = 0; p < kIndexPanels; ++p) {
      auto seen = V::max(dots[h][p], V::set(0));  // 0 for what is no number
      sums[p] = V::fma(V::set(weights[h]), seen, sums[p]);
    }
  }
}

template <class V, int H = kIndexHeads>
inline void add_index_heads_of(int64_t heads, const BFloat16* q, const float* weights,
                               int64_t width, const std::byte* panels,
                               typename V::F (&sums)[kIndexPanels]) {
  if constexpr (H > 1) {
    if (heads < H) {
      return add_index_heads_of<V, H - 1>(heads, q, weights, width, panels, sums);
    }
  }
  add_index_heads<V, H>(q, weights, width, panels, sums);
}

template <class V, class S>
class IndexPairs {
 public:
  static bool fits(const IndexScoresArgs& a) {
    int64_t columns = (kIsCode<S> ? 4 : 2) * kIndexLanes;
    return a.width % columns == 0 && a.width <= kIndexWidthMax;
  }
  static int64_t scratch_floats(const IndexScoresArgs& a) {
    return kIndexPanels * a.width / 2 * kIndexLanes + kIndexRows * a.heads * a.width / 2;
  }
  IndexPairs(const IndexScoresArgs& a, float* memory)
      : a_(a),
        panels_(reinterpret_cast<std::byte*>(memory)),
        queries_(reinterpret_cast<BFloat16*>(memory + kIndexPanels * a.width / 2 * kIndexLanes)) {}

  void score(const IndexItem& item) {
    constexpr int64_t kKeys = kIndexPanels * kIndexLanes;
    round_queries(item);
    IndexKeys<V, S> keys(a_, item);
    const S* rows[kKeys];
    for (int64_t key = item.begin; key < item.end; key += kKeys) {
      keys.locate(key, rows);
      for (int64_t p = 0; p < kIndexPanels; ++p) {
        fill_panel<V>(rows + p * kIndexLanes, a_.width, panels_ + p * a_.width / 2 * kPanelLine);
      }
      if (key + kKeys < item.end) fetch(keys, key + kKeys, item.end);
      float scales[kKeys];
      for (int64_t n = 0; n < kKeys && kIsCode<S>; ++n) scales[n] = keys.scale(rows[n]);
      for (int64_t r = 0; r < item.rows; ++r) score_row(item, r, key, scales);
    }
  }

 private:
  void fetch(const IndexKeys<V, S>& keys, int64_t begin, int64_t end) const {
    int64_t stop =
        begin + kIndexPanels * kIndexLanes < end ? begin + kIndexPanels * kIndexLanes : end;
    for (int64_t key = begin; key < stop; ++key) {
      const auto* line = reinterpret_cast<const std::byte*>(keys.row(key));
      int64_t bytes = a_.width * static_cast<int64_t>(sizeof(S));
      for (int64_t c = 0; c < bytes; c += kPanelLine) __builtin_prefetch(line + c);
    }
  }
  void round_queries(const IndexItem& item) {
    S codes[kIndexWidthMax];
    float rounded[kIndexWidthMax];
    for (int64_t n = 0; n < item.rows * a_.heads; ++n) {
      const float* q = index_query(a_, item, n / a_.heads, n % a_.heads);
      if constexpr (kIsCode<S>) {
        round_query(q, a_.width, codes, rounded);
        q = rounded;
      }
      for (int64_t c = 0; c < a_.width; c += V::kLanes) {
        V::store(queries_ + n * a_.width + c, V::load(q + c));
      }
    }
  }
  void score_row(const IndexItem& item, int64_t r, int64_t key, const float* scales) {
    typename V::F sums[kIndexPanels];
    for (auto& sum : sums) sum = V::set(0);
    const float* weights = index_weights(a_, item, r);
    for (int64_t head = 0; head < a_.heads; head += kIndexHeads) {
      add_index_heads_of<V>(a_.heads - head, queries_ + (r * a_.heads + head) * a_.width,
                            weights + head, a_.width, panels_, sums);
    }
    float* to = a_.scores + (item.score_row + r) * a_.entries_max;
    for (int64_t p = 0; p < kIndexPanels && key < item.end; ++p, key += kIndexLanes) {
      if constexpr (kIsCode<S>) sums[p] = V::mul(sums[p], V::load(scales + p * kIndexLanes));
      store_up_to<V>(to + key, item.end - key, sums[p]);
    }
  }

  const IndexScoresArgs& a_;
  std::byte* panels_;
  BFloat16* queries_;  // [rows, heads, width]
};

// ----------------------------------------------------------------------------------------------

template <class Scorer>
void score_index(const IndexScoresArgs& a) {
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
