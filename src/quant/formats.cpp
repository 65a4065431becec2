#include "quant/formats.h"

#include <algorithm>
#include <array>

namespace banyan {
namespace {

constexpr std::array kFormats = {
    WeightFormat{"f32", DType::kF32, &KernelTable::gemm_f32},
    WeightFormat{"bf16", DType::kBF16, &KernelTable::gemm_bf16},
    WeightFormat{"f16", DType::kF16, &KernelTable::gemm_f16},
    WeightFormat{"int8", DType::kI8, &KernelTable::gemm_int8, true},
    WeightFormat{"int4", DType::kU8, &KernelTable::gemm_int4, true},
    WeightFormat{"uint4", DType::kU8, &KernelTable::gemm_uint4, true},
    WeightFormat{"mxfp4", DType::kU8, &KernelTable::gemm_mxfp4, true},
    WeightFormat{"fp8", DType::kF8E4M3, &KernelTable::gemm_fp8, true},
};

template <class Match>
const WeightFormat* find(Match match) {
  auto it = std::ranges::find_if(kFormats, match);
  return it == kFormats.end() ? nullptr : &*it;
}

}  // namespace

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
