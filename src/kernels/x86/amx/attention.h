// Attention over bf16 pages on AMX tiles. Queries and weights are rounded to bf16; scores, sums and
// the softmax are f32, and the sum of the weights uses the unrounded ones.
//
// Queries process the keys of a part in steps of 128 at absolute positions: scores, their running
// maximum, weights, and products with the values. A tile product takes 32 columns or keys, and
// treats its rows, its columns and both operands alike. So queries may be rows, against transposed
// keys, or, if there are few, columns, against keys as stored: the bits are the same.
//
// The weight of a key that a query does not see is 0. Values that no query of the item sees are
// zeros too. Values that only some queries see are checked: NaN and infinity must not reach the
// other queries, see attend.
#pragma once

#include "kernels/vector/attention_pairs.h"
#include "kernels/x86/x86.h"

namespace banyan::simd {

constexpr int64_t kAmxQueries = 512;  // of an item
constexpr int64_t kAmxStep = 128;     // keys
constexpr int64_t kAmxRows = 32;      // queries processed together
using AmxQueries = QueryBlock<kAmxQueries>;

// The rows of a part's keys and values.
struct PartRows {
  using Element = BFloat16;
  KeyRange range;  // of the entries that are set
  const BFloat16* keys[kPart];
  const BFloat16* values[kPart];
};

static inline KeyRange clamp_to_part(KeyRange keys, int64_t start) {
  auto clamp = [&](int64_t key) {
    return key < start ? 0 : (key > start + kPart ? kPart : key - start);
  };
  return {clamp(keys.begin), clamp(keys.end)};
}

// Rows that will be read, in order, prefetched some time before.
struct PartRowsAhead {
  struct Stretch {
    const BFloat16* const* rows;
    int64_t at, end, width;
  };
  Stretch stretches[2 * kPart / kAmxStep + 1];
  int count = 0, current = 0;

  void add(const BFloat16* const* rows, KeyRange range, int64_t width) {
    if (range.begin < range.end) stretches[count++] = {rows, range.begin, range.end, width};
  }
  void skip(int64_t rows) {
    for (; rows > 0 && current < count; --rows) advance();
  }
  [[gnu::always_inline]] void fetch() {
    if (current == count) return;
    const Stretch& s = stretches[current];
    prefetch_row(s.rows[s.at], s.width);
    advance();
  }

 private:
  void advance() {
    if (++stretches[current].at == stretches[current].end) ++current;
  }
};

// Up to kAmxRows queries that are processed together, and the keys of the part, from `start` on,
// that they see.
struct AmxRowBlock {
  static constexpr int64_t kBlock = 32;  // keys

  int64_t first, count;
  KeyRange seen[kAmxRows];
  KeyRange common = {0, kPart};  // the keys that all of them see
  KeyRange block = {kPart, 0};   // the keys that any of them sees, in whole blocks

  AmxRowBlock(const AmxQueries& queries, int64_t from, int64_t rows, int64_t start)
      : first(from), count(rows) {
    for (int64_t r = 0; r < count; ++r) {
      KeyRange own = {queries.first_key[first + r], queries.end_key[first + r]};
      seen[r] = own = clamp_to_part(own, start);
      if (own.begin > common.begin) common.begin = own.begin;
      if (own.end < common.end) common.end = own.end;
      if (own.begin >= own.end) continue;
      if (own.begin < block.begin) block.begin = own.begin;
      if (own.end > block.end) block.end = own.end;
    }
    block = block.begin < block.end ? whole_blocks(block) : KeyRange{0, 0};
  }

  static KeyRange whole_blocks(KeyRange range) {
    return {range.begin / kBlock * kBlock, (range.end + kBlock - 1) / kBlock * kBlock};
  }
};

// The queries of an item and the keys of a part.
template <class T, class V>
struct AmxPart {
  using F = typename V::F;
  using I = typename V::I;
  using Weights = RoundedWeights<V>;

