// Attention on tensor cores whose rows are split: when they are, and how their parts are merged.
#pragma once

#include "kernels/cuda/fours.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/tensor_attention.h"

namespace banyan::cuda {

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

// Few tiles leave most of a GPU idle: then their parts are computed by blocks of their own, which
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
  PartRange parts = parts_of(keys_of(a, span));
  return query_rows(a, span) * a.kv_heads * (parts.end - parts.begin);
}

// What a plan depends on, of some spans.
struct AttentionWork {
  int64_t tiles = 0, results = 0, most_parts = 0;

  BANYAN_HOST_DEVICE constexpr AttentionWork operator+(const AttentionWork& other) const {
    return {tiles + other.tiles, results + other.results,
            other.most_parts > most_parts ? other.most_parts : most_parts};
  }
};
// The tiles that rows of a span are cut into for each head of keys, with tile_rows in each.
BANYAN_HOST_DEVICE constexpr int64_t tiles_of(const AttentionArgs& a, const SpanArgs& span,
                                              int64_t tile_rows) {
  return quotient(query_rows(a, span) + tile_rows - 1, tile_rows);
}
BANYAN_HOST_DEVICE constexpr AttentionWork work_of(const AttentionArgs& a, const SpanArgs& span,
                                                   int64_t tile_rows) {
  PartRange parts = parts_of(keys_of(a, span));
  return {tiles_of(a, span, tile_rows) * a.kv_heads, part_results(a, span),
          parts.end - parts.begin};
}
// For so many blocks.
BANYAN_HOST_DEVICE constexpr AttentionPlan plan_of(const AttentionArgs& a,
                                                   const AttentionWork& work, int64_t blocks) {
  bool fits =
      static_cast<size_t>(work.results * part_floats(a)) * sizeof(float) <= kPartScratchBytes;
  return {work.tiles < blocks && work.most_parts > 1 && fits, work.results};
}
inline AttentionPlan attention_plan(const AttentionArgs& a, int64_t tile_rows, int64_t blocks) {
  AttentionWork work;
  for (int64_t s = 0; s < a.span_count; ++s) work = work + work_of(a, a.spans[s], tile_rows);
  return plan_of(a, work, blocks);
}

// Where a row's sums of a part lie in scratch memory, in floats.
BANYAN_HOST_DEVICE constexpr int64_t part_offset(const AttentionArgs& a, const SpanArgs& span,
                                                 int64_t results, int64_t kv_head, int64_t row,
                                                 int64_t part) {
  PartRange parts = parts_of(keys_of(a, span));
  int64_t of_row = (kv_head * query_rows(a, span) + row) * (parts.end - parts.begin);
  return (results + of_row + part - parts.begin) * part_floats(a);
}

// Merges what blocks have written of each part, if they have. Rounds the results for the product
// that follows, if there is a workspace. A thread has four columns of a row at a time.
struct MergeParts {
  AttentionArgs a;
  const float* sums = nullptr;
  int64_t tile_rows = kQueryTile, blocks = 0;  // of the kernel before this one
  RoundedRows rounded = {};
  QuantisedRows quantised = {};
  Shape shape() const {
    if (quantised.workspace != nullptr) return quantising_shape(quantised);
    return {.blocks = a.rows > 0 ? blocks_for(a.rows * a.q_heads * a.value_dim / 4) : 0};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    bool split = plan_of(a, work_over(block), blocks).split;
    if (quantised.workspace != nullptr) return quantise_all(block, split);
    if (split) return merge_all(block);
    if (rounded.workspace == nullptr) return;
    int64_t fours = a.q_heads * a.value_dim / 4;
    for_all(block, a.rows * fours, [&](int64_t i) {
      int64_t row = quotient(i, fours), c = (i - row * fours) * 4;
      rounded.store(row, c, load_four<4>(a.out + row * 4 * fours, c, 4 * fours));
    });
  }

 private:
  // A row of a span, of one query head.
  struct Row {
    const SpanArgs& span;
    int64_t results, token, head;  // results: of the spans before
  };
  struct PartSums {
    float max, weight;
    Four out;
  };

  template <class Block>
  BANYAN_DEVICE AttentionWork work_over(Block& block) const {
    return block.reduce(
        [&](int thread) {
          AttentionWork work;
          for (int64_t s = thread; s < a.span_count; s += Block::kThreads) {
            work = work + work_of(a, a.spans[s], tile_rows);
          }
          return work;
        },
        Plus());
  }

