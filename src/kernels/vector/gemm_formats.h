// How weight formats differ in a product: how a line is read, the operands it yields, how x is
// prepared for them and how sums are scaled. kernels/gemm.h defines the arithmetic.
//
// A format F<V> over a vector class V has
//   kSourceBytes          of one column of the source rows
//   kLineMultiple         of lines, when one group is the whole row
//   kColumns              columns of a line, in kParts operands, each for a dword of x
//   kTileRows             rows that a tile multiplies with several blocks at once
//   kTallTileRows         up to which a tile of one block is faster than two of several; or 0
//   kStreams              blocks that one row reads side by side
//   kUnitGroups           groups whose scales and zeros precede their lines together; 0: all
//   prepare               one row of x, for broadcasting a dword to each part
//   part, multiply_add    the operands of a line, and their product with x
//   kWordLines            lines whose products, added, fit words; 0: they are added as dwords
//   start, step, scale    of a group of quantised weights
#pragma once

#include <cstring>

#include "kernels/gemm.h"
#include "kernels/scales.h"
#include "kernels/vector/vec_math.h"
#include "tensor/float_types.h"

namespace banyan::simd {

constexpr int64_t kBlockOutputs = 16;
constexpr int64_t kLineBytes = 64;

static inline int64_t blocks_of(int64_t n) {
  return (n + kBlockOutputs - 1) / kBlockOutputs;
}

// Offsets and sizes in a packed block and in a prepared row of x. A block is a line of row
// multipliers (if any), then units. A unit has a header (scales of its groups, then zeros) and the
// lines of these groups. So a block is read sequentially.
struct GemmShape {
  int64_t k = 0, group = 0, groups = 0;
  int64_t group_lines = 0;
  int64_t zeros_offset = 0, header_bytes = 0, unit_bytes = 0;       // of a unit
  int64_t first_unit = 0, block_bytes = 0;                          // of a block
  int64_t steps_offset = 0, starts_offset = 0, prepared_bytes = 0;  // of a row of x
};

// Offset of group g's unit, and g's index in it. Takes a format F, so that each file has its own
// copy.
template <class F>
int64_t unit_at(const GemmShape& s, int64_t g) {
  if constexpr (F::kUnitGroups == 0) {
    return s.first_unit;
  } else {
    return s.first_unit + g / F::kUnitGroups * s.unit_bytes;
  }
}
template <class F>
int64_t place_in_unit(int64_t g) {
  if constexpr (F::kUnitGroups == 0) {
    return g;
  } else {
    return g % F::kUnitGroups;
  }
}

// Offsets of group g's data in a block.
template <class F>
int64_t scales_at(const GemmShape& s, int64_t g) {
  return unit_at<F>(s, g) + place_in_unit<F>(g) * F::kScaleBytes * kBlockOutputs;
}
template <class F>
int64_t zeros_at(const GemmShape& s, int64_t g) {
  return unit_at<F>(s, g) + s.zeros_offset + place_in_unit<F>(g) * kBlockOutputs;
}
template <class F>
int64_t lines_at(const GemmShape& s, int64_t g) {
  return unit_at<F>(s, g) + s.header_bytes + place_in_unit<F>(g) * s.group_lines * kLineBytes;
}

static inline int64_t whole_lines(int64_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

template <class F>
GemmShape shape_of(int64_t k, int64_t group) {
  GemmShape s = {.k = k, .group = F::kScaled ? group : k};
  s.groups = k / s.group;
  s.group_lines = (s.group + F::kColumns - 1) / F::kColumns;
  if (s.groups == 1) {
    s.group_lines = (s.group_lines + F::kLineMultiple - 1) / F::kLineMultiple * F::kLineMultiple;
  }
  int64_t lines = s.groups * s.group_lines;
  int64_t unit_groups = F::kUnitGroups == 0 ? s.groups : F::kUnitGroups;
  s.zeros_offset = whole_lines(F::kScaleBytes * kBlockOutputs * unit_groups);
  s.header_bytes = s.zeros_offset + (F::kZeros ? whole_lines(kBlockOutputs * unit_groups) : 0);
  s.unit_bytes = s.header_bytes + unit_groups * s.group_lines * kLineBytes;
  s.first_unit = F::kMultiplier ? kLineBytes : 0;
  int64_t units = (s.groups + unit_groups - 1) / unit_groups;
  s.block_bytes = s.first_unit + units * s.header_bytes + lines * kLineBytes;
  s.steps_offset = whole_lines(lines * F::kParts * 4);
  s.starts_offset = s.steps_offset + (F::kQuantised ? whole_lines(s.groups * 4) : 0);
  s.prepared_bytes = s.starts_offset + (F::kQuantised ? whole_lines(s.groups * 4) : 0);
  // An odd number of lines: power-of-two strides would map rows to few cache sets.
  if (s.prepared_bytes / kLineBytes % 2 == 0) s.prepared_bytes += kLineBytes;
  return s;
}

// The formats of gemm_blocks.h have headers of another kind.
template <class F>
  requires requires(int64_t k) { F::shape(k); }
GemmShape shape_of(int64_t k, int64_t /*group*/) {
  return F::shape(k);
}

template <class T>
static inline T read(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

// ---- Plain weights ---------------------------------------------------------------------------

// Shared by the formats without scales.
template <class Vec>
struct Unscaled {
  using V = Vec;
  using Sum = typename V::F;
  static constexpr int kVectors = static_cast<int>(kBlockOutputs / V::kLanes);
  static constexpr int kTallTileRows = 0, kTileRows = V::kGemmRows, kStreams = V::kGemmStreams;
  static constexpr int kWordLines = 0;
  static constexpr bool kScaled = false, kQuantised = false, kMultiplier = false, kZeros = false;
  static constexpr int64_t kScaleBytes = 0, kLineMultiple = 1, kUnitGroups = 0;
  static Sum zero() { return V::set(0); }
  static void pack_header(const PackArgs&, const GemmShape&, int64_t, std::byte*, int64_t) {}
};

// x stays f32 and is multiplied column by column.
template <class V>
struct FloatOperands {
  using Operand = typename V::F;
  static auto broadcast(const std::byte* p) { return V::set(read<float>(p)); }
  template <class F>
  static void prepare_row(const float* x, const GemmShape& s, std::byte* to) {
    std::memcpy(to, x, s.k * sizeof(float));
    std::memset(to + s.k * sizeof(float), 0, s.steps_offset - s.k * sizeof(float));
  }
  static auto multiply_add(Operand sum, Operand weight, Operand x) {
    return V::fma(x, weight, sum);
  }
};

// x is rounded to bf16 and multiplied in pairs of columns.
template <class V>
struct PairOperands {
  using Operand = typename V::I;
  static auto broadcast(const std::byte* p) { return V::set_dword(read<int32_t>(p)); }
  template <class F>
  static void prepare_row(const float* x, const GemmShape& s, std::byte* to) {
    auto* pairs = reinterpret_cast<BFloat16*>(to);
    for (int64_t c = 0; c < s.k; c += V::kLanes) {
      store_up_to<V>(pairs + c, s.k - c, load_up_to<V>(x + c, s.k - c));
    }
    std::memset(to + s.k * 2, 0, s.steps_offset - s.k * 2);
  }
  static auto multiply_add(typename V::F sum, Operand weight, Operand x) {
    return V::dot2(sum, weight, x);
  }
};

template <class V>
struct F32Weights : Unscaled<V>, FloatOperands<V> {
  using Line = typename V::F;
  static constexpr int64_t kSourceBytes = 4, kColumns = 1, kParts = 1;
  static Line load_line(const std::byte* line, int v) {
    return V::load(reinterpret_cast<const float*>(line) + v * V::kLanes);
  }
  static auto part(Line line, int) { return line; }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    FloatOperands<V>::template prepare_row<F32Weights>(x, s, to);
  }
  static void pack_line(const std::byte* row, int64_t, int64_t l, std::byte* line, int64_t lane) {
    std::memcpy(line + lane * 4, row + l * 4, 4);
  }
  static float value(const std::byte* block, const GemmShape&, int64_t c, int64_t lane) {
    return read<float>(block + c * kLineBytes + lane * 4);
  }
};

// A line holds sixteen f16 of one column, then sixteen of the next.
template <class V>
struct F16Weights : Unscaled<V>, FloatOperands<V> {
  struct Line {
    typename V::F columns[2];
  };
  static constexpr int64_t kSourceBytes = 2, kColumns = 2, kParts = 2;
  static Line load_line(const std::byte* line, int v) {
    const auto* halves = reinterpret_cast<const Float16*>(line) + v * V::kLanes;
    return {V::load(halves), V::load(halves + kBlockOutputs)};
  }
  static auto part(const Line& line, int p) { return line.columns[p]; }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    FloatOperands<V>::template prepare_row<F16Weights>(x, s, to);
  }
  static void pack_line(const std::byte* row, int64_t k, int64_t l, std::byte* line, int64_t lane) {
    for (int64_t c = 2 * l; c < 2 * l + 2; ++c) {
      auto half = c < k ? read<uint16_t>(row + c * 2) : uint16_t{0};
      std::memcpy(line + (c % 2 * kBlockOutputs + lane) * 2, &half, 2);
    }
  }
  static float value(const std::byte* block, const GemmShape&, int64_t c, int64_t lane) {
    const std::byte* line = block + c / 2 * kLineBytes;
    return to_float(read<Float16>(line + (c % 2 * kBlockOutputs + lane) * 2));
  }
};

// A dword of a line holds two columns.
template <class V>
struct Bf16Layout : Unscaled<V> {
  using Line = typename V::I;
  static constexpr int64_t kSourceBytes = 2, kColumns = 2;
  static Line load_line(const std::byte* line, int v) { return V::load_line(line, v); }
  static void pack_line(const std::byte* row, int64_t k, int64_t l, std::byte* line, int64_t lane) {
    uint32_t pair = 0;
    if (2 * l + 1 < k) {
      pair = read<uint32_t>(row + 4 * l);
    } else if (2 * l < k) {
      pair = read<uint16_t>(row + 4 * l);
    }
    std::memcpy(line + lane * 4, &pair, 4);
  }
  static float value(const std::byte* block, const GemmShape&, int64_t c, int64_t lane) {
    return to_float(read<BFloat16>(block + c / 2 * kLineBytes + lane * 4 + c % 2 * 2));
  }
};

template <class V>
struct Bf16Weights : Bf16Layout<V>, FloatOperands<V> {
  static constexpr int64_t kParts = 2;
  static auto part(typename V::I line, int p) {
    return p == 0 ? V::low_bf16(line) : V::high_bf16(line);
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    FloatOperands<V>::template prepare_row<Bf16Weights>(x, s, to);
  }
};

template <class V>
struct Bf16PairWeights : Bf16Layout<V>, PairOperands<V> {
  static constexpr int64_t kParts = 1;
  static auto part(typename V::I line, int) { return line; }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    PairOperands<V>::template prepare_row<Bf16PairWeights>(x, s, to);
  }
};