  static constexpr int64_t kSide = 16;                 // of a tile, in dwords
  static constexpr int64_t kPairs = 32;                // bf16 of a tile's row
  static constexpr int64_t kLine = 64, kBytes = 1024;  // of a tile
  static constexpr int64_t kDirectRows = kAmxRows;     // up to this many rows use keys as stored
  static constexpr int64_t kDirectKeys = 64, kKeysAhead = 64;
  // Scores of a query, with margins on both sides for masks.
  static constexpr int64_t kStride = kAmxStep + 2 * kPairs;
  static constexpr int64_t kStrideBytes = kStride * sizeof(float);
  static constexpr int64_t kScores = kAmxRows * kStride;
  static_assert(V::kLanes == kSide && AmxRowBlock::kBlock == kPairs);

  const AttentionArgs& a;
  AmxQueries& queries;
  const int64_t start, width, value_width;
  const bool direct;  // keys as stored
  bool by_step;       // values are placed step by step
  PartRows part, next;
  const BFloat16* outs[kAmxQueries];
  PartRowsAhead ahead;
  // Scratch.
  float* scores;      // [kAmxRows, kStride]
  std::byte* keys;    // B operands [kPart / kSide, width / kPairs]
  std::byte* values;  // B operands [keys / kPairs, value_width / kPairs][low, high]
  float* sums;        // [kAmxRows, value_width]
  BFloat16* zeros;    // in place of a value
  // Of each row of a block; weights are sums of every kSide-th key.
  alignas(64) float max[kAmxRows];
  alignas(64) float weights[kAmxRows][kSide];

  static int64_t scratch_floats(int64_t width, int64_t value_width) {
    return kScores + kPart / 2 * (width + value_width) + kAmxRows * value_width + value_width / 2;
  }

  AmxPart(const AttentionArgs& args, const AttentionItem& item, int64_t index, AmxQueries& q)
      : a(args),
        queries(q),
        start(index * kPart),
        width(q.width),
        value_width(q.value_width),
        direct(q.count <= kDirectRows),
        scores(q.scratch + kPairs),
        keys(reinterpret_cast<std::byte*>(q.scratch + kScores)),
        values(keys + kPart * width * 2),
        sums(reinterpret_cast<float*>(values + kPart * value_width * 2)),
        zeros(reinterpret_cast<BFloat16*>(sums + kAmxRows * value_width)) {
    for (int64_t c = 0; c < value_width; c += kSide) V::store(zeros + c, V::set(0));
    locate(a, item, start, clamp_to_part({item.first_key, item.end_key}, start), part);
    KeyRange later = clamp_to_part({start + kPart, item.end_key}, start + kPart);
    if (direct && later.end > kKeysAhead) later.end = kKeysAhead;
    locate(a, item, start + kPart, later, next);
    for (int64_t key = 0; direct && key < kPart; key += kAmxStep) {
      KeyRange step = {key > part.range.begin ? key : part.range.begin,
                       key + kAmxStep < part.range.end ? key + kAmxStep : part.range.end};
      ahead.add(part.keys, step, width);
      ahead.add(part.values, step, value_width);
    }
    if (direct) ahead.skip(kKeysAhead);
    ahead.add(next.keys, next.range, width);
    if (direct) return;
    ahead.add(next.values, next.range, value_width);
    if (later.begin < later.end) return;
    // After the last part comes the output: two bf16 take the room of one float.
    for (int64_t i = 0; i < q.count; ++i) {
      outs[i] = reinterpret_cast<const BFloat16*>(a.out + place_of(a, item, i) * a.value_dim);
    }
    ahead.add(outs, {0, q.count}, 2 * a.value_dim);
  }

  BFloat16* query(int64_t i) const { return query_of(queries, i); }
  static BFloat16* query_of(const AmxQueries& queries, int64_t i) {
    return reinterpret_cast<BFloat16*>(queries.q) + i * queries.width;
  }

  // ---- Operands ----

  // kSide rows from c on, transposed in pairs of columns: a tile for a B operand.
  template <class Row>
  static void transpose_tile(const Row& row, int64_t c, std::byte* to) {
    I rows[kSide];
#pragma GCC unroll 16
    for (int64_t j = 0; j < kSide; ++j) rows[j] = V::load_pairs(row(j) + c);
    V::transpose(rows);
#pragma GCC unroll 16
    for (int64_t j = 0; j < kSide; ++j) V::store_line(to + j * kLine, rows[j]);
  }

