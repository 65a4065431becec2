// GEMM for the weight formats of GGUF (kernels/block_forms.h), over the blocks, streams and tiles
// of gemm.h.
//
// A unit holds 256 columns of sixteen outputs: a header, then for each 32 columns as many lines of
// 64 bytes as a code has bits. A line holds a dword for each output, whose byte i belongs to the
// columns i modulo 4. Planes of a code's bits follow each other:
//
//   four bits  4 lines; byte i of line l has column 8l + i in its low half and 8l + 4 + i in its
//              high half
//   two bits   2 lines; bits 2j of byte i of line l are column 16l + 4j + i
//   one bit    1 line; bit j of byte i is column 4j + i
//
// The header: scales (f16) of the sixteen outputs, minima, then levels of all parts, and levels of
// the minima. q2 keeps both levels in one byte. Without levels: scales of all eight groups, then
// their minima.
#pragma once

#include <cstring>

#include "kernels/block_forms.h"
#include "kernels/vector/gemm.h"

namespace banyan::simd {

// kIq4Values less the first, as unsigned bytes, for products of unsigned with signed bytes.
constexpr int8_t kIq4Operands[16] = {0,    23,   44,   62,  78,  92,  105, 117,
                                     -128, -116, -104, -91, -76, -60, -40, -16};

template <class Vec, BlockForm Form, bool Levelled>
struct BlockWeights : IntegerOperands<Vec> {
  using V = Vec;
  using I = typename V::I;
  static constexpr bool kPlanes = true, kMins = Form.mins;
  static constexpr int kTileRows = V::kGemmRowsOfNibbles, kTallTileRows = 0;
  static constexpr int kParts = static_cast<int>(kBlockStep) / Form.part;  // of 32 columns
  static constexpr int kOperands = Form.part / 4;                          // of a part
  static constexpr int64_t kLines = Form.bits;                             // of a group
  static constexpr int64_t kUnitGroups = kLevelledGroup / kBlockStep;
  static constexpr bool kSigned = Form.table && V::kMultipliesSigned;  // operands
  static constexpr int kOffset = kSigned ? 0 : Form.table ? -kIq4Values[0] : Form.zero;
  // Whether the products of two columns of the operands fit 16-bit words. False for iq4's table,
  // whose operands reach 240.
  static constexpr int kWordAdds = Form.table        ? 0
                                   : Form.bits == 6  ? 2
                                   : Form.bits == 5  ? 4
                                   : Form.part == 16 ? 4
                                                     : 8;

  // ---- Layout ----

  static constexpr bool kJoinedLevels = Form.bits == 2;
  static constexpr int64_t kHalves = kBlockOutputs * 2, kUnitParts = kUnitGroups * kParts;
  static constexpr int64_t kScales = Levelled ? kHalves : kHalves * kUnitGroups;
  static constexpr int64_t kLevelsAt = kMins ? 2 * kScales : kScales;
  static constexpr int64_t kMinLevelsAt = kLevelsAt + kUnitParts * kBlockOutputs;
  static constexpr int64_t kHeaderBytes = !Levelled                 ? kLevelsAt
                                          : kMins && !kJoinedLevels ? kMinLevelsAt + kUnitParts * 16
                                                                    : kMinLevelsAt;

  static GemmShape shape(int64_t k) {
    GemmShape s = {.k = k, .group = kBlockStep, .groups = k / kBlockStep, .group_lines = kLines};
    s.header_bytes = whole_lines(kHeaderBytes);
    s.unit_bytes = s.header_bytes + kUnitGroups * s.group_lines * kLineBytes;
    int64_t units = (s.groups + kUnitGroups - 1) / kUnitGroups;
    s.block_bytes = units * s.header_bytes + s.groups * s.group_lines * kLineBytes;
    s.steps_offset = whole_lines(k);
    s.starts_offset = s.steps_offset + whole_lines(s.groups * 4);
    s.prepared_bytes = s.starts_offset + whole_lines(s.groups * kParts * 4);
    if (s.prepared_bytes / kLineBytes % 2 == 0) s.prepared_bytes += kLineBytes;  // as shape_of()
    return s;
  }