// One f32 scale per group and output, ordered by group, then output; UnitGroups groups per unit.
template <class V, int64_t UnitGroups>
struct FloatScales {
  static constexpr bool kMultiplier = false, kZeros = false;
  static constexpr int64_t kScaleBytes = 4, kUnitGroups = UnitGroups;
  static auto scale(const std::byte* block, const GemmShape& s, int64_t g, int v) {
    const auto* scales = reinterpret_cast<const float*>(block + scales_at<FloatScales>(s, g));
    return V::load(scales + v * V::kLanes);
  }
  static float scale_of(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    return read<float>(block + scales_at<FloatScales>(s, c / s.group) + lane * 4);
  }
  static void pack_header(const PackArgs& a, const GemmShape& s, int64_t r, std::byte* block,
                          int64_t lane) {
    for (int64_t g = 0; g < s.groups; ++g) {
      std::memcpy(block + scales_at<FloatScales>(s, g) + lane * 4, a.scales + r * s.groups + g, 4);
    }
  }
};

// The line of column c, in a format with groups.
template <class F>
const std::byte* line_of(const std::byte* block, const GemmShape& s, int64_t c) {
  return block + lines_at<F>(s, c / s.group) + c % s.group / F::kColumns * kLineBytes;
}

// ---- fp8 -------------------------------------------------------------------------------------