  // An invisible key uses the row of a visible one: its scores are masked.
  const BFloat16* key_row(int64_t key) const {
    if (key < part.range.begin) key = part.range.begin;
    return part.keys[key < part.range.end ? key : part.range.end - 1];
  }

  void transpose_keys() {
    int64_t key = part.range.begin / kSide * kSide;
    std::byte* to = keys + key * width * 2;
    for (; key < part.range.end; key += kSide) {
      for (int64_t c = 0; c < width; c += kPairs, to += kBytes) {
        transpose_tile([&](int64_t j) { return key_row(key + j); }, c, to);
      }
    }
  }

  // If keys are not transposed, there is room for queries, a copy of some keys, and their scores.
  std::byte* transposed_queries() const { return keys; }
  BFloat16* key_copy() const { return reinterpret_cast<BFloat16*>(keys + kDirectRows * width * 2); }
  float* transposed_scores() const {
    return reinterpret_cast<float*>(key_copy() + kDirectKeys * width);
  }

  void transpose_queries(const AmxRowBlock& rows) {
    std::byte* to = transposed_queries();
    for (int64_t i = rows.first; i < rows.first + rows.count; i += kSide) {
      for (int64_t c = 0; c < width; c += kPairs, to += kBytes) {
        transpose_tile([&](int64_t j) { return query(i + j); }, c, to);
      }
    }
  }

  // Interleaves the values of pair p, zeros for those outside of `range`, among those placed from
  // key `base` on.
  void place_pair(int64_t p, KeyRange range, int64_t base) {
    auto value = [&](int64_t key) {
      return key >= range.begin && key < range.end ? part.values[key] : zeros;
    };
    const BFloat16 *first = value(2 * p), *second = value(2 * p + 1);
    int64_t row = p - base / 2;
    std::byte* to = values + row / kSide * value_width * kLine + row % kSide * kLine;
    for (int64_t c = 0; c < value_width; c += kPairs, to += 2 * kBytes) {
      I even = V::load_pairs(first + c), odd = V::load_pairs(second + c);
      V::store_line(to, V::interleave_low(even, odd));
      V::store_line(to + kBytes, V::interleave_high(even, odd));
    }
  }

  void place_values(KeyRange block) {
    for (int64_t p = block.begin / 2; p < block.end / 2; ++p) {
      place_pair(p, part.range, block.begin);
      if (direct) ahead.fetch();
    }
  }

  // ---- Scores ----

  // scores[r][j] of kAmxRows queries and the keys of `step`.
  void score(const AmxRowBlock& rows, KeyRange step) {
    const BFloat16 *low = query(rows.first), *high = low + kSide * width;
    int64_t row_bytes = width * 2;
    for (int64_t key = step.begin; key < step.end; key += kPairs) {
      const std::byte *first = keys + key * row_bytes, *second = first + kSide * row_bytes;
      T::template zero<0>(), T::template zero<1>();
      T::template zero<2>(), T::template zero<3>();
      for (int64_t c = 0; c < width; c += kPairs, first += kBytes, second += kBytes) {
        T::template load<4>(low + c, row_bytes), T::template load<6>(first, kLine);
        T::template dot_bf16<0, 4, 6>();
        T::template load<7>(second, kLine), T::template dot_bf16<1, 4, 7>();
        T::template load<5>(high + c, row_bytes);
        T::template dot_bf16<2, 5, 6>(), T::template dot_bf16<3, 5, 7>();
        ahead.fetch(), ahead.fetch();
      }
      float *upper = scores + key % kAmxStep, *lower = upper + kSide * kStride;
      T::template store<0>(upper, kStrideBytes), T::template store<1>(upper + kSide, kStrideBytes);
      T::template store<2>(lower, kStrideBytes), T::template store<3>(lower + kSide, kStrideBytes);
    }
  }

  // The rows of kSide keys, contiguous: as stored, or copied if pages are smaller.
  const BFloat16* side_by_side(int64_t key, BFloat16* copy) const {
    bool whole = a.selected.runs == nullptr || a.selected.alignment % kSide == 0;
    if (whole && a.page_size % kSide == 0) {
      int64_t visible = key < part.range.begin ? part.range.begin : key;
      return part.keys[visible] - (visible - key) * width;
    }
    for (int64_t j = 0; j < kSide; ++j) {
      auto* to = reinterpret_cast<std::byte*>(copy + j * width);
      for (int64_t c = 0; c < width; c += kPairs) {
        V::store_line(to + c * 2, V::load_pairs(key_row(key + j) + c));
      }
    }
    return copy;
  }

