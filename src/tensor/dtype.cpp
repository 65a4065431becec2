#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace banyan {
namespace {

struct Entry {
  DType dtype;
  std::string_view name;
  size_t bytes;
};

constexpr std::array kEntries = {
    Entry{DType::kF32, "F32", 4},        Entry{DType::kBF16, "BF16", 2},
    Entry{DType::kF16, "F16", 2},        Entry{DType::kF64, "F64", 8},
    Entry{DType::kF8E4M3, "F8_E4M3", 1}, Entry{DType::kF8E5M2, "F8_E5M2", 1},
    Entry{DType::kF8E8M0, "F8_E8M0", 1}, Entry{DType::kI8, "I8", 1},
    Entry{DType::kU8, "U8", 1},          Entry{DType::kI16, "I16", 2},
    Entry{DType::kU16, "U16", 2},        Entry{DType::kI32, "I32", 4},
    Entry{DType::kU32, "U32", 4},        Entry{DType::kI64, "I64", 8},
    Entry{DType::kU64, "U64", 8},        Entry{DType::kBool, "BOOL", 1},
};

const Entry& entry(DType dtype) {
  for (const Entry& e : kEntries) {
    if (e.dtype == dtype) return e;
  }
  check_failed(__FILE__, __LINE__, "dtype is known", "");
}

}  // namespace

size_t dtype_bytes(DType dtype) {
  return entry(dtype).bytes;
}

std::string_view dtype_name(DType dtype) {
  return entry(dtype).name;
}

std::optional<DType> parse_dtype(std::string_view safetensors_name) {
  for (const Entry& e : kEntries) {
    if (e.name == safetensors_name) return e.dtype;
  }
  return std::nullopt;
}

}  // namespace banyan