// The dword of an output holds four columns in the order 0, 2, 1, 3: the even bytes are the first
// pair, the odd bytes the second.
template <class Vec>
struct Fp8Layout : FloatScales<Vec, 1> {
  using V = Vec;
  using Sum = typename V::F;
  using Line = typename V::I;
  static constexpr int kVectors = static_cast<int>(kBlockOutputs / V::kLanes);
  static constexpr int kTallTileRows = 0;
  static constexpr int kTileRows = V::kGemmRowsOfFp8, kStreams = V::kGemmStreamsOfFp8;
  static constexpr int kWordLines = 0;
  static constexpr bool kScaled = true, kQuantised = false;
  static constexpr int64_t kSourceBytes = 1, kColumns = 4, kLineMultiple = 1;

  static Line load_line(const std::byte* line, int v) { return V::load_line(line, v); }
  static Sum start(const std::byte*, const std::byte*, const GemmShape&, int64_t, int) {
    return V::set(0);
  }
  static Sum to_float(Sum sum) { return sum; }
  static Sum step(const std::byte*, const GemmShape&, int64_t) { return V::set(1); }
  static constexpr int64_t byte_of(int64_t c) { return c % 4 == 1 ? 2 : (c % 4 == 2 ? 1 : c % 4); }
  static void pack_line(const std::byte* row, int64_t k, int64_t l, std::byte* line, int64_t lane) {
    for (int64_t c = 4 * l; c < 4 * l + 4; ++c) {
      line[lane * 4 + byte_of(c)] = c < k ? row[c] : std::byte{0};
    }
  }
  static float value(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    const std::byte* line = line_of<Fp8Layout>(block, s, c);
    Float8E4M3 code = {static_cast<uint8_t>(line[lane * 4 + byte_of(c)])};
    return banyan::to_float(code) * Fp8Layout::scale_of(block, s, c, lane);
  }
};