  // The same for few queries: keys are rows of A operands.
  void score_directly(const AmxRowBlock& rows, KeyRange step) {
    constexpr int64_t kBlocks = kDirectKeys / kSide;
    KeyRange visible = {step.begin > part.range.begin ? step.begin : part.range.begin,
                        step.end < part.range.end ? step.end : part.range.end};
    int64_t row_bytes = width * 2, key = visible.begin / kSide * kSide;
    float* transposed = transposed_scores();
    for (; key < visible.end; key += kDirectKeys) {
      int64_t blocks = (visible.end - key + kSide - 1) / kSide;
      if (blocks > kBlocks) blocks = kBlocks;
      const BFloat16* rows_of[kBlocks];
      for (int64_t b = 0; b < kBlocks; ++b) {
        rows_of[b] =
            b < blocks ? side_by_side(key + b * kSide, key_copy() + b * kSide * width) : rows_of[0];
      }
      const std::byte* q = transposed_queries();
      for (int64_t i = 0; i < rows.count; i += kSide) {
        T::template zero<0>(), T::template zero<1>();
        T::template zero<2>(), T::template zero<3>();
        for (int64_t c = 0; c < width; c += kPairs, q += kBytes) {
          T::template load<4>(q, kLine);
          T::template load<5>(rows_of[0] + c, row_bytes), T::template dot_bf16<0, 5, 4>();
          T::template load<6>(rows_of[1] + c, row_bytes), T::template dot_bf16<1, 6, 4>();
          T::template load<7>(rows_of[2] + c, row_bytes), T::template dot_bf16<2, 7, 4>();
          T::template load<5>(rows_of[3] + c, row_bytes), T::template dot_bf16<3, 5, 4>();
          for (int64_t j = 0; i == 0 && j < kDirectKeys * kPairs; j += width) ahead.fetch();
        }
        T::template store<0>(transposed, kLine),
            T::template store<1>(transposed + kSide * kSide, kLine);
        T::template store<2>(transposed + 2 * kSide * kSide, kLine);
        T::template store<3>(transposed + 3 * kSide * kSide, kLine);
        turn_scores(blocks, rows.count - i, scores + i * kStride + key % kAmxStep);
      }
    }
  }

  // Transposes blocks of kSide keys x queries to the rows of up to kSide queries.
  void turn_scores(int64_t blocks, int64_t count, float* to) {
    alignas(64) std::byte tile[kBytes];
    const auto* block = reinterpret_cast<const BFloat16*>(transposed_scores());
    for (int64_t b = 0; b < blocks; ++b, block += kBytes / 2) {
      transpose_tile([&](int64_t j) { return block + j * kPairs; }, 0, tile);
      for (int64_t r = 0; r < kSide && r < count; ++r) {
        V::store_line(reinterpret_cast<std::byte*>(to + r * kStride + b * kSide),
                      V::load_line(tile + r * kLine, 0));
      }
    }
  }

  // ---- Weights ----

  // What `prepare` leaves as the factor of products; positive.
  float scale() const {
    if (a.soft_cap > 0 || a.scale == 0) return 1;
    return a.scale < 0 ? -a.scale : a.scale;
  }

  // Prepares a row of products so that only a positive factor is left, with minus infinity for the
  // keys of `step` outside of `seen`.
  void prepare(KeyRange seen, KeyRange step, float* row) const {
    bool capped = a.soft_cap > 0;
    int64_t base = step.begin / kAmxStep * kAmxStep;
    int64_t begin = step.begin - base, end = step.end - base;
    for (int64_t j = begin; j < end && (capped || a.scale <= 0); j += kSide) {
      float factor = capped ? a.scale : (a.scale < 0 ? -1.0f : 0.0f);
      F score = V::mul(V::load(row + j), V::set(factor));
      V::store(row + j, capped ? soften<V>(score, a.soft_cap) : score);
    }
    F nothing = V::set(-__builtin_inff());
    int64_t from = seen.begin - base < end ? seen.begin - base : end;
    int64_t to = seen.end - base > begin ? seen.end - base : begin;
    for (int64_t j = from; j > begin; j -= kSide) V::store(row + j - kSide, nothing);
    for (int64_t j = to; j < end; j += kSide) V::store(row + j, nothing);
  }