  // Where the sixteen scales of a group of the unit are, and the levels of a part of it.
  static constexpr int64_t scales_in_unit(int64_t group) { return Levelled ? 0 : group * kHalves; }
  static constexpr int64_t levels_in_unit(int64_t part) { return kLevelsAt + part * kBlockOutputs; }

  // ---- Products ----

  // Bits of each byte of a line, moved `left` (negative: right).
  static auto bits(const std::byte* line, int v, int left, int mask) {
    return V::move_bits(V::load_line(line, v), left, mask);
  }

  // Columns 4p to 4p + 3 of 32, as bytes.
  static auto operand(const std::byte* lines, int p, int v) {
    constexpr int kTwoAt = Form.bits == 6 ? 4 : 0, kOneAt = Form.bits == 5 ? 4 : 2;
    I code = V::set_dword(0);
    if constexpr (Form.bits >= 4) {
      I line = V::load_line(lines + p / 2 * kLineBytes, v);
      code = p % 2 == 0 ? V::low_nibbles(line) : V::high_nibbles(line);
      if constexpr (Form.table) return V::look_up(kSigned ? kIq4Values : kIq4Operands, code);
    }
    if constexpr (Form.bits % 4 >= 2) {
      constexpr int kAt = Form.bits == 6 ? 4 : 0;  // their place in a code
      const std::byte* line = lines + (kTwoAt + p / 4) * kLineBytes;
      code = V::join_bits(code, bits(line, v, kAt - p % 4 * 2, 3 << kAt));
    }
    if constexpr (Form.bits % 2 == 1) {
      constexpr int kAt = Form.bits - 1;
      code = V::join_bits(code, bits(lines + kOneAt * kLineBytes, v, kAt - p, 1 << kAt));
    }
    return code;
  }

  static I dot4(I sum, I operand, I x) {
    if constexpr (kSigned) return V::dot4_signed(sum, operand, x);
    return V::dot4(sum, operand, x);
  }

  static auto level(const std::byte* header, int64_t part, int v) {
    const std::byte* at = header + levels_in_unit(part) + v * V::kLanes;
    if constexpr (kJoinedLevels) return V::to_float(V::low_nibbles(V::load_bytes(at)));
    return V::load(reinterpret_cast<const int8_t*>(at));
  }
  static auto min_level(const std::byte* header, int64_t part, int v) {
    const std::byte* at = header + levels_in_unit(part) + v * V::kLanes;
    if constexpr (kJoinedLevels) return V::to_float(V::high_nibbles(V::load_bytes(at)));
    return V::load(reinterpret_cast<const int8_t*>(at + kMinLevelsAt - kLevelsAt));
  }
  // Of part `part` of the unit.
  static auto scale(const std::byte* header, int64_t part, int v) {
    auto halves = V::load(reinterpret_cast<const Float16*>(header + scales_in_unit(part / kParts) +
                                                           v * V::kLanes * 2));
    if constexpr (!Levelled) return halves;
    return V::mul(halves, level(header, part, v));
  }
  static auto min(const std::byte* header, int64_t part, int v) {
    auto halves = V::load(reinterpret_cast<const Float16*>(
        header + kScales + scales_in_unit(part / kParts) + v * V::kLanes * 2));
    if constexpr (!Levelled) return halves;
    return V::mul(halves, min_level(header, part, v));
  }

  // The initial sums of a row's part: the offset of the operands.
  static auto start(const std::byte* x, const GemmShape& s, int64_t part) {
    if constexpr (kOffset == 0) return V::set_dword(0);
    return V::set_dword(read<int32_t>(x + s.starts_offset + part * 4));
  }
  // -(step * sum of the codes), which is multiplied with the minimum.
  static auto code_sum(const std::byte* x, const GemmShape& s, int64_t part) {
    return V::set(read<float>(x + s.starts_offset + part * 4));
  }

