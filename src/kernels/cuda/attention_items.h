// Attention on tensor cores: which block of a GPU computes what, and how kernels are launched. No
// bit depends on it.
#pragma once

#include "kernels/cuda/merge_parts.h"
#include "kernels/cuda/shared_layout.h"
#include "kernels/cuda/tensor_attention.h"
#include "kernels/cuda/tensor_map.h"

namespace banyan::cuda {

// A tile of rows, with the parts that a block computes of it.
struct AttentionItem {
  int32_t span, results;  // results: of the spans before
  int32_t kv_head, row;
  PartRange parts;
};

// Calls body(AttentionItem) for every item of worker `index` of `count`, which also looks at the
// spans of all others: of these it computes no more than where the next one begins.
//
// Later rows see more keys, so that a span's last tiles come first. Workers take turns at them back
// and forth: who had a longer item than the others has a shorter one next.
template <int kTileRows, class Body>
BANYAN_HOST_DEVICE void for_attention_items(const AttentionArgs& a, bool split, int64_t index,
                                            int64_t count, const Body& body) {
  // next: of the worker's items, counted from the span's first
  auto next = static_cast<int32_t>(index);
  int32_t results = 0, kv_heads = static_cast<int32_t>(a.kv_heads);
  // To the worker's next item: 2 (count - index) - 1 and 2 index + 1 in turn.
  auto step = static_cast<int32_t>(2 * (count - index) - 1);
  for (int32_t s = 0; s < static_cast<int32_t>(a.span_count); ++s) {
    const SpanArgs& span = a.spans[s];
    auto tiles = static_cast<int32_t>(tiles_of(a, span, kTileRows));
    PartRange parts = {0, 1};
    if (split || next < tiles * kv_heads) parts = parts_of(keys_of(a, span));
    int32_t pieces = split ? parts.end - parts.begin : 1, items = tiles * kv_heads * pieces;
    while (next < items) {
      auto at = static_cast<int32_t>(quotient(next, pieces));
      auto before = static_cast<int32_t>(quotient(at, kv_heads));
      int32_t kv_head = at - before * kv_heads, begin = parts.begin + next - at * pieces;
      body(AttentionItem{s, results, kv_head, (tiles - 1 - before) * kTileRows,
                         split ? PartRange{begin, begin + 1} : parts});
      next += step;
      step = static_cast<int32_t>(2 * count) - step;
    }
    next -= items;
    if (split) results += static_cast<int32_t>(part_results(a, span));
  }
}

// A block's layout: warpgroups that multiply have kQueryTile rows each, or share the same rows: the
// weights of some keys of a tile and the sums of some columns each. kLatent: values are the first
// columns of keys.
// T: what tensor cores multiply.
template <class T, int Width, int ValueWidth, int RowGroups, int ValueGroups>
struct TensorAttention {
  using Element = T;
  static constexpr int kWidth = Width, kValueWidth = ValueWidth;  // of a head
  static constexpr int kRowGroups = RowGroups, kGroups = RowGroups * ValueGroups;
  static constexpr bool kShareRows = ValueGroups > 1;
  static constexpr int kTileRows = kRowGroups * kQueryTile;
  static constexpr int kOwnKeys = kKeyTile / ValueGroups;  // of a warpgroup, in each tile
  static constexpr int kOwnValues = kValueWidth / ValueGroups;
  static constexpr bool kLatent = kValueWidth < kWidth;
  static constexpr bool kWide = kWidth > 128, kNarrow = kWidth < 128;
  static constexpr uint32_t kBlockBytes = kKeyTile * kTileRowBytes;  // 64 columns of a tile
  // Whether so few registers are left that weights are not computed while values are multiplied,
  // and nothing is copied by boxes.
  static constexpr bool kTight = kWide && kRowGroups > 1;
  static constexpr int kMultipliers = kGroups * kWarpgroup;
  static constexpr int kThreads = kMultipliers + kWarpgroup;

  // Large blocks have a multiprocessor to themselves.
  static constexpr int kBlocksPerMultiprocessor = kWide || kRowGroups > 1 ? 1 : 2;
  static constexpr uint32_t kStageBytes = kWidth / 64 * kBlockBytes;  // keys or values of a tile
  static constexpr uint32_t kQueryBytes = kRowGroups * kStageBytes;
  // Sums over an item's parts are in shared memory if they fit.
  static constexpr bool kKeepsSums = kRowGroups > 1 && !kWide;
  static constexpr uint32_t kSumBytes = kKeepsSums ? kTileRows * kValueWidth * 4 : 0;
  static constexpr int kStagesThatFit =
      ((224 << 10) / kBlocksPerMultiprocessor - kQueryBytes - kSumBytes) / kStageBytes;
  static constexpr int kStages = kStagesThatFit > 16 ? 16 : kStagesThatFit / 2 * 2;
  static constexpr uint32_t kQueries = kStages * kStageBytes;
  static constexpr uint32_t kSums = kQueries + kQueryBytes;
  static constexpr uint32_t kBarriers = kSums + kSumBytes;
  static constexpr uint32_t kWork = kBarriers + 2 * kStages * 8;  // AttentionWork of all spans
  static constexpr uint32_t kExchange = kWork + 32;               // of warpgroups that share rows
  static constexpr uint32_t kExchangeBytes = kShareRows ? kMultipliers * 32 : 0;
  static constexpr uint32_t kMaxima = kExchange + kExchangeBytes;
  static constexpr uint32_t kSharedBytes = kMaxima + kExchangeBytes / 4;
  static_assert(kBlocksPerMultiprocessor * (kSharedBytes + 1024) <= 228 * 1024);