  // The largest visible score of the step, for each of up to kSide rows from i on. Minus infinity
  // counts as the lowest number; NaN is ignored.
  F peaks(const AmxRowBlock& rows, int64_t i, KeyRange step) {
    alignas(64) float tile[kSide][kSide];
    int64_t begin = step.begin % kAmxStep, end = begin + step.end - step.begin;
    for (int64_t r = 0; r < kSide; ++r) {
      F peak[2] = {V::set(kLowest), V::set(kLowest)};
      float* row = scores + (i + r) * kStride;
      if (i + r < rows.count) {
        prepare(rows.seen[i + r], step, row);
        for (int64_t j = begin; j < end; j += kPairs) {
          peak[0] = V::max(V::load(row + j), peak[0]);
          peak[1] = V::max(V::load(row + j + kSide), peak[1]);
        }
      }
      V::store(tile[r], V::max(peak[0], peak[1]));
    }
    const auto* pairs = reinterpret_cast<const BFloat16*>(tile);
    transpose_tile([&](int64_t r) { return pairs + r * kPairs; }, 0,
                   reinterpret_cast<std::byte*>(tile));
    F peak = V::load(tile[0]);
    for (int64_t r = 1; r < kSide; ++r) peak = V::max(V::load(tile[r]), peak);
    return V::max(V::mul(peak, V::set(scale())), V::set(kLowest));
  }

  // Updates the rows' maxima with the step's scores, and rescales earlier sums to them.
  void raise(const AmxRowBlock& rows, KeyRange step, bool first, float* to) {
    for (int64_t i = 0; i < rows.count; i += kSide) {
      F peak = peaks(rows, i, step), old = first ? peak : V::load(max + i);
      peak = V::max(peak, old);
      V::store(max + i, peak);
      alignas(64) float correction[kSide];
      V::store(correction, exp<V>(V::sub(old, peak)));
      for (int64_t r = i; r < i + kSide && r < rows.count; ++r) {
        if (first) V::store(weights[r], V::set(0));
        if (first || correction[r - i] == 1) continue;
        F factor = V::set(correction[r - i]);
        V::store(weights[r], V::mul(V::load(weights[r]), factor));
        float* sum = to + r * value_width;
        for (int64_t c = 0; c < value_width; c += kSide) {
          V::store(sum + c, V::mul(V::load(sum + c), factor));
        }
      }
    }
  }

  // Turns the scores of row r into weights, stored as bf16 at the beginning of the row.
  void weigh(int64_t r, KeyRange step) {
    float* row = scores + r * kStride;
    auto* rounded = reinterpret_cast<BFloat16*>(row);
    F factor = V::set(scale()), shift = V::set(-max[r]);
    F total[2] = {V::set(0), V::set(0)};
    int64_t begin = step.begin % kAmxStep, end = begin + step.end - step.begin;
    for (int64_t j = begin; j < end; j += kPairs) {
      F weight[2];
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        weight[h] = Weights::of(V::fma(V::load(row + j + h * kSide), factor, shift));
        total[h] = V::add(total[h], weight[h]);
      }
      V::store_rounded(rounded + j, weight[0], weight[1]);
    }
    V::store(weights[r], V::add(V::load(weights[r]), V::add(total[0], total[1])));
  }

  // ---- Weighted sums ----