  static void prepare(const float* x, const GemmShape& s, std::byte* to) {
    std::memset(to + s.k, 0, s.steps_offset - s.k);
    for (int64_t g = 0; g < s.groups; ++g) {
      auto* codes = reinterpret_cast<int8_t*>(to) + g * kBlockStep;
      float step;
      IntegerOperands<V>::quantise_group(x + g * kBlockStep, kBlockStep, codes, step);
      std::memcpy(to + s.steps_offset + g * 4, &step, 4);
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        int32_t sum = 0;
        for (int64_t i = 0; i < Form.part; ++i) sum += codes[part * Form.part + i];
        std::byte* at = to + s.starts_offset + (g * kParts + part) * 4;
        float scaled = -(step * static_cast<float>(sum));
        int32_t start = -kOffset * sum;
        std::memcpy(at, kMins ? static_cast<const void*>(&scaled) : &start, 4);
      }
    }
  }

  // ---- Packing ----

  static void pack_header(const PackArgs& a, const GemmShape& s, int64_t r, std::byte* block,
                          int64_t lane) {
    int64_t groups = a.k / a.group;
    auto put = [&](const float* scales, int64_t g, std::byte* to) {
      Float16 half = from_float<Float16>(scales[r * groups + g * kBlockStep / a.group]);
      std::memcpy(to + scales_in_unit(g % kUnitGroups) + lane * 2, &half, 2);
    };
    for (int64_t g = 0; g < s.groups; ++g) {
      std::byte* header = block + unit_at<BlockWeights>(s, g);
      put(a.scales, g, header);
      if constexpr (kMins) put(a.mins, g, header + kScales);
      if constexpr (!Levelled) continue;
      for (int64_t part = 0; part < kParts; ++part) {
        int64_t from = (r * a.k + g * kBlockStep + part * Form.part) / kLevelColumns;
        std::byte* to = header + levels_in_unit(g % kUnitGroups * kParts + part) + lane;
        auto level = static_cast<std::byte>(a.levels[from]);
        if constexpr (kJoinedLevels) level |= static_cast<std::byte>(a.min_levels[from] << 4);
        *to = level;
        if constexpr (kMins && !kJoinedLevels) {
          to[kMinLevelsAt - kLevelsAt] = static_cast<std::byte>(a.min_levels[from]);
        }
      }
    }
  }

  static void pack_codes(const std::byte* codes, std::byte* lines, int64_t lane) {
    uint32_t planes[Form.bits] = {};
#pragma GCC unroll 8
    for (int p = 0; p < kBlockStep / 4; ++p) {
      auto four = read<uint32_t>(codes + 4 * p);
      // The bits of four codes from `first` on, moved by `to` bits in their bytes.
      auto bits = [&](int first, uint32_t mask, int to) {
        return (four >> first & mask * 0x01010101u) << to;
      };
      if constexpr (Form.bits >= 4) planes[p / 2] |= bits(0, 15, p % 2 * 4);
      if constexpr (Form.bits == 6) planes[4 + p / 4] |= bits(4, 3, p % 4 * 2);
      if constexpr (Form.bits < 4) planes[p / 4] |= bits(0, 3, p % 4 * 2);
      if constexpr (Form.bits == 5) planes[4] |= bits(4, 1, p);
      if constexpr (Form.bits == 3) planes[2] |= bits(2, 1, p);
    }
#pragma GCC unroll 8
    for (int l = 0; l < Form.bits; ++l) {
      std::memcpy(lines + l * kLineBytes + lane * 4, &planes[l], 4);
    }
  }

  static int code(const std::byte* lines, int64_t c, int64_t lane) {
    int64_t p = c / 4;
    auto byte = [&](int64_t line) {
      return static_cast<int>(lines[line * kLineBytes + lane * 4 + c % 4]);
    };
    int code = 0;
    if constexpr (Form.bits >= 4) code = byte(p / 2) >> (p % 2 * 4) & 15;
    if constexpr (Form.bits == 6) code |= (byte(4 + p / 4) >> (p % 4 * 2) & 3) << 4;
    if constexpr (Form.bits < 4) code = byte(p / 4) >> (p % 4 * 2) & 3;
    if constexpr (Form.bits == 5) code |= (byte(4) >> p & 1) << 4;
    if constexpr (Form.bits == 3) code |= (byte(2) >> p & 1) << 2;
    return code;
  }

