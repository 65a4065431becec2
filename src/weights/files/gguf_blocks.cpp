#include "weights/files/gguf_blocks.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

constexpr int64_t kSmall = 32;   // numbers in a simple block
constexpr int64_t kLarge = 256;  // numbers in a "K" block

float half_at(const uint8_t* bytes) {
  Float16 half;
  std::memcpy(&half.bits, bytes, 2);
  return to_float(half);
}

// A byte holds two numbers that are 16 apart.
int nibble(const uint8_t* bytes, int64_t i) {
  return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4;
}

void decode_q4_0(const uint8_t* b, float* to) {
  float d = half_at(b);
  for (int64_t i = 0; i < kSmall; ++i) to[i] = d * static_cast<float>(nibble(b + 2, i) - 8);
}

void decode_q4_1(const uint8_t* b, float* to) {
  float d = half_at(b), m = half_at(b + 2);
  for (int64_t i = 0; i < kSmall; ++i) to[i] = d * static_cast<float>(nibble(b + 4, i)) + m;
}

int fifth_bit(const uint8_t* bits, int64_t i) {
  return (bits[i / 8] >> (i % 8) & 1) << 4;
}

void decode_q5_0(const uint8_t* b, float* to) {
  float d = half_at(b);
  for (int64_t i = 0; i < kSmall; ++i) {
    to[i] = d * static_cast<float>((nibble(b + 6, i) | fifth_bit(b + 2, i)) - 16);
  }
}

void decode_q5_1(const uint8_t* b, float* to) {
  float d = half_at(b), m = half_at(b + 2);
  for (int64_t i = 0; i < kSmall; ++i) {
    to[i] = d * static_cast<float>(nibble(b + 8, i) | fifth_bit(b + 4, i)) + m;
  }
}

void decode_q8_0(const uint8_t* b, float* to) {
  float d = half_at(b);
  for (int64_t i = 0; i < kSmall; ++i)
    to[i] = d * static_cast<float>(static_cast<int8_t>(b[2 + i]));
}

// Scale and minimum, six bits each, of one of the eight parts of a Q4_K or Q5_K block.
struct PartScale {
  float scale, minimum;
};

PartScale part_scale(const uint8_t* sc, int s) {
  if (s < 4) return {static_cast<float>(sc[s] & 63), static_cast<float>(sc[s + 4] & 63)};
  int scale = (sc[s + 4] & 15) | (sc[s - 4] >> 6) << 4;
  int minimum = (sc[s + 4] >> 4) | (sc[s] >> 6) << 4;
  return {static_cast<float>(scale), static_cast<float>(minimum)};
}

// Decodes Q4_K if `high` is null, otherwise Q5_K with its fifth bits in `high`.
void decode_k(const uint8_t* b, const uint8_t* high, const uint8_t* qs, float* to) {
  float d = half_at(b), dmin = half_at(b + 2);
  for (int s = 0; s < 8; ++s) {
    PartScale part = part_scale(b + 4, s);
    float scale = d * part.scale, minimum = dmin * part.minimum;
    const uint8_t* bytes = qs + s / 2 * 32;
    for (int64_t i = 0; i < 32; ++i) {
      int code = s % 2 == 0 ? bytes[i] & 15 : bytes[i] >> 4;
      if (high != nullptr) code |= (high[i] >> s & 1) << 4;
      to[s * 32 + i] = scale * static_cast<float>(code) - minimum;
    }
  }
}

void decode_q4_k(const uint8_t* b, float* to) {
  decode_k(b, nullptr, b + 16, to);
}

void decode_q5_k(const uint8_t* b, float* to) {
  decode_k(b, b + 16, b + 48, to);
}

void decode_q6_k(const uint8_t* b, float* to) {
  float d = half_at(b + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t *ql = b + 64 * half, *qh = b + 128 + 32 * half, *sc = b + 192 + 8 * half;
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 32; ++i) {
        uint8_t low = ql[i + 32 * (part % 2)];
        int code = (part < 2 ? low & 15 : low >> 4) | (qh[i] >> (2 * part) & 3) << 4;
        float scale = d * static_cast<float>(static_cast<int8_t>(sc[2 * part + i / 16]));
        to[128 * half + 32 * part + i] = scale * static_cast<float>(code - 32);
      }
    }
  }
}

// Two bits per number: numbers that are 32 apart share a byte.
int two_bits(const uint8_t* bytes, int i) {
  return bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void decode_q2_k(const uint8_t* b, float* to) {
  float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int i = 0; i < kLarge; ++i) {
    uint8_t part = b[i / 16];
    float scale = d * static_cast<float>(part & 15), minimum = dmin * static_cast<float>(part >> 4);
    to[i] = scale * static_cast<float>(two_bits(b + 16, i)) - minimum;
  }
}

// The third bits come first and mark the codes from which four is not subtracted.
void decode_q3_k(const uint8_t* b, float* to) {
  const uint8_t* sc = b + 96;
  float d = half_at(b + 108);
  for (int i = 0; i < kLarge; ++i) {
    int part = i / 16;
    int low = part < 8 ? sc[part] & 15 : sc[part - 8] >> 4;
    int scale = (low | (sc[8 + part % 4] >> (part / 4 * 2) & 3) << 4) - 32;
    int code = two_bits(b + 32, i) - ((b[i % 32] >> (i / 32) & 1) == 1 ? 0 : 4);
    to[i] = d * static_cast<float>(scale) * static_cast<float>(code);
  }
}

constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

void decode_iq4_part(const uint8_t* bytes, float scale, float* to) {
  for (int64_t i = 0; i < kSmall; ++i) {
    to[i] = scale * static_cast<float>(kIq4Values[static_cast<size_t>(nibble(bytes, i))]);
  }
}