  // to[r][c] of RowTiles tiles of queries and ColumnTiles tiles of columns, for `count` keys.
  template <int RowTiles, int ColumnTiles>
  void multiply_tiles(const BFloat16* weight, const std::byte* value, int64_t count, bool from_zero,
                      float* to) {
    constexpr bool kTwoRows = RowTiles == 2, kFour = ColumnTiles == 4;
    int64_t bytes = value_width * sizeof(float);
    float* third = kFour ? to + 2 * kSide : to + kSide * value_width;
    if (from_zero) {
      T::template zero<0>(), T::template zero<1>();
      T::template zero<2>(), T::template zero<3>();
    } else {
      T::template load<0>(to, bytes), T::template load<1>(to + kSide, bytes);
      if constexpr (kTwoRows || kFour) {
        T::template load<2>(third, bytes), T::template load<3>(third + kSide, bytes);
      }
    }
    for (int64_t j = 0; j < count; j += kPairs, value += value_width * kLine) {
      T::template load<4>(weight + j, kStrideBytes);
      T::template load<6>(value, kLine), T::template dot_bf16<0, 4, 6>();
      T::template load<7>(value + kBytes, kLine), T::template dot_bf16<1, 4, 7>();
      if constexpr (kTwoRows) {
        T::template load<5>(weight + j + 2 * kSide * kStride, kStrideBytes);
        T::template dot_bf16<2, 5, 6>(), T::template dot_bf16<3, 5, 7>();
      } else if constexpr (kFour) {
        T::template load<6>(value + 2 * kBytes, kLine), T::template dot_bf16<2, 4, 6>();
        T::template load<7>(value + 3 * kBytes, kLine), T::template dot_bf16<3, 4, 7>();
      }
      for (int64_t f = 0; direct && f < 8; ++f) ahead.fetch();
    }
    T::template store<0>(to, bytes), T::template store<1>(to + kSide, bytes);
    if constexpr (kTwoRows || kFour) {
      T::template store<2>(third, bytes), T::template store<3>(third + kSide, bytes);
    }
  }

  // The same for all columns and the keys of `step`.
  template <int RowTiles>
  void multiply(KeyRange step, bool from_zero, float* to) {
    constexpr int kColumnTiles = 4 / RowTiles;
    const auto* weight = reinterpret_cast<const BFloat16*>(scores) + step.begin % kAmxStep;
    int64_t base = by_step ? step.begin : AmxRowBlock::whole_blocks(part.range).begin;
    const std::byte* value = values + (step.begin - base) * value_width * 2;
    int64_t count = step.end - step.begin, c = 0;
    for (; c + kColumnTiles * kSide <= value_width; c += kColumnTiles * kSide) {
      multiply_tiles<RowTiles, kColumnTiles>(weight, value + c * kLine, count, from_zero, to + c);
    }
    if (c < value_width) {
      multiply_tiles<RowTiles, 2>(weight, value + c * kLine, count, from_zero, to + c);
    }
  }

  // ---- Rows ----

  void attend_together(const AmxRowBlock& rows) {
    bool full = rows.count == kAmxRows;  // otherwise tiles reach past the queries
    float* own = queries.sums + rows.first * value_width;
    float* to = full ? own : sums;
    if (direct) transpose_queries(rows);
    for (int64_t key = rows.block.begin; key < rows.block.end;) {
      bool first = key == rows.block.begin;
      KeyRange step = {key, (key / kAmxStep + 1) * kAmxStep};
      if (step.end > rows.block.end) step.end = rows.block.end;
      direct ? score_directly(rows, step) : score(rows, step);
      raise(rows, step, first, to);
      for (int64_t r = 0; r < rows.count; ++r) weigh(r, step);
      if (by_step) place_values(step);
      rows.count > kSide ? multiply<2>(step, first, to) : multiply<1>(step, first, to);
      key = step.end;
    }
    for (int64_t r = 0; r < rows.count; ++r) {
      queries.max[rows.first + r] = max[r];
      queries.weight[rows.first + r] = V::sum(V::load(weights[r]));
    }
    for (int64_t c = 0; !full && c < rows.count * value_width; c += kSide) {
      V::store(own + c, V::load(to + c));
    }
  }

  // The pairs of the block that hold NaN or infinity for a key that not all rows see.
  struct BadPairs {
    int64_t count = 0;
    int16_t pairs[kPart / 2];
  };
  void find_bad_pairs(const AmxRowBlock& rows, BadPairs& bad) const {
    auto look_at = [&](int64_t begin, int64_t end) {
      if (begin < part.range.begin) begin = part.range.begin;
      if (end > part.range.end) end = part.range.end;
      for (int64_t key = begin; key < end; ++key) {
        bool finite = true;
        for (int64_t c = 0; c < value_width; c += kPairs) {
          finite &= V::finite(V::load_pairs(part.values[key] + c));
        }
        auto pair = static_cast<int16_t>(key / 2);
        bool known = bad.count > 0 && bad.pairs[bad.count - 1] == pair;
        if (!finite && !known) bad.pairs[bad.count++] = pair;
      }
    };
    bool some = rows.common.begin < rows.common.end;
    look_at(rows.block.begin, some ? rows.common.begin : rows.block.end);
    if (some) look_at(rows.common.end, rows.block.end);
  }

