#include "weights/stored_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "base/error.h"
#include "base/signed.h"
#include "weights/convert.h"
#include "weights/files/gguf_blocks.h"

namespace banyan {
namespace {

constexpr int64_t kGroupMultiple = 32;  // of every weight format with groups

// The default zero point.
int middle_of(CodeType type) {
  return type == CodeType::kUint4 ? 8 : type == CodeType::kUint8 ? 128 : 0;
}

// The value of each code before its zero point.
std::array<float, 256> code_values(CodeType type) {
  std::array<float, 256> values{};
  if (type == CodeType::kUint4 || type == CodeType::kUint8) {
    std::iota(values.begin(), values.end(), 0.0f);
    return values;
  }
  std::array<uint8_t, 256> codes;
  std::iota(codes.begin(), codes.end(), uint8_t{0});
  std::array<float, 256> ones;
  ones.fill(1);
  RowsShape shape{.rows = 1, .columns = 256, .group = 1};
  QuantisedRows rows{codes.data(), ones.data()};
  if (type == CodeType::kInt8) dequantise_int8(rows, shape, values.data());
  if (type == CodeType::kE4m3) dequantise_fp8(rows, shape, values.data());
  if (type == CodeType::kE2m1) dequantise_mxfp4(rows, shape, values.data());
  return values;
}

// Converts scales of any stored type.
void scales_as_f32(const std::byte* from, DType dtype, int64_t count, float* to) {
  if (is_float_dtype(dtype)) return convert_elements(from, dtype, to, DType::kF32, count);
  static const std::array<float, 256> kE4m3 = code_values(CodeType::kE4m3);
  for (int64_t i = 0; i < count; ++i) {
    auto byte = static_cast<uint8_t>(from[i]);
    if (dtype == DType::kF8E4M3) {
      to[i] = (byte & 0x7f) == 0x7f ? NAN : kE4m3[byte];
    } else {
      to[i] = byte == 255 ? NAN : e8m0_scale(byte);
    }
  }
}

uint32_t word_at(const std::vector<std::byte>& raw, int64_t index) {
  uint32_t word;
  std::memcpy(&word, raw.data() + index * 4, 4);
  return word;
}

// The position at which AWQ keeps row 8c + j within a word.
constexpr std::array<int, 8> kAwqNibble = {0, 4, 1, 5, 2, 6, 3, 7};

Result<std::vector<std::byte>> read_whole(const WeightSource& source, const TensorInfo& tensor) {
  std::vector<std::byte> raw(tensor.bytes.size());
  TRY(source.read(tensor, 0, raw));
  return raw;
}

}  // namespace

void StoredMatrix::choose_format() {
  group_ = columns_;
  if (layout_ == CodeLayout::kElements) {
    format_ = codes_->dtype == DType::kF32 ? "f32" : codes_->dtype == DType::kF16 ? "f16" : "bf16";
    return;
  }
  if (layout_ == CodeLayout::kBlocks) {
    format_ = exact_format_of(codes_->blocks);
    group_ = block_shape(codes_->blocks).numbers;
    return;
  }
  if (scales_.column_block < columns_) group_ = std::gcd(scales_.column_block, columns_);
  bool fits = group_ == columns_ || group_ % kGroupMultiple == 0;
  if (type_ == CodeType::kE2m1) fits = group_ == kGroupMultiple && global_ == nullptr;
  bool symmetric = zeros_ == nullptr || check_zeros_;
  if (!fits || !column_groups_.empty()) return;
  if (type_ == CodeType::kUint4) format_ = symmetric ? "int4" : "uint4";
  if ((type_ == CodeType::kInt8 || type_ == CodeType::kUint8) && symmetric) format_ = "int8";
  if (type_ == CodeType::kE4m3) format_ = "fp8";
  if (type_ == CodeType::kE2m1) format_ = "mxfp4";
}

std::string StoredMatrix::describe() const {
  if (layout_ == CodeLayout::kElements) return std::string(format_);
  if (layout_ == CodeLayout::kBlocks) return std::string(block_format_name(codes_->blocks));
  std::string text;
  if (layout_ == CodeLayout::kGptqWords) text = "gptq ";
  if (layout_ == CodeLayout::kAwqWords) text = "awq ";
  switch (type_) {
    case CodeType::kInt8:
    case CodeType::kUint8:
      text += "int8";
      break;
    case CodeType::kUint4:
      text += "int4";
      break;
    case CodeType::kE4m3:
      text += scales_.tensor->dtype == DType::kU8 ? "mxfp8" : "fp8";
      break;
    case CodeType::kE2m1:
      text += global_ == nullptr ? "mxfp4" : "nvfp4";
  }
  if (zeros_ != nullptr && !check_zeros_) text += ", zero points";
  if (scales_.rows == 1 && scales_.columns == 1) return text + ", one scale";
  if (scales_.row_block > 1) {
    return text + fmt::format(", blocks of {} x {}", scales_.row_block, scales_.column_block);
  }
  if (scales_.columns == 1) return text + ", a scale for each row";
  text += fmt::format(", groups of {}", scales_.column_block);
  return column_groups_.empty() ? text : text + " in any order";
}

Status StoredMatrix::load() {
  if (layout_ == CodeLayout::kElements || layout_ == CodeLayout::kBlocks) return {};
  TRY(load_scales());
  if (zeros_ != nullptr) TRY(load_zeros());
  if (layout_ == CodeLayout::kGptqWords || layout_ == CodeLayout::kAwqWords) {
    whole_codes_ = TRY(read_whole(*source_, *codes_));
  }
  return {};
}

Status StoredMatrix::load_scales() {
  std::vector<std::byte> raw = TRY(read_whole(*source_, *scales_.tensor));
  int64_t count = scales_.rows * scales_.columns;
  std::vector<float> values(as_size(count));
  scales_as_f32(raw.data(), scales_.tensor->dtype, count, values.data());
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(values[i])) continue;
    return corrupt("{}: scale {} is {}", scales_.tensor->name, i, values[i]);
  }
  if (scales_.transposed) {
    scale_values_.resize(values.size());
    for (int64_t g = 0; g < scales_.columns; ++g) {
      for (int64_t r = 0; r < scales_.rows; ++r) {
        scale_values_[r * scales_.columns + g] = values[g * scales_.rows + r];
      }
    }
  } else {
    scale_values_ = std::move(values);
  }
  return global_ == nullptr ? Status() : load_global_scale();
}