template <class V>
struct Fp8Weights : Fp8Layout<V>, FloatOperands<V> {
  static constexpr int64_t kParts = 4;
  static auto part(typename V::I line, int p) {
    auto pair = V::fp8_to_bf16(p < 2 ? V::even_bytes(line) : V::odd_bytes(line));
    return p % 2 == 0 ? V::low_bf16(pair) : V::high_bf16(pair);
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    FloatOperands<V>::template prepare_row<Fp8Weights>(x, s, to);
  }
};

template <class V>
struct Fp8PairWeights : Fp8Layout<V>, PairOperands<V> {
  static constexpr int64_t kParts = 2;
  static auto part(typename V::I line, int p) {
    return V::fp8_to_bf16(p == 0 ? V::even_bytes(line) : V::odd_bytes(line));
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    PairOperands<V>::template prepare_row<Fp8PairWeights>(x, s, to);
  }
};

// ---- Integers --------------------------------------------------------------------------------

// Weights as unsigned bytes (value + kOffset), times signed bytes of x.
template <class Vec>
struct IntegerOperands {
  using V = Vec;
  using Sum = typename V::I;
  using Line = typename V::I;
  using Operand = typename V::I;
  static constexpr int kVectors = static_cast<int>(kBlockOutputs / V::kLanes);
  static constexpr int kStreams = V::kGemmStreams, kWordLines = 0;
  static constexpr bool kScaled = true, kQuantised = true;
  static constexpr int64_t kSourceBytes = 1, kLineMultiple = 1;