  static float value(const std::byte* block, const GemmShape& s, int64_t c, int64_t lane) {
    int64_t g = c / kBlockStep, group = g % kUnitGroups;
    const std::byte* header = block + unit_at<BlockWeights>(s, g);
    const std::byte* scales = header + scales_in_unit(group) + lane * 2;
    const std::byte* levels =
        header + levels_in_unit(group * kParts + c % kBlockStep / Form.part) + lane;
    float scale = banyan::to_float(read<Float16>(scales)), min = 0;
    if constexpr (kMins) min = banyan::to_float(read<Float16>(scales + kScales));
    if constexpr (Levelled) {
      int level = kJoinedLevels ? static_cast<int>(*levels) & 15 : read<int8_t>(levels);
      scale *= static_cast<float>(level);
      if constexpr (kJoinedLevels) min *= static_cast<float>(static_cast<int>(*levels) >> 4);
      if constexpr (kMins && !kJoinedLevels) {
        min *= static_cast<float>(static_cast<int>(levels[kMinLevelsAt - kLevelsAt]));
      }
    }
    int of_column = code(block + lines_at<BlockWeights>(s, g), c % kBlockStep, lane);
    float product = static_cast<float>(block_value(Form, of_column)) * scale;
    return kMins ? product - min : product;
  }
};

// The sums of a part of 32 columns, whose lines are at `line`: start(r) and the products; all loops
// are unrolled.
template <class F, int R, int N, class Start>
[[gnu::always_inline]] inline void sum_part(const std::byte* const (&line)[N],
                                            const std::byte* const (&x)[R], int part,
                                            const Start& start,
                                            typename F::I (&sums)[R][N][F::kVectors]) {
  using V = typename F::V;
  constexpr bool kInWords = F::kWordAdds > 0 && V::kAddsWords;
  typename V::I words[R][N][F::kVectors];
  if constexpr (!kInWords) BANYAN_FOR_EACH_SUM sums[r][n][v] = start(r);
#pragma GCC unroll 4
  for (int q = 0; q < F::kOperands; q += 2) {
    int p = part * F::kOperands + q;
    typename V::I even[N][F::kVectors], odd[N][F::kVectors];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
      for (int v = 0; v < F::kVectors; ++v) {
        even[n][v] = F::operand(line[n], p, v);
        odd[n][v] = F::operand(line[n], p + 1, v);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      auto x_even = V::set_dword(read<int32_t>(x[r] + p * 4));
      auto x_odd = V::set_dword(read<int32_t>(x[r] + p * 4 + 4));
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
#pragma GCC unroll 2
        for (int v = 0; v < F::kVectors; ++v) {
          auto& sum = sums[r][n][v];
          if constexpr (!kInWords) {
            sum = F::dot4(F::dot4(sum, even[n][v], x_even), odd[n][v], x_odd);
          } else {
            auto both = V::add_words(V::word_products(even[n][v], x_even),
                                     V::word_products(odd[n][v], x_odd));
            if (q % F::kWordAdds != 0) both = V::add_words(both, words[r][n][v]);
            both = V::in_order(both);
            if ((q + 2) % F::kWordAdds == 0) {
              sum = V::add_word_pairs(q + 2 == F::kWordAdds ? start(r) : sum, both);
            } else {
              words[r][n][v] = both;
            }
          }
        }
      }
    }
  }
}

// Adds a part's sums, scaled, to the totals.
template <class F, int R, int N>
[[gnu::always_inline]] inline void add_scaled(const Tile<F, R, N>& t, const GemmShape& s, int64_t g,
                                              int part,
                                              const typename F::I (&sums)[R][N][F::kVectors],
                                              typename F::V::F (&totals)[R][N][F::kVectors]) {
  using V = typename F::V;
  int64_t of_row = g * F::kParts + part, of_unit = of_row % F::kUnitParts;
#pragma GCC unroll 8
  for (int n = 0; n < N; ++n) {
    const std::byte* header = t.block[n] + unit_at<F>(s, g);
#pragma GCC unroll 2
    for (int v = 0; v < F::kVectors; ++v) {
      auto scale = F::scale(header, of_unit, v);
      typename V::F min;
      if constexpr (F::kMins) min = F::min(header, of_unit, v);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        auto& total = totals[r][n][v];
        auto factor = V::mul(F::step(t.x[r], s, g), scale);
        total = V::fma(V::to_float(sums[r][n][v]), factor, total);
        if constexpr (F::kMins) total = V::fma(F::code_sum(t.x[r], s, of_row), min, total);
      }
    }
  }
}

