// Names and sizes of element types.
#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace banyan::dtype_test {
namespace {

TEST(DType, NamesAreThoseOfSafetensorsAndParseBack) {
  for (int i = 0; i <= static_cast<int>(DType::kBool); ++i) {
    auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_name(DType::kBF16), "BF16");
  EXPECT_EQ(dtype_name(DType::kF8E4M3), "F8_E4M3");
}

TEST(DType, OtherNamesAreNone) {
  for (const char* name : {"", "bf16", "F128", "BF16 ", "F8"}) {
    EXPECT_EQ(parse_dtype(name), std::nullopt) << name;
  }
}

TEST(DType, BytesAreOfOneElement) {
  EXPECT_EQ(dtype_bytes(DType::kF64), 8u);
  EXPECT_EQ(dtype_bytes(DType::kF32), 4u);
  EXPECT_EQ(dtype_bytes(DType::kBF16), 2u);
  EXPECT_EQ(dtype_bytes(DType::kF8E5M2), 1u);
  EXPECT_EQ(dtype_bytes(DType::kBool), 1u);
}

}  // namespace
}  // namespace banyan::dtype_test
