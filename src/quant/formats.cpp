#include "quant/formats.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace banyan {
namespace {

// fp8 uses numbers of either sign from 0.5 to 1.875: over all codes, a few large ones would
// dominate.
constexpr RandomCodes kRandomInt8 = {.unpaired = 0x80, .zero = 0, .deviation = 73.7f};
constexpr RandomCodes kRandomInt4 = {.clear = 0xf0, .unpaired = 0, .zero = 8, .deviation = 4.18f};
constexpr RandomCodes kRandomMxfp4 = {.clear = 0xf0, .deviation = 2.93f};
constexpr RandomCodes kRandomFp8 = {.clear = 0x40, .set = 0x30, .deviation = 1.16f};

constexpr std::array kFormats = {
    WeightFormat{"f32", DType::kF32, &KernelTable::gemm_f32, Operand::kF32},
    WeightFormat{"bf16", DType::kBF16, &KernelTable::gemm_bf16, Operand::kBF16},
    WeightFormat{"f16", DType::kF16, &KernelTable::gemm_f16, Operand::kF32},
    WeightFormat{"int8", DType::kI8, &KernelTable::gemm_int8, Operand::kInt8, true, nullptr,
                 quantise_int8, 0, 1, kRandomInt8},
    WeightFormat{"int4", DType::kU8, &KernelTable::gemm_int4, Operand::kInt8, true, nullptr,
                 quantise_int4, 32, 1, kRandomInt4},
    WeightFormat{"uint4", DType::kU8, &KernelTable::gemm_uint4, Operand::kInt8, true},
    WeightFormat{"mxfp4", DType::kU8, &KernelTable::gemm_mxfp4, Operand::kInt8, true, nullptr,
                 quantise_mxfp4, 32, 1, kRandomMxfp4},
    WeightFormat{"fp8", DType::kF8E4M3, &KernelTable::gemm_fp8, Operand::kBF16, true, nullptr,
                 quantise_fp8, kFp8Block, kFp8Block, kRandomFp8},
    WeightFormat{"q2", DType::kU8, &KernelTable::gemm_q2, Operand::kInt8, true, &kQ2},
    WeightFormat{"q3", DType::kU8, &KernelTable::gemm_q3, Operand::kInt8, true, &kQ3},
    WeightFormat{"q4", DType::kU8, &KernelTable::gemm_q4, Operand::kInt8, true, &kQ4},
    WeightFormat{"q5", DType::kU8, &KernelTable::gemm_q5, Operand::kInt8, true, &kQ5},
    WeightFormat{"q6", DType::kU8, &KernelTable::gemm_q6, Operand::kInt8, true, &kQ6},
    WeightFormat{"iq4", DType::kU8, &KernelTable::gemm_iq4, Operand::kInt8, true, &kIq4},
};

template <class Match>
const WeightFormat* find(Match match) {
  auto it = std::ranges::find_if(kFormats, match);
  return it == kFormats.end() ? nullptr : &*it;
}

}  // namespace

int64_t quantise_group(const WeightFormat& format, int64_t columns, int64_t wanted) {
  constexpr int64_t kGroupMultiple = 32;  // kernels/gemm.h
  if (wanted == 0) wanted = format.quantise_group;
  if (wanted == 0) return columns;
  // An fp8 block wider than the row is clamped to the row. If the row ends inside a block, groups
  // are a common divisor of both.
  if (format.quantise_rows > 1 && columns <= wanted) return columns;
  int64_t group = std::gcd(wanted, columns);
  return group % kGroupMultiple == 0 ? group : 0;
}

std::span<const WeightFormat> weight_formats() {
  return kFormats;
}

const WeightFormat* format_of(DType dtype) {
  return find([&](const WeightFormat& f) { return !f.quantised && f.element == dtype; });
}

const WeightFormat* format_named(std::string_view name) {
  return find([&](const WeightFormat& f) { return f.name == name; });
}

}  // namespace banyan