template <class F, int R, int N>
  requires F::kPlanes
[[gnu::noinline]] void multiply(Tile<F, R, N>& t, const GemmShape& shape) {
  using V = typename F::V;
  const GemmShape s = shape;  // which no store can change
  typename V::F totals[R][N][F::kVectors];
  BANYAN_FOR_EACH_SUM totals[r][n][v] = V::set(0);
  for (int64_t g = 0; g < s.groups; ++g) {
    if (g % F::kUnitGroups == 0) fetch_headers<F, R, N>(t, s, g);
    const std::byte* line[N];
    const std::byte* x[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) x[r] = t.x[r] + g * kBlockStep;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      line[n] = t.block[n] + lines_at<F>(s, g);
      int64_t ahead = t.ahead + g * F::kLines * (t.ahead_bytes - kLineBytes);
#pragma GCC unroll 8
      for (int64_t l = 0; l < F::kLines; ++l) {
        __builtin_prefetch(line[n] + ahead + l * t.ahead_bytes, 0, kPrefetchLevel);
      }
    }
#pragma GCC unroll 2
    for (int part = 0; part < F::kParts; ++part) {
      typename V::I sums[R][N][F::kVectors];
      auto start = [&](int r) { return F::start(t.x[r], s, g * F::kParts + part); };
      sum_part<F, R, N>(line, x, part, start, sums);
      add_scaled<F, R, N>(t, s, g, part, sums, totals);
    }
  }
  BANYAN_FOR_EACH_SUM V::store(t.y[r][n] + v * V::kLanes, totals[r][n][v]);
}

// As gemm_pack().
template <class F>
void pack_blocks(const PackArgs& a) {
  GemmShape s = F::shape(a.k);
  const auto* source = static_cast<const std::byte*>(a.source);
  for (int64_t i = 0; i < a.row_count; ++i) {
    int64_t row = a.row_begin + i, lane = row % kBlockOutputs;
    std::byte* block = static_cast<std::byte*>(a.packed) + row / kBlockOutputs * s.block_bytes;
    F::pack_header(a, s, i, block, lane);
    for (int64_t g = 0; g < s.groups; ++g) {
      F::pack_codes(source + i * a.k + g * kBlockStep, block + lines_at<F>(s, g), lane);
    }
  }
}

// The kernel of a form, whose groups may or may not have levels.
template <class V, BlockForm Form>
struct BlockKernel {
  using Levelled = BlockWeights<V, Form, true>;
  using Plain = BlockWeights<V, Form, !Form.plain>;

  // Calls body<F>() with the layout of groups of `group`.
  template <class Body>
  static auto with(int64_t group, const Body& body) {
    if (group == kLevelledGroup) return body.template operator()<Levelled>();
    return body.template operator()<Plain>();
  }
  static size_t packed_bytes(int64_t n, int64_t k, int64_t group) {
    return with(group, [&]<class F>() { return gemm_packed_bytes<F>(n, k, group); });
  }
  static size_t workspace_bytes(int64_t rows, int64_t segments, int64_t k, int64_t group) {
    return VectorMultiply<Levelled>::workspace_bytes(rows, segments, k, group);
  }
  static void pack(const PackArgs& a) {
    with(a.group, [&]<class F>() { pack_blocks<F>(a); });
  }
  static void gather(const GatherArgs& a) {
    with(a.group, [&]<class F>() { gemm_gather<F>(a); });
  }
  static void run(const GemmArgs& a) {
    with(a.group, [&]<class F>() { gemm_run<F, VectorMultiply<F>>(a); });
  }
};

template <class V, BlockForm Form>
constexpr GemmKernel block_kernel() {
  using K = BlockKernel<V, Form>;
  return {K::packed_bytes, K::workspace_bytes, K::pack, K::gather, K::run};
}

#undef BANYAN_FOR_EACH_SUM

}  // namespace banyan::simd
