#include "weights/convert.h"

#include <cstring>

#include "base/check.h"
#include "base/signed.h"
#include "tensor/float_types.h"

namespace banyan {
namespace {

template <class From, class To>
void convert(const std::byte* from, std::byte* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From source;
    std::memcpy(&source, from + i * sizeof(From), sizeof(From));
    To target = from_float<To>(to_float(source));
    std::memcpy(to + i * sizeof(To), &target, sizeof(To));
  }
}

template <class From>
void convert_from(const std::byte* from, std::byte* to, DType to_dtype, int64_t count) {
  switch (to_dtype) {
    case DType::kF32:
      return convert<From, float>(from, to, count);
    case DType::kBF16:
      return convert<From, BFloat16>(from, to, count);
    case DType::kF16:
      return convert<From, Float16>(from, to, count);
    default:
      CHECK(false, "to {}", dtype_name(to_dtype));
  }
}

}  // namespace

bool is_float_dtype(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}

void convert_elements(const void* from, DType from_dtype, void* to, DType to_dtype, int64_t count) {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (from_dtype == to_dtype) {
    std::memcpy(target, source, as_size(count) * dtype_bytes(from_dtype));
    return;
  }
  switch (from_dtype) {
    case DType::kF32:
      return convert_from<float>(source, target, to_dtype, count);
    case DType::kBF16:
      return convert_from<BFloat16>(source, target, to_dtype, count);
    case DType::kF16:
      return convert_from<Float16>(source, target, to_dtype, count);
    default:
      CHECK(false, "from {}", dtype_name(from_dtype));
  }
}

}  // namespace banyan