Status StoredMatrix::load_global_scale() {
  float global = 0;
  TRY(source_->read(*global_, 0, std::as_writable_bytes(std::span(&global, 1))));
  if (!std::isfinite(global) || global <= 0) {
    return corrupt("{} is {}, not a positive number", global_->name, global);
  }
  for (float& scale : scale_values_) scale = divide_by_global_ ? scale / global : scale * global;
  return {};
}

Status StoredMatrix::load_zeros() {
  std::vector<std::byte> raw = TRY(read_whole(*source_, *zeros_));
  if (check_zeros_) return check_symmetric_words(raw);
  if (zeros_->dtype == DType::kI32) return load_packed_zeros(raw);
  for (std::byte b : raw) zero_values_.push_back(static_cast<int8_t>(b));
  return {};
}

// A file that claims to be symmetric may use either version of storing zero points, but all of them
// must be the midpoint in one of the versions.
Status StoredMatrix::check_symmetric_words(const std::vector<std::byte>& raw) const {
  auto middle = static_cast<uint32_t>(middle_of(type_));
  uint32_t ones = type_ == CodeType::kUint4 ? 0x11111111u : 0x01010101u;
  for (size_t i = 0; i < raw.size() / 4; ++i) {
    uint32_t word = word_at(raw, i);
    if (word == middle * ones || word == (middle - 1) * ones) continue;
    return corrupt("{}: word {} is {:#x}, but \"sym\": true requires every zero point to be {}",
                   zeros_->name, i, word, middle);
  }
  return {};
}

