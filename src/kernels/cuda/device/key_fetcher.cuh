// The warpgroup of an attention kernel that fetches tiles of keys and values
// (tensor_attention.cuh).
#pragma once

#include "kernels/cuda/attention_items.h"
#include "kernels/cuda/device/packed_pairs.cuh"
#include "kernels/cuda/device/ring.cuh"
#include "kernels/cuda/device/warp.cuh"

namespace banyan::cuda::device {

inline constexpr auto kTileKeys = static_cast<int32_t>(kKeyTile);

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
  int32_t first = max(part_begin(item.parts.begin), any.first / kTileKeys * kTileKeys);
  return {first, min(part_begin(item.parts.end), any.end)};
}

// Whether all keys of the tile from `first` on are in the range.
__device__ inline bool covers(const KeyRange& range, int32_t first) {
  return first >= range.first && first + kTileKeys <= range.end;
}
// The keys of which whole tiles are copied by boxes, of all that rows of an item see.
template <class K>
__device__ KeyRange boxed_keys(const K& k, const KeyRange& seen) {
  return !K::kTight && k.box_rows > 0 ? seen : KeyRange{0, 0};
}

// A thread of the warpgroup that fetches. Whole tiles are copied by boxes, if there are maps, each
// by a thread of the first warp. Of others, a warp fetches sixteen rows.
template <class K>
class KeyFetcher {
 public:
  __device__ KeyFetcher(const K& k, unsigned char* shared)
      : k_(k), a_(k.a), shared_(shared), filler_(shared_address(shared)) {}

  // The rows of a tile are looked up before the previous tile is fetched, to hide the latency of
  // the page table.
  __device__ void run(bool split) {
    for_attention_items<K::kTileRows>(
        Warp(), a_, split, blockIdx.x, gridDim.x, [&](const AttentionItem& item) {
          KeyRange seen = keys_of<K::kTileRows>(a_, item).any, keys = tile_keys(item, seen);
          KeyRange boxed = boxed_keys(k_, seen);
          const int32_t* pages = a_.page_table + a_.spans[item.span].page_begin;
          for (int32_t first = keys.first; first < keys.end; first += kTileKeys) {
            bool by_boxes = covers(boxed, first);
            int32_t key = first + (by_boxes ? first_row_of_box() : own_row());
            Place next = place_of(item, pages, seen, key);
            if (quantised()) prefetch(row_at(next));
            fetch_found(&next);
            place_ = next;
            by_boxes_ = by_boxes;
            found_ = true;
          }
        });
    fetch_found(nullptr);
    filler_.finish();
  }

 private:
  using Element = typename K::Element;
  // Of a row of a pool: what pool_offset() reads and what it makes of it are apart.
  struct Place {
    int32_t page = -1, kv_head = 0, in_page = 0;  // page: -1 if there is no such row
  };

  __device__ static int warp() { return RingFiller<K>::thread() / kWarp; }
  __device__ static int lane() { return RingFiller<K>::thread() % kWarp; }
  // The row of a tile that this thread finds; two threads find the same one.
  __device__ static int own_row() { return warp() * kRowsOfWarp + lane() % kRowsOfWarp; }
  // Of this thread's box. Threads without one have that of another, whose row is there, too.
  __device__ int first_row_of_box() const { return lane() * k_.box_rows % kTileKeys; }

  // Of keys that no row sees there is none: their pages may be those of others by now.
  __device__ Place place_of(const AttentionItem& item, const int32_t* pages, const KeyRange& seen,
                            int32_t key) const {
    if (key < seen.first || key >= seen.end) return {};
    int64_t position = key;
    if (a_.selected.runs != nullptr) {
      int64_t token = quotient(item.row, rows_per_token(a_));
      int64_t row = a_.spans[item.span].row_begin + token;
      SelectedRow selected = selected_row(a_.selected, row, item.kv_head);
      position = selected.position(selected.run_of(key), key);
    }
    int64_t page = quotient(position, a_.page_size);
    return {pages[page], item.kv_head, static_cast<int32_t>(position - page * a_.page_size)};
  }
  __device__ int row_at(const Place& place) const {
    if (place.page < 0) return -1;
    auto heads = static_cast<int32_t>(a_.kv_heads), size = static_cast<int32_t>(a_.page_size);
    return (place.page * heads + place.kv_head) * size + place.in_page;
  }