void decode_iq4_nl(const uint8_t* b, float* to) {
  decode_iq4_part(b + 2, half_at(b), to);
}

void decode_iq4_xs(const uint8_t* b, float* to) {
  float d = half_at(b);
  int high = b[2] | b[3] << 8;
  for (int part = 0; part < 8; ++part) {
    int low = b[4 + part / 2] >> (4 * (part % 2)) & 15;
    int scale = (low | (high >> (2 * part) & 3) << 4) - 32;
    decode_iq4_part(b + 8 + 16 * part, d * static_cast<float>(scale), to + 32 * part);
  }
}

void decode_mxfp4(const uint8_t* b, float* to) {
  uint8_t codes[kSmall];
  for (int64_t i = 0; i < kSmall; ++i) codes[i] = static_cast<uint8_t>(nibble(b + 1, i));
  float scale = b[0] == 255 ? NAN : e8m0_scale(b[0]);
  dequantise_mxfp4({codes, &scale}, {.rows = 1, .columns = kSmall, .group = kSmall}, to);
}

void codes_q4_0(const uint8_t* b, uint8_t* codes, float* scale) {
  for (int64_t i = 0; i < kSmall; ++i) codes[i] = static_cast<uint8_t>(nibble(b + 2, i));
  *scale = half_at(b);
}

void codes_q8_0(const uint8_t* b, uint8_t* codes, float* scale) {
  std::memcpy(codes, b + 2, kSmall);
  *scale = half_at(b);
}

void codes_mxfp4(const uint8_t* b, uint8_t* codes, float* scale) {
  for (int64_t i = 0; i < kSmall; ++i) codes[i] = static_cast<uint8_t>(nibble(b + 1, i));
  *scale = b[0] == 255 ? NAN : e8m0_scale(b[0]);
}

struct Format {
  BlockFormat format;
  std::string_view name;
  BlockShape shape;
  void (*decode)(const uint8_t* block, float* to);
  std::string_view exact = "";
  void (*codes)(const uint8_t* block, uint8_t* codes, float* scale) = nullptr;
};

constexpr std::array kFormats = {
    Format{BlockFormat::kQ4_0, "gguf q4_0", {kSmall, 18}, decode_q4_0, "int4", codes_q4_0},
    Format{BlockFormat::kQ4_1, "gguf q4_1", {kSmall, 20}, decode_q4_1},
    Format{BlockFormat::kQ5_0, "gguf q5_0", {kSmall, 22}, decode_q5_0},
    Format{BlockFormat::kQ5_1, "gguf q5_1", {kSmall, 24}, decode_q5_1},
    Format{BlockFormat::kQ8_0, "gguf q8_0", {kSmall, 34}, decode_q8_0, "int8", codes_q8_0},
    Format{BlockFormat::kQ4_K, "gguf q4_k", {kLarge, 144}, decode_q4_k},
    Format{BlockFormat::kQ5_K, "gguf q5_k", {kLarge, 176}, decode_q5_k},
    Format{BlockFormat::kQ6_K, "gguf q6_k", {kLarge, 210}, decode_q6_k},
    Format{BlockFormat::kQ2_K, "gguf q2_k", {kLarge, 84}, decode_q2_k},
    Format{BlockFormat::kQ3_K, "gguf q3_k", {kLarge, 110}, decode_q3_k},
    Format{BlockFormat::kIq4Nl, "gguf iq4_nl", {kSmall, 18}, decode_iq4_nl},
    Format{BlockFormat::kIq4Xs, "gguf iq4_xs", {kLarge, 136}, decode_iq4_xs},
    Format{BlockFormat::kMxfp4, "gguf mxfp4", {kSmall, 17}, decode_mxfp4, "mxfp4", codes_mxfp4},
};

const Format& format_of_blocks(BlockFormat format) {
  for (const Format& f : kFormats) {
    if (f.format == format) return f;
  }
  check_failed(__FILE__, __LINE__, "block format is known", "");
}

// Reads rows [begin, end) and calls body(block index within these rows, its bytes).
template <class Body>
Status for_blocks(const WeightSource& source, const TensorInfo& tensor, int64_t begin, int64_t end,
                  const Body& body) {
  BlockShape shape = block_shape(tensor.blocks);
  int64_t blocks = tensor.shape.back() / shape.numbers;  // per row
  std::vector<uint8_t> raw(static_cast<size_t>((end - begin) * blocks * shape.bytes));
  TRY(source.read(tensor, static_cast<size_t>(begin * blocks * shape.bytes),
                  std::as_writable_bytes(std::span(raw))));
  for (int64_t i = 0; i < (end - begin) * blocks; ++i) {
    if (!body(i, raw.data() + i * shape.bytes)) {
      return corrupt("{}: row {} has a scale that is not finite", tensor.name, begin + i / blocks);
    }
  }
  return {};
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
  CHECK(format.codes != nullptr, "{}", format.name);
  return for_blocks(source, tensor, begin, end, [&](int64_t i, const uint8_t* block) {
    format.codes(block, to.codes + i * kSmall, to.scales + i);
    return std::isfinite(to.scales[i]);
  });
}

Status read_block_floats(const WeightSource& source, const TensorInfo& tensor, int64_t begin,
                         int64_t end, float* to) {
  const Format& format = format_of_blocks(tensor.blocks);
  int64_t numbers = format.shape.numbers;
  return for_blocks(source, tensor, begin, end, [&](int64_t i, const uint8_t* block) {
    format.decode(block, to + i * numbers);
    float poison = 0;
    for (int64_t j = 0; j < numbers; ++j) poison += to[i * numbers + j] * 0.0f;
    return poison == 0;
  });
}

}  // namespace banyan
