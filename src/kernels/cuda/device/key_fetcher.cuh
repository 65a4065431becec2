// The warpgroup of an attention kernel that fetches tiles of keys and values
// (tensor_attention.cuh).
#pragma once

#include "kernels/cuda/attention_items.h"
#include "kernels/cuda/device/ring.cuh"

namespace banyan::cuda::device {

inline constexpr auto kTileKeys = static_cast<int32_t>(kKeyTile);
inline constexpr auto kPartTokens = static_cast<int32_t>(kPartKeys);

// The keys that any row of an item sees, and those that all see.
struct ItemKeys {
  KeyRange any, all;
};
template <int kTileRows>
__device__ ItemKeys keys_of(const AttentionArgs& a, const AttentionItem& item) {
  const SpanArgs& span = a.spans[item.span];
  int64_t per_token = rows_per_token(a);
  int64_t last_row = least(item.row + kTileRows, query_rows(a, span)) - 1;
  KeyRange first = keys_of_token(a, span, quotient(item.row, per_token), item.kv_head);
  KeyRange last = keys_of_token(a, span, quotient(last_row, per_token), item.kv_head);
  return {{first.first, last.end}, {last.first, first.end}};
}

// The keys of an item's parts that any row sees, from the beginning of a tile on.
__device__ inline KeyRange tile_keys(const AttentionItem& item, KeyRange any) {
  int32_t first = max(item.parts.begin * kPartTokens, any.first / kTileKeys * kTileKeys);
  return {first, min(item.parts.end * kPartTokens, any.end)};
}

// A thread of the warpgroup that fetches. A warp fetches sixteen rows of every tile.
template <class K>
class KeyFetcher {
 public:
  __device__ KeyFetcher(const K& k, unsigned char* shared)
      : a_(k.a), filler_(shared_address(shared)) {}

  // Where the rows of a tile lie is found before the tile ahead of it is fetched, as the page table
  // takes as long to answer.
  __device__ void run(bool split) {
    for_attention_items<K::kTileRows>(
        a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
          KeyRange seen = keys_of<K::kTileRows>(a_, item).any, keys = tile_keys(item, seen);
          for (int32_t first = keys.first; first < keys.end; first += kTileKeys) {
            int next = find_row(item, seen, first + own_row());
            fetch_found();
            row_ = next;
            found_ = true;
          }
        });
    fetch_found();
    filler_.finish();
  }

 private:
  static constexpr int kRowsOfWarp = kKeyTile / (kWarpgroup / kWarp);

  __device__ static int warp() { return RingFiller<K>::thread() / kWarp; }
  __device__ static int lane() { return RingFiller<K>::thread() % kWarp; }
  // The row of a tile that this thread finds; two threads find the same one.
  __device__ static int own_row() { return warp() * kRowsOfWarp + lane() % kRowsOfWarp; }

  // Of keys that no row sees there is none: their pages may be those of others by now.
  __device__ int find_row(const AttentionItem& item, const KeyRange& keys, int32_t key) const {
    return key >= keys.first && key < keys.end ? row_of(item, key) : -1;
  }

  __device__ int row_of(const AttentionItem& item, int32_t key) const {
    const SpanArgs& span = a_.spans[item.span];
    int64_t position = key;
    if (a_.selected.runs != nullptr) {
      int64_t token = quotient(item.row, rows_per_token(a_));
      SelectedRow selected = selected_row(a_.selected, span.row_begin + token, item.kv_head);
      position = selected.position(selected.run_of(key), key);
    }
    return static_cast<int>(
        pool_offset(a_.page_table, span, position, item.kv_head, a_.kv_heads, a_.page_size, 1));
  }

  __device__ void fetch_found() {
    if (!found_) return;
    fetch(a_.k_pool);
    if constexpr (!K::kLatent) fetch(a_.v_pool);
    found_ = false;
  }

  // Keys without a row become zeros: a weight of zero times what lies in memory might be NaN. Eight
  // lanes copy 64 columns of a row, and the warp those of four rows.
  __device__ void fetch(const void* pool) {
    constexpr int kRowsAtOnce = kWarp / 8;
    filler_.wait_empty();
    const auto* column = static_cast<const BFloat16*>(pool) + lane() % 8 * 8;
    int in_group = lane() / 8;
    auto to = filler_.ring().at(filler_.ring().stage) +
              swizzled(static_cast<uint32_t>(warp() * kRowsOfWarp + in_group),
                       static_cast<uint32_t>(lane() % 8) * 16);
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; r += kRowsAtOnce) {
      int source = __shfl_sync(0xffffffffu, row_, r + in_group);
      const BFloat16* from = column + int64_t{source < 0 ? 0 : source} * K::kWidth;
      // The fifth to the eighth of eight rows have the other half of their chunks first.
      uint32_t at = (to ^ (r / kRowsAtOnce % 2 << 6)) + r * kTileRowBytes;
#pragma unroll
      for (int block = 0; block < K::kWidth / 64; ++block) {
        copy_16_or_zeros(at + block * K::kBlockBytes, from + block * 64, source >= 0);
      }
    }
    filler_.filled_stage();
  }

  const AttentionArgs& a_;
  RingFiller<K> filler_;
  int row_ = -1;        // own_row() of the tile that was found last
  bool found_ = false;  // and is not fetched yet
};

}  // namespace banyan::cuda::device
