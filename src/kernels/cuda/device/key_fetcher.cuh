// The warpgroup of an attention kernel that fetches tiles of keys and values
// (tensor_attention.cuh).
#pragma once

#include "kernels/cuda/attention_items.h"
#include "kernels/cuda/device/ring.cuh"

namespace banyan::cuda::device {

// Calls body(first key) for the tiles of keys that the rows of an item see of a part.
template <class Body>
__device__ void for_key_tiles(KeyRange keys, int32_t part, const Body& body) {
  constexpr auto kKeys = static_cast<int32_t>(kPartKeys);
  constexpr auto kTileKeys = static_cast<int32_t>(kKeyTile);
  int32_t begin = part * kKeys, end = min(begin + kKeys, keys.end);
  if (keys.first > begin) begin = keys.first / kTileKeys * kTileKeys;
  for (int32_t first = begin; first < end; first += kTileKeys) body(first);
}

// The keys that any row of an item sees, and those that all see.
struct ItemKeys {
  KeyRange any, all;
};
__device__ inline ItemKeys keys_of(const AttentionArgs& a, const AttentionItem& item) {
  const SpanArgs& span = a.spans[item.span];
  int64_t per_token = rows_per_token(a);
  int64_t last_row = least(item.row + kQueryTile, query_rows(a, span)) - 1;
  KeyRange first = keys_of_token(a, span, quotient(item.row, per_token), item.kv_head);
  KeyRange last = keys_of_token(a, span, quotient(last_row, per_token), item.kv_head);
  return {{first.first, last.end}, {last.first, first.end}};
}

// The parts of an item that any row sees keys of.
__device__ inline PartRange parts_of(const AttentionItem& item, KeyRange any) {
  PartRange seen = cuda::parts_of(any);
  return {max(item.parts.begin, seen.begin), min(item.parts.end, seen.end)};
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
    for_attention_items(a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
      KeyRange keys = keys_of(a_, item).any;
      PartRange parts = parts_of(item, keys);
      for (int32_t part = parts.begin; part < parts.end; ++part) {
        for_key_tiles(keys, part, [&](int32_t first) {
          int next = find_row(item, keys, first + own_row());
          fetch_found();
          row_ = next;
          found_ = true;
        });
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

  // Keys without a row become zeros: a weight of zero times what lies in memory might be NaN.
  __device__ void fetch(const void* pool) {
    constexpr int kChunks = K::kWidth / 8;  // of a row
    filler_.wait_empty();
    uint32_t to = filler_.ring().at(filler_.ring().stage);
#pragma unroll 4
    for (int i = lane(); i < kRowsOfWarp * kChunks; i += kWarp) {
      int own = i / kChunks, chunk = i % kChunks, r = warp() * kRowsOfWarp + own;
      int source = __shfl_sync(0xffffffffu, row_, own);
      uint32_t at = static_cast<uint32_t>(chunk / 8) * K::kBlockBytes +
                    swizzled(static_cast<uint32_t>(r), static_cast<uint32_t>(chunk % 8) * 16);
      const auto* from = static_cast<const BFloat16*>(pool) + chunk * 8;
      copy_16_or_zeros(to + at, from + int64_t{source < 0 ? 0 : source} * K::kWidth, source >= 0);
    }
    filler_.filled_stage();
  }

  const AttentionArgs& a_;
  RingFiller<K> filler_;
  int row_ = -1;        // own_row() of the tile that was found last
  bool found_ = false;  // and is not fetched yet
};

}  // namespace banyan::cuda::device