  static Line load_line(const std::byte* line, int v) { return V::load_line(line, v); }
  static auto broadcast(const std::byte* p) { return V::set_dword(read<int32_t>(p)); }
  static Sum multiply_add(Sum sum, Operand weight, Operand x) { return V::dot4(sum, weight, x); }
  static auto to_float(Sum sum) { return V::to_float(sum); }
  static auto step(const std::byte* x, const GemmShape& s, int64_t g) {
    return V::set(read<float>(x + s.steps_offset + g * 4));
  }
  static auto start(const std::byte* x, const std::byte*, const GemmShape& s, int64_t g, int) {
    return V::set_dword(read<int32_t>(x + s.starts_offset + g * 4));
  }

  // Writes codes, group scales, and -offset times the sum of each group's codes.
  static void prepare_row(const float* x, const GemmShape& s, int32_t offset, std::byte* to) {
    std::memset(to + s.group * s.groups, 0, s.steps_offset - s.group * s.groups);
    for (int64_t g = 0; g < s.groups; ++g) {
      auto* codes = reinterpret_cast<int8_t*>(to) + g * s.group;
      float step;
      int32_t sum = -offset * quantise_group(x + g * s.group, s.group, codes, step);
      std::memcpy(to + s.steps_offset + g * 4, &step, 4);
      std::memcpy(to + s.starts_offset + g * 4, &sum, 4);
    }
  }

  static int32_t quantise_group(const float* x, int64_t group, int8_t* codes, float& step) {
    auto largest = V::set(0), poison = V::set(0);
    for (int64_t c = 0; c < group; c += V::kLanes) {
      auto value = load_up_to<V>(x + c, group - c);
      largest = V::max(V::abs(value), largest);
      poison = V::fma(value, V::set(0), poison);
    }
    float top = V::largest(largest), nan = V::sum(poison);
    if (nan != 0) {
      std::memset(codes, 0, group);
      step = nan;
      return 0;
    }
    auto inverse = V::set(top >= kQuantisedMin ? 127.0f / top : 0.0f);
    step = top >= kQuantisedMin ? top / 127.0f : 0.0f;
    auto sums = V::set_dword(0);
    int64_t whole = group / V::kLanes * V::kLanes;
    for (int64_t c = 0; c < whole; c += V::kLanes) {
      sums = V::add_dwords(sums, V::store_bytes(codes + c, V::mul(V::load(x + c), inverse)));
    }
    if (whole < group) {
      int8_t some[V::kLanes];
      auto last = V::mul(V::load_first(x + whole, group - whole), inverse);
      sums = V::add_dwords(sums, V::store_bytes(some, last));
      std::memcpy(codes + whole, some, group - whole);
    }
    return V::sum_dwords(sums);
  }
};

template <class V>
struct Int8Weights : IntegerOperands<V>, FloatScales<V, 0> {
  static constexpr int kTallTileRows = 0, kTileRows = V::kGemmRowsOfBytes;
  static constexpr int64_t kColumns = 4, kParts = 1;
  static constexpr int32_t kOffset = 128;

  static auto part(typename V::I line, int) { return line; }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    Int8Weights::prepare_row(x, s, kOffset, to);
  }
  static void pack_line(const std::byte* row, int64_t k, int64_t l, std::byte* line, int64_t lane) {
    if (4 * (l + 1) <= k) {
      uint32_t codes = read<uint32_t>(row + 4 * l) ^ 0x80808080u;
      std::memcpy(line + lane * 4, &codes, 4);
      return;
    }
    for (int64_t c = 4 * l; c < 4 * l + 4; ++c) {
      line[lane * 4 + c % 4] = (c < k ? row[c] : std::byte{0}) ^ std::byte{0x80};
    }
  }
  static float value(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    const std::byte* line = line_of<Int8Weights>(block, s, c);
    auto code = static_cast<int8_t>(line[lane * 4 + c % 4] ^ std::byte{0x80});
    return static_cast<float>(code) * Int8Weights::scale_of(block, s, c, lane);
  }
};

// For vectors that multiply words but not four signed bytes at once. x is stored as words: columns
// 0, 2, 1, 3 of four, so that a part's dword meets the even or the odd bytes of a line.
template <class V>
struct Int8WordWeights : Int8Weights<V> {
  static constexpr int64_t kParts = 2;

