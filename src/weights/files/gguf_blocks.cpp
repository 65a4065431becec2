#include "weights/files/gguf_blocks.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "quant/formats.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int64_t kSmall = 32;   // numbers in a simple block
constexpr int64_t kLarge = 256;  // numbers in a "K" block

// Where the codes, scales and levels of one block go. Levels are of kLevelColumns numbers each;
// those of blocks without levels are not written.
using Block = QuantisedRows;

float half_at(const uint8_t* bytes) {
  Float16 half;
  std::memcpy(&half.bits, bytes, 2);
  return to_float(half);
}

// A byte holds two numbers that are 16 apart. By way of copies, since a compiler that has to expect
// that codes overlap the bytes makes no vectors of this.
void read_nibbles(const uint8_t* bytes, uint8_t* codes) {
  uint8_t packed[kSmall / 2], low[kSmall / 2], high[kSmall / 2];
  std::memcpy(packed, bytes, sizeof packed);
  for (size_t i = 0; i < sizeof packed; ++i) low[i] = packed[i] & 15;
  for (size_t i = 0; i < sizeof packed; ++i) high[i] = packed[i] >> 4;
  std::memcpy(codes, low, sizeof low);
  std::memcpy(codes + sizeof low, high, sizeof high);
}

void add_fifth_bits(const uint8_t* bits, uint8_t* codes) {
  for (int64_t i = 0; i < kSmall; ++i) {
    codes[i] = static_cast<uint8_t>(codes[i] | (bits[i / 8] >> (i % 8) & 1) << 4);
  }
}

void read_q4_0(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  read_nibbles(b + 2, to.codes);
}

// The files add a minimum, ours are subtracted.
void read_q4_1(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  *to.mins = -half_at(b + 2);
  read_nibbles(b + 4, to.codes);
}

// d (code - 16); minima are f16, as scales are.
void read_q5_0(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  *to.mins = to_float(from_float<Float16>(16 * half_at(b)));
  read_nibbles(b + 6, to.codes);
  add_fifth_bits(b + 2, to.codes);
}

void read_q5_1(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  *to.mins = -half_at(b + 2);
  read_nibbles(b + 8, to.codes);
  add_fifth_bits(b + 4, to.codes);
}

void read_q8_0(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  std::memcpy(to.codes, b + 2, kSmall);
}

// The levels of one of the eight parts of 32 numbers.
void set_levels(const Block& to, int part, int level, int min_level = 0) {
  for (int i = 2 * part; i < 2 * part + 2; ++i) {
    to.levels[i] = static_cast<int8_t>(level);
    to.min_levels[i] = static_cast<uint8_t>(min_level);
  }
}

// Q4_K, and Q5_K if `high` has its fifth bits: levels of six bits, then codes.
void read_k(const uint8_t* b, const uint8_t* high, const uint8_t* qs, const Block& to) {
  const uint8_t* sc = b + 4;
  *to.scales = half_at(b);
  *to.mins = half_at(b + 2);
  for (int s = 0; s < 8; ++s) {
    if (s < 4) {
      set_levels(to, s, sc[s] & 63, sc[s + 4] & 63);
    } else {
      set_levels(to, s, (sc[s + 4] & 15) | (sc[s - 4] >> 6) << 4,
                 (sc[s + 4] >> 4) | (sc[s] >> 6) << 4);
    }
    const uint8_t* bytes = qs + s / 2 * 32;
    for (int64_t i = 0; i < 32; ++i) {
      int code = s % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      if (high != nullptr) code |= (high[i] >> s & 1) << 4;
      to.codes[s * 32 + i] = static_cast<uint8_t>(code);
    }
  }
}

void read_q4_k(const uint8_t* b, const Block& to) {
  read_k(b, nullptr, b + 16, to);
}

void read_q5_k(const uint8_t* b, const Block& to) {
  read_k(b, b + 16, b + 48, to);
}