Status StoredMatrix::load_packed_zeros(const std::vector<std::byte>& raw) {
  int bits = type_ == CodeType::kUint4 ? 4 : 8;
  int64_t per_word = 32 / bits;
  uint32_t mask = (1u << bits) - 1;
  zero_values_.resize(as_size(scales_.rows * scales_.columns));
  for (int64_t r = 0; r < scales_.rows; ++r) {
    for (int64_t g = 0; g < scales_.columns; ++g) {
      // compressed-tensors packs rows of [rows, groups], the others rows of [groups, rows].
      int64_t index = layout_ == CodeLayout::kNibbles || layout_ == CodeLayout::kBytes
                          ? r / per_word * scales_.columns + g
                          : g * (rows_ / per_word) + r / per_word;
      int64_t field = layout_ == CodeLayout::kAwqWords ? kAwqNibble[r % 8] : r % per_word;
      uint32_t stored = word_at(raw, index) >> (field * bits) & mask;
      zero_values_[r * scales_.columns + g] =
          static_cast<int16_t>((stored + static_cast<uint32_t>(zero_add_)) & mask);
    }
  }
  return {};
}

float StoredMatrix::scale_at(int64_t row, int64_t grid_column) const {
  return scale_values_[row / scales_.row_block * scales_.columns + grid_column];
}

int StoredMatrix::zero_at(int64_t row, int64_t grid_column) const {
  if (zero_values_.empty()) return middle_of(type_);
  return zero_values_[row / scales_.row_block * scales_.columns + grid_column];
}

Status StoredMatrix::read_elements(int64_t begin, int64_t end, std::byte* to) const {
  CHECK(is_plain(), "{}", name_);
  size_t row_bytes = as_size(columns_) * dtype_bytes(codes_->dtype);
  return source_->read(*codes_, as_size(begin) * row_bytes, {to, as_size(end - begin) * row_bytes});
}

Status StoredMatrix::unpack_codes(int64_t begin, int64_t end, uint8_t* codes) const {
  switch (layout_) {
    case CodeLayout::kBytes: {
      auto stride = std::ssize(codes_->bytes) / rows_;
      std::vector<std::byte> raw(as_size((end - begin) * stride));
      TRY(source_->read(*codes_, as_size(begin * stride), raw));
      for (int64_t r = 0; r < end - begin; ++r) {
        std::memcpy(codes + r * columns_, raw.data() + r * stride, as_size(columns_));
      }
      break;
    }
    case CodeLayout::kNibbles:
      TRY(unpack_nibbles(begin, end, codes));
      break;
    case CodeLayout::kGptqWords:
      unpack_gptq(begin, end, codes);
      break;
    case CodeLayout::kAwqWords:
      unpack_awq(begin, end, codes);
      break;
    case CodeLayout::kElements:
    case CodeLayout::kBlocks:
      CHECK(false, "{} has no codes of its own", name_);
  }
  return type_ == CodeType::kE4m3 ? check_codes(begin, codes, (end - begin) * columns_) : Status();
}

Status StoredMatrix::check_codes(int64_t begin, const uint8_t* codes, int64_t count) const {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) found |= (codes[i] & 0x7f) == 0x7f;
  if (!found) return {};
  auto nan = std::find_if(codes, codes + count, [](uint8_t c) { return (c & 0x7f) == 0x7f; });
  return corrupt("{}: row {} has a NaN", codes_->name, begin + (nan - codes) / columns_);
}

Status StoredMatrix::unpack_nibbles(int64_t begin, int64_t end, uint8_t* codes) const {
  auto stride = std::ssize(codes_->bytes) / rows_;
  std::vector<uint8_t> raw(as_size((end - begin) * stride));
  TRY(source_->read(*codes_, as_size(begin * stride), std::as_writable_bytes(std::span(raw))));
  for (int64_t r = 0; r < end - begin; ++r) {
    const uint8_t* from = raw.data() + r * stride;
    uint8_t* to = codes + r * columns_;
    for (int64_t c = 0; c + 1 < columns_; c += 2) {
      to[c] = from[c / 2] & 15;
      to[c + 1] = from[c / 2] >> 4;
    }
    if (columns_ % 2 != 0) to[columns_ - 1] = from[columns_ / 2] & 15;
  }
  return {};
}

