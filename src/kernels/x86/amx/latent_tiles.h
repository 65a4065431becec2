// The steps of latent attention on AMX tiles for a part of the keys: scores, weights, weighted
// sums. See amx/latent_attention.h.
#pragma once

#include <cstring>

#include "kernels/vector/attention_tile.h"
#include "kernels/vector/latent_attention.h"

namespace banyan::simd {

constexpr int64_t kLatentGroup = 16;  // heads
constexpr int64_t kLatentStep = 32;   // keys or columns of one tile product
constexpr int64_t kLatentTileKeys = 16;
constexpr int64_t kLatentTileBytes = 1024;
constexpr int64_t kLatentSteps = kPart / kLatentStep;
// Groups that are processed while the interleaved keys of a part stay in cache; and groups of an
// item whose parts are shared among workers, for which each part's sums take memory.
constexpr int64_t kLatentGroupsMax = 64, kLatentSharedGroupsMax = 8;
// Steps of columns and of keys whose operands, of two groups, leave room in the level-1 cache for
// those of the keys, which stream through it.
constexpr int64_t kLatentScoreSteps = 9, kLatentSumSteps = 8;

// ---- Keys ------------------------------------------------------------------------------------

// The keys of a part, in contiguous tiles of sixteen.
struct LatentKeyTiles {
  int64_t width;
  int64_t count = 0;  // number of keys present
  const BFloat16* tiles[kPart / kLatentTileKeys];

  const BFloat16* row(int64_t key) const {
    return tiles[key / kLatentTileKeys] + key % kLatentTileKeys * width;
  }
};

// Whether the keys of a part are copied because they are not contiguous in a page.
static inline bool copies_keys(const LatentAttentionArgs& a) {
  return a.page_size % kLatentTileKeys != 0 || a.selected.runs != nullptr;
}

// Points the tiles at the first `count` keys of a part that row i attends to, copied to `copy` if
// copies_keys() says so. Tiles past the last repeat it.
static inline void locate_key_tiles(const LatentAttentionArgs& a, const SpanArgs& span, int64_t i,
                                    int64_t part, int64_t count, BFloat16* copy,
                                    LatentKeyTiles& keys) {
  auto row_at = [&](int64_t position) {
    return static_cast<const BFloat16*>(a.pool) +
           pool_offset(a.page_table, span, position, 0, 1, a.page_size, a.width);
  };
  auto row_of = [&](int64_t key) { return row_at(part * kPart + key); };
  auto copy_row = [&](int64_t key, const BFloat16* row) {
    std::memcpy(copy + key * a.width, row, a.width * sizeof(*copy));
  };
  keys.width = a.width;
  keys.count = count;
  bool copies = copies_keys(a);
  if (a.selected.runs != nullptr) {
    for_selected(a, span, i, part * kPart, count,
                 [&](int64_t key, int64_t position) { copy_row(key, row_at(position)); });
  } else if (copies) {
    for (int64_t key = 0; key < count; ++key) copy_row(key, row_of(key));
  }
  int64_t last = (count - 1) / kLatentTileKeys;
  for (int64_t t = 0; t < kPart / kLatentTileKeys; ++t) {
    int64_t key = (t < last ? t : last) * kLatentTileKeys;
    keys.tiles[t] = copies ? copy + key * a.width : row_of(key);
  }
}

// Whether keys [begin, end) are finite in the columns that are summed.
template <class V>
inline bool are_numbers(const LatentKeyTiles& keys, int64_t begin, int64_t end, int64_t rank) {
  for (int64_t key = begin; key < end; ++key) {
    for (int64_t c = 0; c < rank; c += kLatentStep) {
      if (!V::finite(V::load_pairs(keys.row(key) + c))) return false;
    }
  }
  return true;
}

// The keys of a part as pairs: for each 32 columns and 32 keys two tiles, in the processor's
// interleaving order. All are kept for several batches of groups; for a single batch only a few at
// a time, so that they do not evict the keys from the level-2 cache.
struct LatentPairTiles {
  std::byte* memory;
  int64_t column_mask, column_bytes, step_mask;