void read_q6_k(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t *ql = b + 64 * half, *qh = b + 128 + 32 * half;
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        uint8_t low = ql[i + 32 * (part % 2)];
        int code = (part < 2 ? low & 15 : low >> 4) | (qh[i] >> (2 * part) & 3) << 4;
        to.codes[128 * half + 32 * part + i] = static_cast<uint8_t>(code);
      }
    }
  }
  std::memcpy(to.levels, b + 192, kLarge / kLevelColumns);
}

// Two bits per number: numbers that are 32 apart share a byte.
int two_bits(const uint8_t* bytes, int i) {
  return bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void read_q2_k(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b + 80);
  *to.mins = half_at(b + 82);
  for (int i = 0; i < kLarge; ++i) to.codes[i] = static_cast<uint8_t>(two_bits(b + 16, i));
  for (int part = 0; part < 16; ++part) {
    to.levels[part] = static_cast<int8_t>(b[part] & 15);
    to.min_levels[part] = b[part] >> 4;
  }
}

// The third bits come first.
void read_q3_k(const uint8_t* b, const Block& to) {
  const uint8_t* sc = b + 96;
  *to.scales = half_at(b + 108);
  for (int part = 0; part < 16; ++part) {
    int low = part < 8 ? sc[part] & 15 : sc[part - 8] >> 4;
    int high = sc[8 + part % 4] >> (part / 4 * 2) & 3;
    to.levels[part] = static_cast<int8_t>((low | high << 4) - 32);
  }
  for (int i = 0; i < kLarge; ++i) {
    int third = b[i % 32] >> (i / 32) & 1;
    to.codes[i] = static_cast<uint8_t>(two_bits(b + 32, i) | third << 2);
  }
}

void read_iq4_nl(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  read_nibbles(b + 2, to.codes);
}

void read_iq4_xs(const uint8_t* b, const Block& to) {
  *to.scales = half_at(b);
  int high = b[2] | b[3] << 8;
  for (int part = 0; part < 8; ++part) {
    int low = b[4 + part / 2] >> (4 * (part % 2)) & 15;
    set_levels(to, part, (low | (high >> (2 * part) & 3) << 4) - 32);
    read_nibbles(b + 8 + 16 * part, to.codes + 32 * part);
  }
}

void read_mxfp4(const uint8_t* b, const Block& to) {
  *to.scales = b[0] == 255 ? NAN : e8m0_scale(b[0]);
  read_nibbles(b + 1, to.codes);
}

// Reads `count` blocks that follow each other; returns the first whose scale is not finite, or
// count.
template <void (*ReadBlock)(const uint8_t* block, const Block& to), int64_t Numbers>
int64_t read_blocks(const uint8_t* bytes, int64_t block_bytes, int64_t count,
                    const QuantisedRows& to) {
  constexpr int64_t kLevels = Numbers / kLevelColumns;
  for (int64_t i = 0; i < count; ++i) {
    Block one = {.codes = to.codes + i * Numbers, .scales = to.scales + i};
    if (to.mins != nullptr) {
      one.mins = to.mins + i;
      one.levels = to.levels + i * kLevels;
      one.min_levels = to.min_levels + i * kLevels;
      *one.mins = 0;
    }
    ReadBlock(bytes + i * block_bytes, one);
    if (!std::isfinite(*one.scales) || (one.mins != nullptr && !std::isfinite(*one.mins))) return i;
  }
  return count;
}

struct Format {
  BlockFormat format;
  std::string_view name;
  BlockShape shape;
  std::string_view exact;
  int64_t (*read)(const uint8_t* bytes, int64_t block_bytes, int64_t count,
                  const QuantisedRows& to);
};

template <void (*ReadBlock)(const uint8_t* block, const Block& to), int64_t Numbers>
constexpr Format block_format(BlockFormat format, std::string_view name, int64_t bytes,
                              std::string_view exact) {
  return {format, name, {Numbers, bytes}, exact, read_blocks<ReadBlock, Numbers>};
}