  // Also starts copying the codes of the next tile, if the pools have codes and there is one.
  __device__ void fetch_found(const Place* next) {
    if (found_) row_ = row_at(place_);
    fetch(a_.k_pool, k_.keys, 0, next);
    if constexpr (!K::kLatent) fetch(a_.v_pool, k_.values, 1, next);
    found_ = false;
  }

  __device__ bool quantised() const {
    return !K::kCopiesCodes && std::is_same_v<Element, BFloat16> &&
           is_quantised_state(a_.pool_dtype);
  }
  __device__ static constexpr RowShape row_shape() {
    return {.width = K::kWidth, .split = K::kLatent ? K::kValueWidth : 0};
  }
  // Of a quantised row of a pool.
  __device__ static const unsigned char* codes(const void* pool, int row) {
    return static_cast<const unsigned char*>(pool) + int64_t{row} * row_shape().quantised_bytes();
  }

  // Threads wait for the codes that they load, so that these should be in L2 by then.
  __device__ void prefetch(int row) const {
    if (row < 0 || lane() >= kRowsOfWarp) return;
    prefetch_lines(codes(a_.k_pool, row));
    if constexpr (!K::kLatent) prefetch_lines(codes(a_.v_pool, row));
  }
  __device__ static void prefetch_lines(const unsigned char* codes) {
    constexpr int kLine = 128;
#pragma unroll
    for (int at = 0; at < row_shape().quantised_bytes(); at += kLine) prefetch_line(codes + at);
    prefetch_line(codes + row_shape().quantised_bytes() - 4);
  }

  // Of keys (0) or values (1). Those without a row become zeros: a weight of zero times what lies
  // in memory might be NaN.
  __device__ void fetch(const void* pool, const TensorMap& map, int which, const Place* next) {
    if (found_) {
      filler_.wait_empty();
      if constexpr (K::kCopiesCodes) {
        convert_codes(which);
      } else if (!K::kTight && by_boxes_) {
        copy_boxes(map);
      } else if (quantised()) {
        convert(pool);
      } else {
        copy(pool);
      }
    }
    if constexpr (K::kCopiesCodes) {
      if (next != nullptr) copy_codes(which, pool, *next);
    }
  }

  // Of the warp's rows, in shared memory.
  __device__ unsigned char* codes_here(int which) const {
    return shared_ + K::kCodes + static_cast<uint32_t>(2 * warp() + which) * K::kWarpCodeBytes;
  }
  __device__ uint32_t codes_barrier(int which) const {
    return shared_address(shared_ + K::kCodeBarriers) +
           static_cast<uint32_t>(2 * warp() + which) * 8;
  }
  // Those of a page follow each other, whether or not all of them are seen.
  __device__ void copy_codes(int which, const void* pool, const Place& place) {
    uint32_t seen = __ballot_sync(0xffffffffu, place.page >= 0 && lane() < kRowsOfWarp);
    awaits_codes_[which] = seen != 0;
    if (seen == 0) return;
    int lane_seen = __popc(~seen & (seen - 1));  // the first
    int first = __shfl_sync(0xffffffffu, row_at(place), lane_seen) - lane_seen;
    __syncwarp();  // all threads have read the codes before
    if (lane() > 0) return;
    barrier_arrive_expecting(codes_barrier(which), K::kWarpCodeBytes);
    copy_bulk(shared_address(codes_here(which)), codes(pool, first), K::kWarpCodeBytes,
              codes_barrier(which));
  }
  __device__ void wait_for_codes(int which) {
    barrier_wait(codes_barrier(which), code_parity_[which]);
    code_parity_[which] ^= 1;
  }