  static LatentPairTiles kept(std::byte* memory) {
    return {memory, ~int64_t{0}, kLatentSteps * 2 * kLatentTileBytes, kLatentSteps - 1};
  }
  static LatentPairTiles passing(std::byte* memory) {
    return {memory, 1, 4 * 2 * kLatentTileBytes, 3};
  }
  std::byte* at(int64_t column_step, int64_t step) const {
    return memory + (column_step & column_mask) * column_bytes +
           (step & step_mask) * 2 * kLatentTileBytes;
  }
};

// Interleaves 32 keys of 32 columns. Missing keys are zero.
template <class V>
inline void pair_keys(const LatentKeyTiles& keys, int64_t column_step, int64_t step,
                      const LatentPairTiles& pairs) {
  alignas(64) static constexpr BFloat16 kZeros[kLatentStep] = {};
  int64_t c = column_step * kLatentStep, first = step * kLatentStep;
  std::byte* low = pairs.at(column_step, step);
  std::byte* high = low + kLatentTileBytes;
  bool whole = first + kLatentStep <= keys.count;
  for (int64_t half = first; half < first + kLatentStep; half += kLatentTileKeys) {
    const BFloat16* row = keys.row(half) + c;
    for (int64_t key = half; key < half + kLatentTileKeys; key += 2, row += 2 * keys.width) {
      auto a = V::load_pairs(whole || key < keys.count ? row : kZeros);
      auto b = V::load_pairs(whole || key + 1 < keys.count ? row + keys.width : kZeros);
      V::store_line(low, V::interleave_low(a, b)), low += 64;
      V::store_line(high, V::interleave_high(a, b)), high += 64;
    }
  }
}

// ---- Scores ----------------------------------------------------------------------------------

// Heads in lanes: the queries of a group as pairs of columns, [width / 2, kLatentGroup], scaled so
// that products are logarithms to base 2.
template <class V>
inline void pack_queries(const LatentAttentionArgs& a, const float* q, int64_t heads,
                         std::byte* to) {
  auto scale = V::set(a.scale * 0x1.715476p+0f);  // 1 / ln 2
  for (int64_t c = 0; c < a.width; c += kLatentStep, to += kLatentTileBytes) {
    typename V::I pairs[kLatentGroup];
#pragma GCC unroll 16
    for (int64_t h = 0; h < kLatentGroup; ++h) {
      const float* x = q + h * a.width + c;
      pairs[h] = h < heads ? V::round_columns(V::mul(V::load(x), scale),
                                              V::mul(V::load(x + V::kLanes), scale))
                           : V::set_dword(0);
    }
    V::transpose(pairs);
#pragma GCC unroll 16
    for (int64_t i = 0; i < kLatentGroup; ++i) V::store_line(to + i * 64, pairs[i]);
  }
}

// scores[n][key][head] of 64 keys for one group or of 32 keys for two, over steps [begin, end) of
// columns, the first of which initialises the sums. Calls interleaved(step) after each step: work
// that the processor overlaps with the tile products.
template <class T, int Groups, class Interleaved>
inline void score_key_tiles(const BFloat16* const* keys, int64_t width, int64_t begin, int64_t end,
                            const std::byte* const* q, float* const* scores,
                            const Interleaved& interleaved) {
  constexpr int64_t kTile = kLatentTileKeys * kLatentGroup;
  float* sums[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sums[i] = Groups == 1 ? scores[0] + i * kTile : scores[i % 2] + i / 2 * kTile;
  }
  if (begin == 0) {
    T::template zero<0>(), T::template zero<1>();
    T::template zero<2>(), T::template zero<3>();
  } else {
    T::template load<0>(sums[0], 64), T::template load<1>(sums[1], 64);
    T::template load<2>(sums[2], 64), T::template load<3>(sums[3], 64);
  }
  int64_t stride = width * sizeof(BFloat16);
  for (int64_t s = begin; s < end; ++s) {
    int64_t c = s * kLatentStep;
    T::template load<6>(q[0] + s * kLatentTileBytes, 64);
    T::template load<4>(keys[0] + c, stride);
    T::template dot_bf16<0, 4, 6>();
    if constexpr (Groups == 1) {
      T::template load<5>(keys[1] + c, stride);
      T::template dot_bf16<1, 5, 6>();
      T::template load<7>(keys[2] + c, stride);
      T::template dot_bf16<2, 7, 6>();
      T::template load<4>(keys[3] + c, stride);
      T::template dot_bf16<3, 4, 6>();
    } else {
      T::template load<7>(q[1] + s * kLatentTileBytes, 64);
      T::template dot_bf16<1, 4, 7>();
      T::template load<5>(keys[1] + c, stride);
      T::template dot_bf16<2, 5, 6>();
      T::template dot_bf16<3, 5, 7>();
    }
    interleaved(s);
  }
  T::template store<0>(sums[0], 64), T::template store<1>(sums[1], 64);
  T::template store<2>(sums[2], 64), T::template store<3>(sums[3], 64);
}

// ---- Weights ---------------------------------------------------------------------------------

// The largest scores of a group, head by head.
template <class V>
struct LatentMax {
  typename V::F max[4];