  static auto part(typename V::I line, int p) {
    return p == 0 ? V::even_bytes(line) : V::odd_bytes(line);
  }
  static auto multiply_add(typename V::I sum, typename V::I weight, typename V::I x) {
    return V::in_order(V::add_dwords(sum, V::multiply_word_pairs(weight, x)));
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    std::memset(to + 2 * s.k, 0, s.steps_offset - 2 * s.k);
    for (int64_t g = 0; g < s.groups; ++g) {
      std::byte* words = to + 2 * g * s.group;
      auto* codes = reinterpret_cast<int8_t*>(words) + s.group;
      float step;
      int32_t sum = Int8WordWeights::quantise_group(x + g * s.group, s.group, codes, step);
      widen(codes, s.group, words);
      sum *= -Int8WordWeights::kOffset;
      std::memcpy(to + s.steps_offset + g * 4, &step, 4);
      std::memcpy(to + s.starts_offset + g * 4, &sum, 4);
    }
  }

 private:
  // The codes may fill the second half of the words.
  static void widen(const int8_t* codes, int64_t count, std::byte* words) {
    constexpr int64_t kAtOnce = 16;
    int64_t whole = count / kAtOnce * kAtOnce;
    for (int64_t c = 0; c < whole; c += kAtOnce) V::spread_codes(codes + c, words + 2 * c);
    for (int64_t c = whole; c < count; c += 4) {
      int8_t four[4] = {};
      std::memcpy(four, codes + c, count - c < 4 ? count - c : 4);
      int16_t wide[4] = {four[0], four[2], four[1], four[3]};
      std::memcpy(words + 2 * c, wide, 8);
    }
  }
};

// A dword of a line holds eight columns: byte i has column i in its low half and column 4 + i in
// its high half.
template <class V>
struct NibbleLayout : IntegerOperands<V> {
  static constexpr int kTileRows = V::kGemmRowsOfNibbles;
  static constexpr int kTallTileRows = V::kGemmTallRowsOfNibbles;
  static constexpr int64_t kColumns = 8, kParts = 2, kUnitGroups = 4;

  static auto multiply_add(typename V::I sum, typename V::I weight, typename V::I x) {
    return V::dot4_small(sum, weight, x);
  }
  static auto nibbles(typename V::I line, int p) {
    return p == 0 ? V::low_nibbles(line) : V::high_nibbles(line);
  }
  static void pack_line(const std::byte* row, int64_t k, int64_t l, std::byte* line, int64_t lane) {
    if (8 * (l + 1) <= k) {
      auto eight = read<uint64_t>(row + 8 * l);
      auto codes = static_cast<uint32_t>(eight | eight >> 28);
      std::memcpy(line + lane * 4, &codes, 4);
      return;
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < 4; ++i) {
      int64_t low = 8 * l + i, high = low + 4;
      line[lane * 4 + i] =
          (low < k ? row[low] : std::byte{0}) | (high < k ? row[high] : std::byte{0}) << 4;
    }
  }
  // The code of one column in a line.
  static int code(const std::byte* line, int64_t c, int64_t lane) {
    auto byte = static_cast<int>(line[lane * 4 + c % 4]);
    return c % 8 < 4 ? byte & 15 : byte >> 4;
  }
};

// int4 and uint4. Row multipliers come first, then scales as in kernels/scales.h.
template <class V, bool HasZeros>
struct Int4Weights : NibbleLayout<V> {
  static constexpr int kWordLines = V::kAddsWords ? 4 : 0;  // 4 * 4 * 15 * 127 < 2^15
  static constexpr bool kMultiplier = true, kZeros = HasZeros;
  static constexpr int64_t kScaleBytes = 2;
  static constexpr int32_t kOffset = HasZeros ? 1 : 8;