  __device__ void copy_boxes(const TensorMap& map) {
    const Ring<K>& ring = filler_.ring();
    uint32_t full = ring.full(ring.stage);
    __syncwarp();  // all threads know that the stage is empty before one arrives for them
    if (warp() == 0 && lane() < k_.boxes) {
      barrier_arrive_expecting(full, static_cast<uint32_t>(k_.box_rows) * K::kWidth * 2);
      uint32_t to =
          ring.at(ring.stage) + static_cast<uint32_t>(lane() * k_.box_rows) * kTileRowBytes;
#pragma unroll
      for (int block = 0; block < K::kWidth / 64; ++block) {
        copy_box(to + block * K::kBlockBytes, map, block * 64, row_, full);
      }
    } else if (lane() == kWarp - 1) {  // for all of the warp that have no box
      barrier_arrive_for(full, warp() == 0 ? kWarp - k_.boxes : kWarp);
    }
    filler_.next();
  }

  // Eight lanes copy 64 columns of a row, and the warp those of four rows.
  __device__ void copy(const void* pool) {
    constexpr int kRowsAtOnce = kWarp / 8;
    const auto* column = static_cast<const Element*>(pool) + lane() % 8 * 8;
    int in_group = lane() / 8;
    auto to = filler_.ring().at(filler_.ring().stage) +
              swizzled(static_cast<uint32_t>(warp() * kRowsOfWarp + in_group),
                       static_cast<uint32_t>(lane() % 8) * 16);
#pragma unroll
    for (int r = 0; r < kRowsOfWarp; r += kRowsAtOnce) {
      int source = __shfl_sync(0xffffffffu, row_, r + in_group);
      const Element* from = column + int64_t{source < 0 ? 0 : source} * K::kWidth;
      // The fifth to the eighth of eight rows have the other half of their chunks first.
      uint32_t at = (to ^ (r / kRowsAtOnce % 2 << 6)) + r * kTileRowBytes;
#pragma unroll
      for (int block = 0; block < K::kWidth / 64; ++block) {
        copy_16_or_zeros(at + block * K::kBlockBytes, from + block * 64, source >= 0);
      }
    }
    filler_.filled_stage();
  }

