// Attention on tensor cores: which block of a card computes what, and how kernels are launched. No
// bit depends on it.
#pragma once

#include "kernels/cuda/shared_layout.h"
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
  PartRange parts = parts_of(keys_of(span, a.window));
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

// A tile of rows, with the parts that a block computes of it.
struct AttentionItem {
  int64_t span, results;  // results: of the spans before
  int32_t kv_head, row;
  PartRange parts;
};

// Calls body(AttentionItem) for every item of worker `index` of `count`.
template <int kTileRows, class Body>
BANYAN_HOST_DEVICE void for_attention_items(const AttentionArgs& a, bool split, int64_t index,
                                            int64_t count, const Body& body) {
  int64_t next = index, results = 0;  // next: of the worker's items, counted from the span's first
  for (int64_t s = 0; s < a.span_count; ++s) {
    const SpanArgs& span = a.spans[s];
    PartRange parts = parts_of(keys_of(span, a.window));
    int64_t pieces = split ? parts.end - parts.begin : 1;
    int64_t tiles = tiles_of(a, span, kTileRows);
    int64_t items = tiles * a.kv_heads * pieces;
    for (; next < items; next += count) {
      int64_t at = quotient(next, pieces), piece = next - at * pieces;
      int64_t kv_head = quotient(at, tiles), tile = at - kv_head * tiles;
      auto begin = static_cast<int32_t>(parts.begin + piece);
      body(AttentionItem{s, results, static_cast<int32_t>(kv_head),
                         static_cast<int32_t>(tile * kTileRows),
                         split ? PartRange{begin, begin + 1} : parts});
    }
    next -= items;
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
  int64_t tile_rows, blocks;  // of the kernel before this one
  Shape shape() const { return {}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    if (!plan_of(a, work_over(block), blocks).split) return;
    int64_t heads = quotient(a.q_heads, a.kv_heads), results = 0, next = block.index();
    for (int64_t s = 0; s < a.span_count; ++s) {
      const SpanArgs& span = a.spans[s];
      int64_t items = span.row_count * a.q_heads;
      for (; next < items; next += block.count()) {
        int64_t token = quotient(next, a.q_heads), head = next - token * a.q_heads;
        int64_t kv_head = quotient(head, heads);
        int64_t row = token * rows_per_token(a) + head - kv_head * heads;
        merge(block, span, results, token, head, kv_head, row);
      }
      next -= items;
      results += part_results(a, span);
    }
  }

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

// A block's layout: warpgroups that multiply have kQueryTile rows each, or share the same rows: the
// weights of some keys of a tile and the sums of some columns each. kLatent: values are the first
// columns of keys.
template <int Width, int ValueWidth, int RowGroups, int ValueGroups>
struct TensorAttention {
  static constexpr int kWidth = Width, kValueWidth = ValueWidth;  // of a head
  static constexpr int kRowGroups = RowGroups, kGroups = RowGroups * ValueGroups;
  static constexpr bool kShareRows = ValueGroups > 1;
  static constexpr int kTileRows = kRowGroups * kQueryTile;
  static constexpr int kOwnKeys = kKeyTile / ValueGroups;  // of a warpgroup, in each tile
  static constexpr int kOwnValues = kValueWidth / ValueGroups;
  static constexpr bool kLatent = kValueWidth < kWidth;
  static constexpr bool kWide = kWidth > 128;
  static constexpr uint32_t kBlockBytes = kKeyTile * kTileRowBytes;  // 64 columns of a tile
  static constexpr int kMultipliers = kGroups * kWarpgroup;
  static constexpr int kThreads = kMultipliers + kWarpgroup;

  // Large blocks have a multiprocessor to themselves.
  static constexpr int kBlocksPerMultiprocessor = kWide || kRowGroups > 1 ? 1 : 2;
  static constexpr bool kKeepsTotals = kRowGroups > 1 && !kWide;      // of parts in registers
  static constexpr uint32_t kStageBytes = kWidth / 64 * kBlockBytes;  // keys or values of a tile
  static constexpr uint32_t kQueryBytes = kRowGroups * kStageBytes;
  static constexpr int kStagesThatFit =
      ((224 << 10) / kBlocksPerMultiprocessor - kQueryBytes) / kStageBytes;
  static constexpr int kStages = kStagesThatFit > 16 ? 16 : kStagesThatFit / 2 * 2;
  static constexpr uint32_t kQueries = kStages * kStageBytes;
  static constexpr uint32_t kBarriers = kQueries + kQueryBytes;
  static constexpr uint32_t kWork = kBarriers + 2 * kStages * 8;  // AttentionWork of all spans
  static constexpr uint32_t kExchange = kWork + 32;               // of warpgroups that share rows
  static constexpr uint32_t kExchangeBytes = kShareRows ? kMultipliers * 32 : 0;
  static constexpr uint32_t kMaxima = kExchange + kExchangeBytes;
  static constexpr uint32_t kSharedBytes = kMaxima + kExchangeBytes / 4;
  static_assert(kBlocksPerMultiprocessor * (kSharedBytes + 1024) <= 228 * 1024);

  // Of a thread: at the start, then of those that multiply and of those that fetch.
  static constexpr int kRegisters = kBlocksPerMultiprocessor == 1 ? 168 : 128;
  static constexpr int kMultiplyRegisters = kGroups == 2 ? 224 : kWide ? 248 : 184;
  static constexpr int kFetchRegisters = kGroups == 2 ? 56 : kWide ? 88 : 72;
  static_assert(kGroups * kMultiplyRegisters + kFetchRegisters <= (kGroups + 1) * kRegisters);

  AttentionArgs a;
  float* parts;    // kPartScratchBytes
  int64_t blocks;  // of the launch
};

// Calls launch(kernel, merge) with the TensorAttention for the width and the MergeParts that
// follows it. Spans of many rows get twice as many of them for each tile of keys: then what L2
// delivers no longer limits them.
template <class Launch>
void launch_tensor_attention(const AttentionArgs& args, float* parts, int64_t multiprocessors,
                             const Launch& launch) {
  auto run = [&]<class K>(K kernel) {
    kernel.blocks = K::kBlocksPerMultiprocessor * multiprocessors;
    launch(kernel, MergeParts{args, parts, K::kTileRows, kernel.blocks});
  };
  auto run_of_width = [&]<int Width>() {
    bool many = args.rows * args.q_heads > args.span_count * args.kv_heads * kQueryTile;
    many ? run(TensorAttention<Width, Width, 2, 1>{args, parts})
         : run(TensorAttention<Width, Width, 1, 1>{args, parts});
  };
  if (args.head_dim == 64) return run_of_width.template operator()<64>();
  if (args.head_dim == 128) return run_of_width.template operator()<128>();
  if (args.head_dim == 256) return run_of_width.template operator()<256>();
  run(TensorAttention<kLatentWidth, kLatentRank, 1, 2>{args, parts});
}

}  // namespace banyan::cuda
