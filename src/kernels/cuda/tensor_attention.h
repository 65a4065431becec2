// Attention over pages of bf16 on tensor cores: what the kernel on a card
// (device/tensor_attention.cuh) and its emulation (emulated/tensor_attention.h) share.
//
// Queries are rounded to bf16. Keys come in tiles at multiples of 64 positions, and tiles in parts
// at multiples of 512. For each tile of a part in turn:
//
//   s = (q k) scale, capped, -inf where the row does not see the key    q k by wgmma
//   m' = max(m, s),  c = e^(m - m'),  p = e^(s - m')
//   l = l c + p       a sum for each pair of columns modulo 8, see RowSums
//   o = (o c) + p v   by wgmma on the products, with p rounded to bf16
//
// Parts are merged in ascending order (rescaled). A tile or a part of which the row sees no key
// changes no bit, so neither the other rows of a tile nor the blocks that share a row's parts do.
// Values that are not finite would, by a weight of zero: they become zeros in v, and are added to
// the o of the rows that see them. Where keys are selected, ranks take the place of positions.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/kernel_table.h"
#include "kernels/selected_rows.h"

namespace banyan::cuda {

inline constexpr int64_t kKeyTile = 64;
inline constexpr int64_t kLatentWidth = 576, kLatentRank = 512;
inline constexpr int64_t kQueryTile = 64;  // rows: tokens times the query heads of a head of keys

// Whether tensor cores compute it; other shapes and types have the kernels of attention.h.
constexpr bool on_tensor_cores(const AttentionArgs& a) {
  bool fits = a.head_dim == a.value_dim && (a.head_dim == 64 || a.head_dim == 128);
  return fits && a.pool_dtype == DType::kBF16 && a.blocks == nullptr && a.selected.runs == nullptr;
}
constexpr bool on_tensor_cores(const LatentAttentionArgs& a) {
  return a.width == kLatentWidth && a.rank == kLatentRank && a.pool_dtype == DType::kBF16;
}

// Latents as one head of keys, whose first columns are the values.
constexpr AttentionArgs attention_of(const LatentAttentionArgs& a) {
  return {.launch = a.launch,
          .q = a.q,
          .q_row_stride = a.q_row_stride,
          .k_pool = a.pool,
          .v_pool = a.pool,
          .pool_dtype = a.pool_dtype,
          .out = a.out,
          .q_heads = a.heads,
          .kv_heads = 1,
          .head_dim = a.width,
          .value_dim = a.rank,
          .page_size = a.page_size,
          .scale = a.scale,
          .spans = a.spans,
          .span_count = a.span_count,
          .page_table = a.page_table,
          .selected = a.selected};
}

// e^x of x <= 0 within 2 ulp, 0 below -87; NaN for NaN.
BANYAN_HOST_DEVICE inline float exp_of_difference(float x) {
  constexpr float kToInteger = 0x1.8p23f;  // a number this large has no fraction
  float shifted = fused(x, 0x1.715476p+0f, kToInteger);
  float n = shifted - kToInteger;
  float r = fused(n, -0x1.62e43p-1f, x);
  r = fused(n, 0x1.05c61p-29f, r);
  float p = fused(1.0f / 720, r, 1.0f / 120);
  p = fused(p, r, 1.0f / 24);
  p = fused(p, r, 1.0f / 6);
  p = fused(p, r, 0.5f);
  p = fused(p, r, 1.0f);
  p = fused(p, r, 1.0f);
  uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
  return x < -87 ? 0 : is_nan(x) ? x : y;
}

// The keys that the row at a position sees: [first, end).
struct KeyRange {
  int32_t first, end;
};
BANYAN_HOST_DEVICE constexpr KeyRange keys_at(int64_t position, int64_t window) {
  int64_t first = window > 0 && position >= window ? position - window + 1 : 0;
  return {static_cast<int32_t>(first), static_cast<int32_t>(position + 1)};
}

// The same of token i of a span. Selected keys are named by their ranks.
BANYAN_HOST_DEVICE constexpr KeyRange keys_of_token(const AttentionArgs& a, const SpanArgs& span,
                                                    int64_t i, int64_t kv_head) {
  if (a.selected.runs == nullptr) return keys_at(span.first_position + i, a.window);
  SelectedRow selected = selected_row(a.selected, span.row_begin + i, kv_head);
  return {0, static_cast<int32_t>(selected.key_count)};
}

BANYAN_HOST_DEVICE constexpr float score_of(float product, const AttentionArgs& a) {
  float score = product * a.scale;
  return a.soft_cap > 0 ? soften(score, a.soft_cap) : score;
}

// The softmax of a part so far. Columns 8 i + 2 j and 8 i + 2 j + 1 of a tile add to weight j.
struct RowSums {
  float max = kLowest;  // finite, so that a score of -inf weighs nothing even if it is the first
  float weights[4] = {};