  template <class Block>
  BANYAN_DEVICE void merge_all(Block& block) const {
    int64_t fours = a.value_dim / 4;
    block.each([&](int thread) {
      int64_t results = 0, next = block.index() * Block::kThreads + thread;
      for (int64_t s = 0; s < a.span_count; ++s) {
        const SpanArgs& span = a.spans[s];
        int64_t items = span.row_count * a.q_heads * fours;
        for (; next < items; next += block.count() * Block::kThreads) {
          int64_t at = quotient(next, fours), token = quotient(at, a.q_heads);
          merge({span, results, token, at - token * a.q_heads}, (next - at * fours) * 4);
        }
        next -= items;
        results += part_results(a, span);
      }
    });
  }

  // The same, for rows whose spans are looked up: few rows are split. All are quantised.
  template <class Block>
  BANYAN_DEVICE void quantise_all(Block& block, bool split) const {
    int64_t dim = a.q_heads * a.value_dim;
    quantise_while(block, quantised, [&](int64_t row) {
      const SpanArgs* span = nullptr;
      int64_t results = 0;
      for (int64_t s = 0; split && span == nullptr && s < a.span_count; ++s) {
        int64_t token = row - a.spans[s].row_begin;
        if (token >= 0 && token < a.spans[s].row_count) {
          span = a.spans + s;
        } else {
          results += part_results(a, a.spans[s]);
        }
      }
      return [this, row, dim, span, results](int64_t c) {
        if (span == nullptr) return load_four<4>(a.out + row * dim, c, dim);
        int64_t head = quotient(c, a.value_dim);
        return merge({*span, results, row - span->row_begin, head}, c - head * a.value_dim);
      };
    });
  }

  BANYAN_DEVICE Four merge(const Row& row, int64_t column) const {
    constexpr int kAtOnce = 4;  // parts, so that loads overlap
    int64_t heads = quotient(a.q_heads, a.kv_heads), kv_head = quotient(row.head, heads);
    int64_t query = row.token * rows_per_token(a) + row.head - kv_head * heads;
    PartRange parts = parts_of(keys_of_token(a, row.span, row.token, kv_head));
    float max = kLowest, weight = 0;
    Four total = {};
    for (int64_t first = parts.begin; first < parts.end; first += kAtOnce) {
      PartSums loaded[kAtOnce] = {};
      BANYAN_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i < parts.end) {
          loaded[i] =
              load(sums + part_offset(a, row.span, row.results, kv_head, query, first + i), column);
        }
      }
      BANYAN_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (first + i >= parts.end) continue;
        Rescaled r = rescaled(max, loaded[i].max);
        max = r.max;
        weight = weight * r.kept + loaded[i].weight * r.added;
        BANYAN_UNROLL
        for (int c = 0; c < 4; ++c) {
          total.at[c] = total.at[c] * r.kept + loaded[i].out.at[c] * r.added;
        }
      }
    }
    return put(row, column, last_step(a, row.head, max, weight), total);
  }
  BANYAN_DEVICE static PartSums load(const float* of, int64_t column) {
    const float* out = of + 2 + column;
    return {of[0], of[1], {{out[0], out[1], out[2], out[3]}}};
  }

  BANYAN_DEVICE Four put(const Row& row, int64_t column, const LastStep& step, Four total) const {
    BANYAN_UNROLL
    for (int c = 0; c < 4; ++c) total.at[c] = step(total.at[c]);
    int64_t at = row.span.row_begin + row.token, c = row.head * a.value_dim + column;
    store_four<4>(a.out + at * a.q_heads * a.value_dim, c, a.q_heads * a.value_dim, total);
    if (rounded.workspace != nullptr) rounded.store(at, c, total);
    return total;
  }
};

// Attention on tensor cores as a queue collects it: its kernel, then MergeParts.
struct AttendTiles {
  AttentionArgs a;
  // Results for a product, if they have a workspace.
  RoundedRows rounded = {};
  QuantisedRows quantised = {};

  // The spans, too, are read while others round already. What a row selects may lie anywhere.
  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    int64_t dim = a.q_heads * a.value_dim;
    if (a.rows == 0 || a.selected.runs != nullptr) return false;
    return workspace.apart(range_of(a.spans, a.span_count)) &&
           cuda::may_prepare(g, workspace, a.out, a.rows, dim, dim, a.out, dim);
  }
};

}  // namespace banyan::cuda