constexpr std::array kFormats = {
    block_format<read_q4_0, kSmall>(BlockFormat::kQ4_0, "gguf q4_0", 18, "int4"),
    block_format<read_q4_1, kSmall>(BlockFormat::kQ4_1, "gguf q4_1", 20, "q4"),
    block_format<read_q5_0, kSmall>(BlockFormat::kQ5_0, "gguf q5_0", 22, "q5"),
    block_format<read_q5_1, kSmall>(BlockFormat::kQ5_1, "gguf q5_1", 24, "q5"),
    block_format<read_q8_0, kSmall>(BlockFormat::kQ8_0, "gguf q8_0", 34, "int8"),
    block_format<read_q4_k, kLarge>(BlockFormat::kQ4_K, "gguf q4_k", 144, "q4"),
    block_format<read_q5_k, kLarge>(BlockFormat::kQ5_K, "gguf q5_k", 176, "q5"),
    block_format<read_q6_k, kLarge>(BlockFormat::kQ6_K, "gguf q6_k", 210, "q6"),
    block_format<read_q2_k, kLarge>(BlockFormat::kQ2_K, "gguf q2_k", 84, "q2"),
    block_format<read_q3_k, kLarge>(BlockFormat::kQ3_K, "gguf q3_k", 110, "q3"),
    block_format<read_iq4_nl, kSmall>(BlockFormat::kIq4Nl, "gguf iq4_nl", 18, "iq4"),
    block_format<read_iq4_xs, kLarge>(BlockFormat::kIq4Xs, "gguf iq4_xs", 136, "iq4"),
    block_format<read_mxfp4, kSmall>(BlockFormat::kMxfp4, "gguf mxfp4", 17, "mxfp4"),
};

const Format& format_of_blocks(BlockFormat format) {
  for (const Format& f : kFormats) {
    if (f.format == format) return f;
  }
  check_failed(__FILE__, __LINE__, "block format is known", "");
}

}  // namespace

BlockShape block_shape(BlockFormat format) {
  return format_of_blocks(format).shape;
}

std::string_view block_format_name(BlockFormat format) {
  return format_of_blocks(format).name;
}

std::string_view exact_format_of(BlockFormat format) {
  return format_of_blocks(format).exact;
}

Status read_block_codes(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                        int64_t end, const QuantisedRows& to) {
  const Format& format = format_of_blocks(tensor.blocks);
  BlockShape shape = format.shape;
  int64_t blocks = tensor.shape.back() / shape.numbers;  // per row
  int64_t count = (end - begin) * blocks;
  std::vector<uint8_t> raw(as_size(count * shape.bytes));
  TRY(source.read(tensor, as_size(begin * blocks * shape.bytes),
                  std::as_writable_bytes(std::span(raw))));
  int64_t good = format.read(raw.data(), shape.bytes, count, to);
  if (good == count) return {};
  return corrupt("{}: row {} has a scale that is not finite", tensor.name, begin + good / blocks);
}

Status read_block_floats(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                         int64_t end, float* to) {
  const Format& format = format_of_blocks(tensor.blocks);
  const BlockForm* form = format_named(format.exact)->blocks;
  RowsShape shape = {
      .rows = end - begin, .columns = tensor.shape.back(), .group = format.shape.numbers};
  auto count = as_size(shape.rows * shape.columns);
  std::vector<uint8_t> codes(count), min_levels(count / kLevelColumns);
  std::vector<int8_t> levels(count / kLevelColumns);
  std::vector<float> scales(count / as_size(shape.group)), mins(scales.size());
  QuantisedRows rows = {.codes = codes.data(),
                        .scales = scales.data(),
                        .mins = mins.data(),
                        .levels = levels.data(),
                        .min_levels = min_levels.data()};
  TRY(read_block_codes(source, tensor, begin, end, rows));
  if (form != nullptr) {
    dequantise_blocks(*form, rows, shape, to);
  } else {
    (format.exact == "int4"   ? dequantise_int4
     : format.exact == "int8" ? dequantise_int8
                              : dequantise_mxfp4)(rows, shape, to);
  }
  return {};
}

}  // namespace banyan