  BANYAN_HOST_DEVICE constexpr float weight() const {
    return (weights[0] + weights[1]) + (weights[2] + weights[3]);
  }
};

// By which factors what was summed so far and what is added with another maximum are multiplied.
struct Rescaled {
  float max, kept, added;
};
BANYAN_HOST_DEVICE inline Rescaled rescaled(float so_far, float added) {
  float larger = Largest()(so_far, added);
  return {larger, exp_of_difference(so_far - larger), exp_of_difference(added - larger)};
}

// What a row's sums are divided by, and multiplied with before, once the last part is merged.
// Adding 0 makes a negative zero, which a tile without keys may have turned, positive.
struct LastStep {
  float kept, weight;
  BANYAN_HOST_DEVICE constexpr float operator()(float sum) const {
    return sum * kept / weight + 0.0f;
  }
};
BANYAN_HOST_DEVICE inline LastStep last_step(const AttentionArgs& a, int64_t head, float max,
                                             float weight) {
  if (a.sinks == nullptr) return {1, weight};
  Rescaled r = rescaled(max, a.sinks[head]);
  return {r.kept, weight * r.kept + r.added};
}

// ---- which block computes what; no bit depends on it ----

// The parts of keys that rows of a span see.
struct PartRange {
  int32_t begin, end;
};
BANYAN_HOST_DEVICE constexpr PartRange parts_of(KeyRange keys) {
  constexpr auto kKeys = static_cast<int32_t>(kPartKeys);
  return {keys.first / kKeys, (keys.end + kKeys - 1) / kKeys};
}
BANYAN_HOST_DEVICE constexpr KeyRange keys_of(const SpanArgs& span, int64_t window) {
  return {keys_at(span.first_position, window).first, span.first_position + span.row_count};
}

// A span's rows of tiles for one head of keys: row r is query head r % rows_per_token() of token r
// / rows_per_token(). Tokens that select keys share no tile: some of their rows are no heads.
BANYAN_HOST_DEVICE constexpr int64_t rows_per_token(const AttentionArgs& a) {
  int64_t heads = quotient(a.q_heads, a.kv_heads);
  if (a.selected.runs == nullptr) return heads;
  return (heads + kQueryTile - 1) / kQueryTile * kQueryTile;
}
BANYAN_HOST_DEVICE constexpr int64_t query_rows(const AttentionArgs& a, const SpanArgs& span) {
  return span.row_count * rows_per_token(a);
}

// Few tiles leave most of a card idle: then their parts are computed by blocks of their own, which
// write their sums to scratch memory, and MergeParts merges them.
struct AttentionPlan {
  bool split;
  int64_t results;  // of parts, each part_floats() long
};
inline constexpr size_t kPartScratchBytes = size_t{128} << 20;

// A part's maximum, weight and sums of one row.
BANYAN_HOST_DEVICE constexpr int64_t part_floats(const AttentionArgs& a) {
  return a.value_dim + 2;
}
BANYAN_HOST_DEVICE constexpr int64_t part_results(const AttentionArgs& a, const SpanArgs& span) {
  PartRange parts = parts_of(keys_of(span, a.window));
  return query_rows(a, span) * a.kv_heads * (parts.end - parts.begin);
}

BANYAN_HOST_DEVICE constexpr AttentionPlan attention_plan(const AttentionArgs& a) {
  constexpr int64_t kFullCard = 264;  // tiles
  int64_t tiles = 0, results = 0, most = 0;
  for (int64_t s = 0; s < a.span_count; ++s) {
    PartRange parts = parts_of(keys_of(a.spans[s], a.window));
    tiles += (query_rows(a, a.spans[s]) + kQueryTile - 1) / kQueryTile * a.kv_heads;
    results += part_results(a, a.spans[s]);
    if (parts.end - parts.begin > most) most = parts.end - parts.begin;
  }
  bool fits = static_cast<size_t>(results * part_floats(a)) * sizeof(float) <= kPartScratchBytes;
  return {tiles < kFullCard && most > 1 && fits, results};
}

// A tile of rows, with the parts that a block computes of it.
struct AttentionItem {
  int64_t span, results;  // results: of the spans before
  int32_t kv_head, row;
  PartRange parts;
};

// Calls body(AttentionItem) for every item of worker `index` of `count`.
template <class Body>
BANYAN_HOST_DEVICE void for_attention_items(const AttentionArgs& a, bool split, int64_t index,
                                            int64_t count, const Body& body) {
  int64_t item = 0, results = 0;
  for (int64_t s = 0; s < a.span_count; ++s) {
    const SpanArgs& span = a.spans[s];
    PartRange parts = parts_of(keys_of(span, a.window));
    int64_t pieces = split ? parts.end - parts.begin : 1;
    int64_t tiles = quotient(query_rows(a, span) + kQueryTile - 1, kQueryTile);
    int64_t items = tiles * a.kv_heads * pieces;
    int64_t first = remainder(index + count - remainder(item, count), count);
    for (int64_t i = first; i < items; i += count) {
      int64_t at = quotient(i, pieces), piece = i - at * pieces;
      int64_t kv_head = quotient(at, tiles), tile = at - kv_head * tiles;
      auto begin = static_cast<int32_t>(parts.begin + piece);
      body(AttentionItem{s, results, static_cast<int32_t>(kv_head),
                         static_cast<int32_t>(tile * kQueryTile),
                         split ? PartRange{begin, begin + 1} : parts});
    }
    item += items;
    results += part_results(a, span);
  }
}

// Where a row's sums of a part lie in scratch memory, in floats.
BANYAN_HOST_DEVICE constexpr int64_t part_offset(const AttentionArgs& a, const SpanArgs& span,
                                                 int64_t results, int64_t kv_head, int64_t row,
                                                 int64_t part) {
  PartRange parts = parts_of(keys_of(span, a.window));
  int64_t of_row = (kv_head * query_rows(a, span) + row) * (parts.end - parts.begin);
  return (results + of_row + part - parts.begin) * part_floats(a);
}

// Merges what blocks have written of each part, if they have.
struct MergeParts {
  AttentionArgs a;
  const float* sums;
  Shape shape() const { return {}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    if (!attention_plan(a).split) return;
    int64_t heads = quotient(a.q_heads, a.kv_heads), results = 0, item = 0;
    for (int64_t s = 0; s < a.span_count; ++s) {
      const SpanArgs& span = a.spans[s];
      int64_t items = span.row_count * a.q_heads;
      int64_t first =
          remainder(block.index() + block.count() - remainder(item, block.count()), block.count());
      for (int64_t i = first; i < items; i += block.count()) {
        int64_t token = quotient(i, a.q_heads), head = i - token * a.q_heads;
        int64_t kv_head = quotient(head, heads);
        int64_t row = token * rows_per_token(a) + head - kv_head * heads;
        merge(block, span, results, token, head, kv_head, row);
      }
      item += items;
      results += part_results(a, span);
    }
  }

  template <class Block>
  BANYAN_DEVICE void merge(Block& block, const SpanArgs& span, int64_t results, int64_t token,
                           int64_t head, int64_t kv_head, int64_t row) const {
    PartRange parts = parts_of(keys_of_token(a, span, token, kv_head));
    float* out = a.out + ((span.row_begin + token) * a.q_heads + head) * a.value_dim;
    for_each(block, a.value_dim, [&](int64_t c) {
      float max = kLowest, weight = 0, total = 0;
      for (int64_t part = parts.begin; part < parts.end; ++part) {
        const float* of = sums + part_offset(a, span, results, kv_head, row, part);
        Rescaled r = rescaled(max, of[0]);
        max = r.max;
        weight = weight * r.kept + of[1] * r.added;
        total = total * r.kept + of[2 + c] * r.added;
      }
      out[c] = last_step(a, head, max, weight)(total);
    });
  }
};

}  // namespace banyan::cuda