  // Rows with such values are processed one by one, with zeros for those that they do not see.
  void attend(const AmxRowBlock& rows) {
    if (rows.block.begin >= rows.block.end) return;
    BadPairs bad;
    if (!by_step) find_bad_pairs(rows, bad);
    if (bad.count == 0) return attend_together(rows);
    int64_t base = AmxRowBlock::whole_blocks(part.range).begin;
    auto place_bad = [&](KeyRange range) {
      for (int64_t b = 0; b < bad.count; ++b) place_pair(bad.pairs[b], range, base);
    };
    for (int64_t r = 0; r < rows.count; ++r) {
      AmxRowBlock one(queries, rows.first + r, 1, start);
      place_bad(rows.seen[r]);
      if (one.block.begin < one.block.end) attend_together(one);
    }
    place_bad(part.range);
  }

  void run() {
    AmxRowBlock all(queries, 0, direct ? queries.count : 0, start);
    by_step = direct && all.common.begin <= part.range.begin && all.common.end >= part.range.end;
    if (!by_step) place_values(AmxRowBlock::whole_blocks(part.range));
    if (direct) return attend(all);
    transpose_keys();
    for (int64_t first = 0; first < queries.count; first += kAmxRows) {
      int64_t left = queries.count - first;
      attend(AmxRowBlock(queries, first, left < kAmxRows ? left : kAmxRows, start));
    }
  }
};

template <class T, class V>
struct AmxForm {
  using Element = BFloat16;
  using Queries = AmxQueries;
  static constexpr bool kWholeParts = true;
  static constexpr int64_t kQueries = kAmxQueries, kQueriesMin = 64;

  static bool fits(int64_t head_dim) { return PairForm<V>::fits(head_dim); }
  static int64_t width(int64_t head_dim) { return head_dim; }
  static int64_t place(int64_t c) { return interleaved_place(c); }
  static int64_t scratch_floats(int64_t width, int64_t value_width) {
    return AmxPart<T, V>::scratch_floats(width, value_width);
  }
  // A tile of keys also costs its reading and rearranging.
  static int64_t tile_cost(int64_t queries) { return 64 + queries; }
  static void begin() { T::begin(); }
  static void end() { T::end(); }

  static void start_query(const float* q, int64_t head_dim, int64_t i, Queries& queries) {
    BFloat16* to = AmxPart<T, V>::query_of(queries, i);
    for (int64_t c = 0; c < head_dim; c += 2 * V::kLanes) {
      V::store_rounded(to + c, V::load(q + c), V::load(q + c + V::kLanes));
    }
  }
  static void attend_part(const AttentionArgs& a, const AttentionItem& item, int64_t index,
                          Queries& queries) {
    AmxPart<T, V>(a, item, index, queries).run();
  }
  // A sum that cancels is 0 of either sign, depending on how many products with 0 follow.
  static void finish_query(const float* sums, int64_t value_dim, float* out) {
    order_columns<V>(sums, value_dim, out);
    for (int64_t c = 0; c < value_dim; c += V::kLanes) {
      V::store(out + c, V::add(V::load(out + c), V::set(0)));
    }
  }
};

// Heads of other sizes, and other pools, use the vector form.
template <class T, class V>
void attention_tiles(const AttentionArgs& a) {
  using Form = AmxForm<T, V>;
  bool fits = Form::fits(a.head_dim) && Form::fits(a.value_dim);
  if (a.pool_dtype != DType::kBF16 || !fits) return kAvx512Bf16Products.attention(a);
  attend_all<V, Form>(a);
}

template <class T, class V>
constexpr TileProducts with_tile_attention(TileProducts products) {
  products.attention = attention_tiles<T, V>;
  return products;
}

}  // namespace banyan::simd