  // A lane has half of a row, to which its scale belongs, too.
  __device__ void convert_codes(int which) {
    const Ring<K>& ring = filler_.ring();
    int row = lane() % kRowsOfWarp, column = lane() / kRowsOfWarp * (K::kWidth / 2);
    uint32_t to = ring.at(ring.stage) + static_cast<uint32_t>(column / 64) * K::kBlockBytes +
                  swizzled(static_cast<uint32_t>(warp() * kRowsOfWarp + row),
                           static_cast<uint32_t>(column % 64) * 2);
    if (!awaits_codes_[which]) {
      store_chunks(to, [](int) { return uint4{}; });
    } else {
      wait_for_codes(which);
      const unsigned char* from = codes(codes_here(which), row);
      float scale = *reinterpret_cast<const float*>(from + row_shape().code_bytes());
      const auto* words = reinterpret_cast<const uint32_t*>(from + column);
      a_.pool_dtype == DType::kI8 ? convert_half<int8_t>(to, words, scale)
                                  : convert_half<Float8E4M3>(to, words, scale);
    }
    __syncwarp();
    if (lane() == 0) barrier_arrive_for(ring.full(ring.stage), kWarp);
    filler_.next();
  }
  template <class S>
  __device__ void convert_half(uint32_t to, const uint32_t* words, float scale) const {
    bool seen = row_ >= 0;  // codes of other rows are stale
    store_chunks(to, [&](int chunk) {
      uint2 first = pairs_of_codes<S>(seen ? words[2 * chunk] : 0, seen ? scale : 0);
      uint2 second = pairs_of_codes<S>(seen ? words[2 * chunk + 1] : 0, seen ? scale : 0);
      return uint4{first.x, first.y, second.x, second.y};
    });
  }
  // Chunks of eight columns of half a row; `to`: of the first.
  template <class Chunk>
  __device__ static void store_chunks(uint32_t to, const Chunk& chunk) {
    constexpr int kAtOnce = 4;
#pragma unroll 1
    for (int first = 0; first < K::kWidth / 16; first += kAtOnce) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        uint32_t block = to + static_cast<uint32_t>(first / 8) * K::kBlockBytes;
        store_16(block ^ static_cast<uint32_t>(first % 8 + i) << 4, chunk(first + i));
      }
    }
  }

  // Sixteen lanes convert 64 columns of a row, and the warp those of two rows.
  __device__ void convert(const void* pool) {
    constexpr int kWords = kRowsOfWarp / 2;
    // Blocks of 64 columns that are loaded at once.
    constexpr int kBlocks = K::kWidth == 128 && K::kRowGroups == 1 ? 2 : 1;
    int word = lane() % 16;
    asm volatile("" : "+r"(word));  // or registers keep what depends on it
    const unsigned char* from = codes(pool, 0) + word * 4;
    uint32_t to = filler_.ring().at(filler_.ring().stage) +
                  swizzled(static_cast<uint32_t>(warp() * kRowsOfWarp + lane() / 16),
                           static_cast<uint32_t>(word) * 8);
    float scale = scale_of(pool, 0);
#pragma unroll 1
    for (int block = 0; block < K::kWidth / 64; block += kBlocks) {
      if (K::kLatent && block * 64 == K::kValueWidth) scale = scale_of(pool, 1);
      uint32_t words[kBlocks][kWords];
#pragma unroll
      for (int r = 0; r < kWords; ++r) {
        int source = __shfl_sync(0xffffffffu, row_, 2 * r + lane() / 16);
        const auto* row = reinterpret_cast<const uint32_t*>(codes(from, source < 0 ? 0 : source));
#pragma unroll
        for (int b = 0; b < kBlocks; ++b) words[b][r] = source < 0 ? 0 : row[b * 16];
      }
#pragma unroll
      for (int b = 0; b < kBlocks; ++b, to += K::kBlockBytes) {
        if (a_.pool_dtype == DType::kI8) {
          store<int8_t>(to, words[b], scale);
        } else {
          store<Float8E4M3>(to, words[b], scale);
        }
      }
      from += kBlocks * 64;
    }
    filler_.stored_stage();
  }
  template <class S, int count>
  __device__ static void store(uint32_t to, const uint32_t (&words)[count], float scale) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      float own = __shfl_sync(0xffffffffu, scale, 2 * r + lane() / 16);
      // Two rows further, chunks have other places.
      store_8((to ^ 2 * r % 8 << 4) + 2 * r * kTileRowBytes, pairs_of_codes<S>(words[r], own));
    }
  }
  // Of this thread's row.
  __device__ float scale_of(const void* pool, int part) const {
    if (row_ < 0) return 0;
    const unsigned char* scales = codes(pool, row_) + row_shape().code_bytes();
    return reinterpret_cast<const float*>(scales)[part];
  }

  const K& k_;
  const AttentionArgs& a_;
  unsigned char* shared_;
  RingFiller<K> filler_;
  // Of the tile that was looked up last: this thread's row, and how it is fetched, if it is not
  // yet.
  Place place_;
  bool by_boxes_ = false, found_ = false;
  int row_ = -1;  // of the tile that is fetched
  // Copies of codes, of keys and of values.
  bool awaits_codes_[2] = {};
  uint32_t code_parity_[2] = {};
};

}  // namespace banyan::cuda::device