  static auto part(typename V::I line, int p) { return Int4Weights::nibbles(line, p); }
  static auto start(const std::byte* x, const std::byte* block, const GemmShape& s, int64_t g,
                    int v) {
    auto start = NibbleLayout<V>::start(x, block, s, g, v);
    if constexpr (!HasZeros) return start;
    return V::multiply_dwords(start,
                              V::load_bytes(block + zeros_at<Int4Weights>(s, g) + v * V::kLanes));
  }
  static auto scale(const std::byte* block, const GemmShape& s, int64_t g, int v) {
    const auto* halves = reinterpret_cast<const Float16*>(block + scales_at<Int4Weights>(s, g));
    return V::mul(V::load(halves + v * V::kLanes),
                  V::load(reinterpret_cast<const float*>(block) + v * V::kLanes));
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    Int4Weights::prepare_row(x, s, kOffset, to);
  }
  static void pack_header(const PackArgs& a, const GemmShape& s, int64_t r, std::byte* block,
                          int64_t lane) {
    constexpr int64_t kChunk = 64;
    // A row's multiplier depends on all its scales, so they are encoded together.
    const float* scales = a.scales + r * s.groups;
    float multiplier = row_multiplier(scales, s.groups);
    std::memcpy(block + lane * 4, &multiplier, 4);
    for (int64_t g = 0; g < s.groups; g += kChunk) {
      Float16 halves[kChunk];
      int64_t count = s.groups - g < kChunk ? s.groups - g : kChunk;
      encode_scales(scales + g, count, multiplier, halves);
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(block + scales_at<Int4Weights>(s, g + i) + lane * 2, &halves[i], 2);
        if constexpr (HasZeros) {
          block[zeros_at<Int4Weights>(s, g + i) + lane] =
              static_cast<std::byte>(a.zeros[r * s.groups + g + i]);
        }
      }
    }
  }
  static float value(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    int64_t g = c / s.group;
    int zero = HasZeros ? static_cast<int>(block[zeros_at<Int4Weights>(s, g) + lane]) : 8;
    auto half = read<Float16>(block + scales_at<Int4Weights>(s, g) + lane * 2);
    float scale = banyan::to_float(half) * read<float>(block + lane * 4);
    int code = Int4Weights::code(line_of<Int4Weights>(block, s, c), c, lane);
    return static_cast<float>(code - zero) * scale;
  }
};

// Scales are stored as exponents, biased as in f32.
template <class V>
struct Mxfp4Weights : NibbleLayout<V> {
  static constexpr int kWordLines = V::kAddsWords ? 2 : 0;  // 2 * 4 * 24 * 127 < 2^15
  static constexpr bool kMultiplier = false, kZeros = false;
  static constexpr int64_t kScaleBytes = 1;
  static constexpr int32_t kOffset = 12;
  // The values of e2m1, doubled and shifted by kOffset.
  static constexpr int8_t kCodes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

  static auto part(typename V::I line, int p) {
    return V::look_up(kCodes, Mxfp4Weights::nibbles(line, p));
  }
  // 2^(exponent - 127) / 2.
  static auto scale(const std::byte* block, const GemmShape& s, int64_t g, int v) {
    auto exponents = V::load_bytes(block + scales_at<Mxfp4Weights>(s, g) + v * V::kLanes);
    return V::mul(V::power_from_bits(exponents), V::set(0.5f));
  }
  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    Mxfp4Weights::prepare_row(x, s, kOffset, to);
  }
  static void pack_header(const PackArgs& a, const GemmShape& s, int64_t r, std::byte* block,
                          int64_t lane) {
    for (int64_t g = 0; g < s.groups; ++g) {
      auto bits = read<uint32_t>(a.scales + r * s.groups + g);
      block[scales_at<Mxfp4Weights>(s, g) + lane] = static_cast<std::byte>(bits >> 23);
    }
  }
  static float value(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    auto exponent = static_cast<uint32_t>(block[scales_at<Mxfp4Weights>(s, c / s.group) + lane]);
    uint32_t bits = exponent == 0 ? 0x400000u : exponent << 23;
    int code = Mxfp4Weights::code(line_of<Mxfp4Weights>(block, s, c), c, lane);
    return static_cast<float>(kCodes[code] - kOffset) * (read<float>(&bits) * 0.5f);
  }
};

}  // namespace banyan::simd