  void start() {
    for (auto& m : max) m = V::set(kLowest);
  }
  // Those of keys [begin, end), where `begin` is a multiple of 4.
  void add(const float* scores, int64_t begin, int64_t end) {
    for (int64_t key = begin; key < end; key += 4) {
#pragma GCC unroll 4
      for (int64_t n = 0; n < 4; ++n) {
        int64_t k = key + n < end ? key + n : key;
        max[n] = V::max(V::load(scores + k * kLatentGroup), max[n]);
      }
    }
  }
  typename V::F all() const { return V::max(V::max(max[0], max[1]), V::max(max[2], max[3])); }
};

// 2^x for x <= 0, within 7e-6, and 0 below -126; the result is rounded to bf16. Written operation
// by operation instead of number by number, because the processor's reorder window is too small to
// overlap it with other work.
//
// x = n + r with |r| <= 1/2; 2^r by the polynomial that is exact at 0 and at Chebyshev's four
// points.
template <class V, int N>
[[gnu::always_inline]] inline void powers_of_two(typename V::F (&x)[N]) {
  typename V::F biased[N], r[N], p[N];
  auto bias = V::set(0x1.8p+23f + 127);  // n and an exponent's bias, in the last bits of the sum
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) biased[i] = V::add(x[i], bias);
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) r[i] = V::sub(x[i], V::sub(biased[i], bias));
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) p[i] = V::fma(r[i], V::set(0x1.3c6e5cp-7f), V::set(0x1.c96d5ep-5f));
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) p[i] = V::fma(r[i], p[i], V::set(0x1.ebfb3ep-3f));
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) p[i] = V::fma(r[i], p[i], V::set(0x1.62e2d2p-1f));
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) p[i] = V::fma(r[i], p[i], V::set(1.0f));
  auto least = V::set(-126);
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) x[i] = V::times_power_unless_below(x[i], least, p[i], biased[i]);
}

// Converts a group from scores [key][head] to weights [head][key], in tiles of 32 keys.
template <class V>
struct LatentWeights {
  const float* scores;
  int64_t count;          // of keys that are seen
  typename V::F max;      // of their scores
  typename V::F sums[2];  // of the weights of even and odd keys so far
  std::byte* tiles;

  typename V::F sum() const { return V::add(sums[0], sums[1]); }
};

// Turns the scores of up to two groups into weights, slice by slice, overlapped with products.
template <class V>
class LatentWeighing {
 public:
  LatentWeights<V> groups[2];

  void start(int count, int64_t steps) {
    count_ = count, steps_ = steps;
    group_ = 0, step_ = 0, slice_ = 0;
    for (int n = 0; n < count; ++n) groups[n].sums[0] = groups[n].sums[1] = V::set(0);
  }
  [[gnu::always_inline]] void go_on() {
    if (group_ < count_) slice();
  }
  void finish() {
    while (group_ < count_) slice();
  }

 private:
  static constexpr int kKeys = 8;  // of a slice
  static constexpr int64_t kSlices = kLatentStep / kKeys;

  [[gnu::noinline]] void slice() {
    LatentWeights<V>& group = groups[group_];
    int64_t left = group.count - step_ * kLatentStep;
    left >= kLatentStep ? weigh<true>(group, left) : weigh<false>(group, left);
    if (++slice_ < kSlices) return;
    slice_ = 0;
    V::transpose(pairs_);
    std::byte* tile = group.tiles + step_ * kLatentTileBytes;
#pragma GCC unroll 16
    for (int64_t h = 0; h < kLatentGroup; ++h) V::store_line(tile + h * 64, pairs_[h]);
    if (++step_ < steps_) return;
    step_ = 0;
    ++group_;
  }