  // Of a thread: at the start, then of those that multiply and of those that fetch.
  static constexpr int kRegisters = kBlocksPerMultiprocessor == 1 ? 168 : 128;
  static constexpr int kMultiplyRegisters = kGroups == 2 ? (kNarrow ? 208 : 216)
                                            : kWide      ? 248
                                                         : 176;
  static constexpr int kFetchRegisters = kGroups == 2 ? (kNarrow ? 88 : 72) : kWide ? 88 : 80;
  static_assert(kGroups * kMultiplyRegisters + kFetchRegisters <= (kGroups + 1) * kRegisters);

  AttentionArgs a;
  float* parts;        // kPartScratchBytes
  int64_t blocks = 0;  // of the launch
  int box_rows = 0;    // of both maps; 0: there are none
  TensorMap keys, values;
};

// The rows of a box, which a page has one after the other: at most a tile. 0 if keys are not copied
// by boxes, as they are converted, lie anywhere, or their pages are small.
constexpr int box_rows(const AttentionArgs& a) {
  constexpr int64_t kRowsMin = 16;
  bool fits = a.page_size % kKeyTile == 0 || kKeyTile % a.page_size == 0;
  bool copies = !is_quantised_state(a.pool_dtype) && a.selected.runs == nullptr;
  return copies && fits && a.page_size >= kRowsMin ? static_cast<int>(least(a.page_size, kKeyTile))
                                                   : 0;
}
// Adds maps to a kernel whose keys are copied by boxes. map_of(PoolRows) is a pointer to a
// TensorMap, null if there is none.
template <class K, class MapOf>
void add_maps(K& kernel, const MapOf& map_of) {
  int rows = box_rows(kernel.a);
  if (rows == 0 || K::kTight) return;
  const TensorMap* keys = map_of(PoolRows{kernel.a.k_pool, K::kWidth, rows});
  const TensorMap* values = keys;
  if (!K::kLatent) values = map_of(PoolRows{kernel.a.v_pool, K::kWidth, rows});
  if (keys == nullptr || values == nullptr) return;
  kernel.keys = *keys;
  kernel.values = *values;
  kernel.box_rows = rows;
}

// Calls launch(kernel, merge) with the TensorAttention for the pool and the width and the
// MergeParts that follows it. Spans of many rows get twice as many of them for each tile of keys:
// then what L2 delivers no longer limits them. map_of: see add_maps.
template <class T, class MapOf, class Launch>
void launch_tensor_attention_of(const AttentionArgs& args, float* parts, int64_t multiprocessors,
                                const MapOf& map_of, const Launch& launch) {
  auto run = [&]<class K>(K kernel) {
    kernel.blocks = K::kBlocksPerMultiprocessor * multiprocessors;
    add_maps(kernel, map_of);
    launch(kernel, MergeParts{args, parts, K::kTileRows, kernel.blocks});
  };
  auto run_of_width = [&]<int Width>() {
    bool many = args.rows * args.q_heads > args.span_count * args.kv_heads * kQueryTile &&
                args.selected.runs == nullptr;
    many ? run(TensorAttention<T, Width, Width, 2, 1>{args, parts})
         : run(TensorAttention<T, Width, Width, 1, 1>{args, parts});
  };
  if (args.head_dim == 64) return run_of_width.template operator()<64>();
  if (args.head_dim == 128) return run_of_width.template operator()<128>();
  if (args.head_dim == 256) return run_of_width.template operator()<256>();
  run(TensorAttention<T, kLatentWidth, kLatentRank, 1, 2>{args, parts});
}
template <class MapOf, class Launch>
void launch_tensor_attention(const AttentionArgs& args, float* parts, int64_t multiprocessors,
                             const MapOf& map_of, const Launch& launch) {
  if (args.pool_dtype == DType::kF16) {
    return launch_tensor_attention_of<Float16>(args, parts, multiprocessors, map_of, launch);
  }
  launch_tensor_attention_of<BFloat16>(args, parts, multiprocessors, map_of, launch);
}

}  // namespace banyan::cuda
