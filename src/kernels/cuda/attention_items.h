// Attention on tensor cores: which block of a GPU computes what, and how kernels are launched. No
// bit depends on it.
#pragma once

#include "kernels/cuda/lane_sums.h"
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

// Of a span: tiles of one head of keys, and the parts that each of them is cut into.
struct SpanItems {
  int32_t tiles;
  PartRange parts;
  int32_t pieces;

  template <int kTileRows>
  BANYAN_HOST_DEVICE static SpanItems of(const AttentionArgs& a, int64_t s, bool split) {
    PartRange parts = parts_of(keys_of(a, a.spans[s]));
    return {static_cast<int32_t>(tiles_of(a, a.spans[s], kTileRows)), parts,
            split ? parts.end - parts.begin : 1};
  }
};

// Calls body(AttentionItem) for every item of worker `index` of `count`, on all lanes of a warp,
// which look at a span each (lane_sums.h).
//
// Later rows see more keys, so that a span's last tiles come first. Workers take turns at them back
// and forth: who had a longer item than the others has a shorter one next.
template <int kTileRows, class Warp, class Body>
BANYAN_DEVICE void for_attention_items(const Warp& warp, const AttentionArgs& a, bool split,
                                       int64_t index, int64_t count, const Body& body) {
  auto kv_heads = static_cast<int32_t>(a.kv_heads);
  // next: of the worker's items, counted from the warp's first; results: of the spans before these
  int32_t next = static_cast<int32_t>(index), results = 0;
  // To the worker's next item: 2 (count - index) - 1 and 2 index + 1 in turn.
  auto step = static_cast<int32_t>(2 * (count - index) - 1);
  for (int32_t first = 0; first < static_cast<int32_t>(a.span_count); first += kWarp) {
    auto items = warp.sums_to([&](int lane) {
      if (first + lane >= a.span_count) return int32_t{0};
      SpanItems of_span = SpanItems::of<kTileRows>(a, first + lane, split);
      return of_span.tiles * kv_heads * of_span.pieces;
    });
    auto results_to = [&] {  // not kept in registers
      return warp.sums_to([&](int lane) {
        bool exists = first + lane < a.span_count;
        return exists ? static_cast<int32_t>(part_results(a, a.spans[first + lane])) : int32_t{0};
      });
    };
    while (next < last_sum(warp, items)) {
      int lane = lane_above(warp, items, next);
      auto [tiles, parts, pieces] = SpanItems::of<kTileRows>(a, first + lane, split);
      int32_t within = next - sum_before(warp, items, lane);
      auto at = static_cast<int32_t>(quotient(within, pieces));
      auto before = static_cast<int32_t>(quotient(at, kv_heads));
      int32_t begin = parts.begin + within - at * pieces;
      int32_t earlier = split ? results + sum_before(warp, results_to(), lane) : 0;
      body(AttentionItem{first + lane, earlier, at - before * kv_heads,
                         (tiles - 1 - before) * kTileRows,
                         split ? PartRange{begin, begin + 1} : parts});
      next += step;
      step = static_cast<int32_t>(2 * count) - step;
    }
    next -= last_sum(warp, items);
    if (split) results += last_sum(warp, results_to());
  }
}

// The rows of a tile that each warp of a warpgroup fetches.
inline constexpr int kRowsOfWarp = kKeyTile / (kWarpgroup / kWarp);

// A block's layout: warpgroups that multiply have kQueryTile rows each, or share the same rows: the
// weights of some keys of a tile and the sums of some columns each. kLatent: values are the first
// columns of keys. T: what tensor cores multiply. Codes: pools are quantised, and their rows are
// copied to shared memory as they are, from where they are converted to tiles.
template <class T, int Width, int ValueWidth, int RowGroups, int ValueGroups, bool Codes = false>
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
  // totals are in shared memory, and nothing is copied by boxes.
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
  // Of keys and of values, what each warp converts of the next tile: rows that follow each other.
  static constexpr bool kCopiesCodes = Codes;
  static constexpr uint32_t kWarpCodeBytes =
      Codes ? kRowsOfWarp * RowShape{.width = kWidth}.quantised_bytes() : 0;
  static constexpr int kCodeCopies = Codes ? 2 * (kWarpgroup / kWarp) : 0;
  static constexpr int kStagesThatFit = ((224 << 10) / kBlocksPerMultiprocessor - kQueryBytes -
                                         kSumBytes - kCodeCopies * kWarpCodeBytes) /
                                        kStageBytes;
  static constexpr int kStages = kStagesThatFit > 16 ? 16 : kStagesThatFit / 2 * 2;
  static constexpr uint32_t kQueries = kStages * kStageBytes;
  static constexpr uint32_t kSums = kQueries + kQueryBytes;
  static constexpr uint32_t kBarriers = kSums + kSumBytes;
  static constexpr uint32_t kWork = kBarriers + 2 * kStages * 8;  // AttentionWork of all spans
  static constexpr uint32_t kExchange = kWork + 32;               // of warpgroups that share rows
  static constexpr uint32_t kExchangeBytes = kShareRows ? kMultipliers * 32 : 0;
  static constexpr uint32_t kMaxima = kExchange + kExchangeBytes;
  static constexpr uint32_t kTotals = kMaxima + kExchangeBytes / 4;
  static constexpr uint32_t kCodeBarriers = kTotals + (kTight ? kMultipliers * 16 : 0);
  static constexpr uint32_t kCodes = kCodeBarriers + kCodeCopies * 8;
  static constexpr uint32_t kSharedBytes = kCodes + kCodeCopies * kWarpCodeBytes;
  static_assert(kCodes % 16 == 0 && kWarpCodeBytes % 16 == 0);
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
  // Of both maps; 0: there are none. Boxes: of a tile.
  int box_rows = 0, boxes = 0;
  TensorMap keys, values;
};

// Whether the rows of codes that a warp converts follow each other.
constexpr bool copies_codes(const AttentionArgs& a) {
  return is_quantised_state(a.pool_dtype) && a.selected.runs == nullptr &&
         a.page_size % kRowsOfWarp == 0;
}
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
  kernel.boxes = static_cast<int>(kKeyTile) / rows;
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
    if constexpr (std::is_same_v<T, BFloat16>) {
      if (copies_codes(args) && !many) {
        return run(TensorAttention<T, Width, Width, 1, 1, true>{args, parts});
      }
      if constexpr (Width < 256) {  // wider prompts have no shared memory left for codes
        if (copies_codes(args)) {
          return run(TensorAttention<T, Width, Width, 2, 1, true>{args, parts});
        }
      }
    }
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