  // Weighs the keys of a slice; `left` keys of its step are visible.
  template <bool All>
  [[gnu::always_inline]] void weigh(LatentWeights<V>& group, int64_t left) {
    const float* scores = group.scores + (step_ * kSlices + slice_) * kKeys * kLatentGroup;
    typename V::F weights[kKeys];
#pragma GCC unroll 8
    for (int n = 0; n < kKeys; ++n) {
      weights[n] = V::sub(V::load(scores + n * kLatentGroup), group.max);
    }
    powers_of_two<V>(weights);
#pragma GCC unroll 8
    for (int n = 0; n < kKeys; ++n) {
      weights[n] = All || slice_ * kKeys + n < left ? weights[n] : V::set(0);
    }
    auto even = group.sums[0], odd = group.sums[1];
#pragma GCC unroll 8
    for (int n = 0; n < kKeys; n += 2) {
      auto pair = V::round_pairs(weights[n], weights[n + 1]);
      even = V::add(even, V::low_bf16(pair));
      odd = V::add(odd, V::high_bf16(pair));
      pairs_[(slice_ * kKeys + n) / 2] = pair;
    }
    group.sums[0] = even, group.sums[1] = odd;
  }

  int count_ = 0, group_ = 0;
  int64_t steps_ = 0, step_ = 0, slice_ = 0;
  typename V::I pairs_[kLatentGroup];
};

// ---- Sums ------------------------------------------------------------------------------------

// Where the sums of a group go; the first `heads` lanes are real. If `merges`, they are added to
// the sums there (there * old + sums * own), and if `ends`, then divided by their weight.
struct LatentSink {
  float* to;
  int64_t stride, heads;
  bool merges, ends;
  alignas(64) float old[kLatentGroup];
  alignas(64) float own[kLatentGroup];
  alignas(64) float inverse[kLatentGroup];
};

// Moves sums of 32 columns of one head from two rows of tiles to their place.
template <class V>
inline void sink_sums(const float* low_tile, const float* high_tile, int64_t head, int64_t c,
                      const LatentSink& sink) {
  if (head >= sink.heads) return;
  auto a = V::load(low_tile + head * kLatentGroup), b = V::load(high_tile + head * kLatentGroup);
  auto low = V::columns_low(a, b), high = V::columns_high(a, b);
  float* to = sink.to + head * sink.stride + c;
  __builtin_prefetch(to + 2 * kLatentStep, 1);
  __builtin_prefetch(to + 2 * kLatentStep + V::kLanes, 1);
  if (sink.merges) {
    auto old = V::set(sink.old[head]), own = V::set(sink.own[head]);
    low = V::fma(V::load(to), old, V::mul(low, own));
    high = V::fma(V::load(to + V::kLanes), old, V::mul(high, own));
  }
  if (sink.ends) {
    auto inverse = V::set(sink.inverse[head]);
    low = V::fma(low, inverse, V::set(0));  // no negative zeros
    high = V::fma(high, inverse, V::set(0));
  }
  V::store(to, low);
  V::store(to + V::kLanes, high);
}

// The inputs of the sums of one or two groups.
template <int Groups>
struct LatentSumArgs {
  const LatentKeyTiles& keys;
  const LatentPairTiles& pairs;
  const std::byte* weights[Groups];  // tiles of 32 keys
  const LatentSink* sinks[Groups];
  float* tiles;   // of four, for each column unit
  int64_t steps;  // of 32 keys
};

// Weighted sums of a column unit: 32 columns for two groups, 64 for one. Between the products, the
// sums of the previous unit are moved to their places and, if Pairing, the next keys are
// interleaved.
template <class T, class V, int Groups, int Columns, bool Pairing>
class LatentSumUnit {
 public:
  static constexpr int64_t kTile = kLatentGroup * kLatentTileKeys;  // floats
  using Args = LatentSumArgs<Groups>;