void StoredMatrix::unpack_gptq(int64_t begin, int64_t end, uint8_t* codes) const {
  int bits = type_ == CodeType::kUint4 ? 4 : 8;
  int64_t per_word = 32 / bits;
  uint32_t mask = (1u << bits) - 1;
  for (int64_t c = 0; c < columns_; c += per_word) {
    for (int64_t r = begin; r < end; ++r) {
      uint32_t word = word_at(whole_codes_, c / per_word * rows_ + r);
      uint8_t* to = codes + (r - begin) * columns_ + c;
      for (int64_t i = 0; i < per_word; ++i) to[i] = word >> (i * bits) & mask;
    }
  }
}

void StoredMatrix::unpack_awq(int64_t begin, int64_t end, uint8_t* codes) const {
  for (int64_t c = 0; c < columns_; ++c) {
    for (int64_t r = begin; r < end; ++r) {
      uint32_t word = word_at(whole_codes_, c * (rows_ / 8) + r / 8);
      codes[(r - begin) * columns_ + c] = word >> (4 * kAwqNibble[r % 8]) & 15;
    }
  }
}

Status StoredMatrix::read_codes(int64_t begin, int64_t end, int64_t group,
                                const QuantisedRows& to) const {
  CHECK(!format_.empty() && !is_plain() && group_ % group == 0, "{}: group {}", name_, group);
  if (layout_ == CodeLayout::kBlocks) {
    return read_block_codes(*source_, *codes_, begin, end, to);
  }
  TRY(unpack_codes(begin, end, to.codes));
  if (type_ == CodeType::kUint8) {  // as two's complement
    for (int64_t i = 0; i < (end - begin) * columns_; ++i) to.codes[i] ^= 0x80;
  }
  int64_t groups = columns_ / group;
  for (int64_t r = begin; r < end; ++r) {
    for (int64_t g = 0; g < groups; ++g) {
      int64_t column = g * group / scales_.column_block;
      to.scales[(r - begin) * groups + g] = scale_at(r, column);
      if (to.zeros == nullptr) continue;
      to.zeros[(r - begin) * groups + g] = static_cast<uint8_t>(zero_at(r, column));
    }
  }
  return {};
}

Status StoredMatrix::read_floats(int64_t begin, int64_t end, float* to) const {
  if (is_plain()) {
    std::vector<std::byte> raw(as_size((end - begin) * columns_) * dtype_bytes(codes_->dtype));
    TRY(read_elements(begin, end, raw.data()));
    convert_elements(raw.data(), codes_->dtype, to, DType::kF32, (end - begin) * columns_);
    return {};
  }
  if (layout_ == CodeLayout::kBlocks) return read_block_floats(*source_, *codes_, begin, end, to);
  std::vector<uint8_t> codes(as_size((end - begin) * columns_));
  TRY(unpack_codes(begin, end, codes.data()));
  std::array<float, 256> values = code_values(type_);
  for (int64_t r = begin; r < end; ++r) {
    const uint8_t* row = codes.data() + (r - begin) * columns_;
    float* out = to + (r - begin) * columns_;
    auto decode = [&](int64_t first, int64_t last, int64_t g) {
      float scale = scale_at(r, g);
      auto zero = static_cast<float>(zero_at(r, g));
      for (int64_t c = first; c < last; ++c) out[c] = (values[row[c]] - zero) * scale;
    };
    for (int64_t c = 0; column_groups_.empty() && c < columns_; c += scales_.column_block) {
      decode(c, std::min(columns_, c + scales_.column_block), c / scales_.column_block);
    }
    for (size_t c = 0; c < column_groups_.size(); ++c) {
      decode(c, c + 1, column_groups_[c]);
    }
  }
  return {};
}

}  // namespace banyan