  // Steps [begin, end) of the keys, of column steps from `column` on.
  template <class Interleaved>
  static void run(const Args& x, float* tiles, int64_t column, int64_t begin, int64_t end,
                  const Interleaved& interleaved) {
    if (begin == 0) {
      T::template zero<0>(), T::template zero<1>();
      T::template zero<2>(), T::template zero<3>();
    } else {
      T::template load<0>(tiles, 64), T::template load<1>(tiles + kTile, 64);
      T::template load<2>(tiles + 2 * kTile, 64), T::template load<3>(tiles + 3 * kTile, 64);
    }
    if constexpr (Pairing) pair(x, column, begin);
    for (int64_t s = begin; s < end; ++s) {
      if (Pairing && s + 1 < end) pair(x, column, s + 1);
      const std::byte* values = x.pairs.at(column, s);
      T::template load<4>(x.weights[0] + s * kLatentTileBytes, 64);
      T::template load<6>(values, 64);
      T::template dot_bf16<0, 4, 6>();
      T::template load<7>(values + kLatentTileBytes, 64);
      T::template dot_bf16<1, 4, 7>();
      if constexpr (Groups == 2) {
        T::template load<5>(x.weights[1] + s * kLatentTileBytes, 64);
        T::template dot_bf16<2, 5, 6>();
        T::template dot_bf16<3, 5, 7>();
      } else if constexpr (Columns == 2) {
        values = x.pairs.at(column + 1, s);
        T::template load<6>(values, 64);
        T::template dot_bf16<2, 4, 6>();
        T::template load<7>(values + kLatentTileBytes, 64);
        T::template dot_bf16<3, 4, 7>();
      }
      interleaved(s - begin, end - begin);
    }
    T::template store<0>(tiles, 64), T::template store<1>(tiles + kTile, 64);
    T::template store<2>(tiles + 2 * kTile, 64), T::template store<3>(tiles + 3 * kTile, 64);
  }

  // Moves share `s` of `shares` of a unit's sums to their places.
  static void sink(const Args& x, const float* tiles, int64_t column, int64_t s, int64_t shares) {
    constexpr int64_t kRows = Groups * Columns * kLatentGroup;
    for (int64_t n = kRows * s / shares; n < kRows * (s + 1) / shares; ++n) {
      const float* low = tiles + n / kLatentGroup * 2 * kTile;
      int64_t c = column + (Groups == 1 ? n / kLatentGroup : 0);
      sink_sums<V>(low, low + kTile, n % kLatentGroup, c * kLatentStep,
                   *x.sinks[Groups == 2 ? n / kLatentGroup : 0]);
    }
  }

 private:
  static void pair(const Args& x, int64_t column, int64_t step) {
    for (int64_t n = 0; n < Columns; ++n) pair_keys<V>(x.keys, column + n, step, x.pairs);
  }
};

// Weighted sums of all columns, for one group or two. Calls interleaved() after each step: work
// that the processor overlaps with the tile products.
template <class T, class V, int Groups, bool Pairing, class Interleaved>
inline void sum_groups(const LatentSumArgs<Groups>& x, int64_t rank,
                       const Interleaved& interleaved) {
  constexpr int kColumns = Groups == 1 ? 2 : 1;
  constexpr int64_t kUnitFloats = 4 * kLatentGroup * kLatentTileKeys;
  constexpr int64_t kSteps = Groups == 1 ? kLatentSteps : kLatentSumSteps;
  using Unit = LatentSumUnit<T, V, Groups, kColumns, Pairing>;
  int64_t columns = rank / kLatentStep, units = columns / kColumns;
  for (int64_t begin = 0; begin < x.steps; begin += kSteps) {
    int64_t end = begin + kSteps < x.steps ? begin + kSteps : x.steps;
    bool sinks = end == x.steps;
    for (int64_t u = 0; u < units; ++u) {
      int64_t column = u * kColumns;
      float* tiles = x.tiles + u * kUnitFloats;
      Unit::run(x, tiles, column, begin, end, [&](int64_t s, int64_t shares) {
        interleaved();
        if (!sinks || u == 0) return;
        Unit::sink(x, tiles - kUnitFloats, column - kColumns, s, shares);
      });
    }
  }
  if (units > 0) {
    Unit::sink(x, x.tiles + (units - 1) * kUnitFloats, (units - 1) * kColumns, 0, 1);
  }
  if (units * kColumns == columns) return;
  using Last = LatentSumUnit<T, V, Groups, 1, Pairing>;
  Last::run(x, x.tiles, columns - 1, 0, x.steps, [](int64_t, int64_t) {});
  Last::sink(x, x.tiles, columns - 1, 0, 1);
}

}  // namespace banyan::simd
