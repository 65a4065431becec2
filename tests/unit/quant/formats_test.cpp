// The table of weight formats, by name and by element type.
#include "quant/formats.h"

#include <gtest/gtest.h>

#include <set>

namespace banyan::formats_test {
namespace {

TEST(WeightFormats, AreFoundByNameAndByElement) {
  std::set<std::string_view> names;
  for (const WeightFormat& format : weight_formats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    EXPECT_EQ(format_named(format.name), &format);
    const WeightFormat* of_element = format_of(format.element);
    EXPECT_EQ(of_element, format.quantised ? nullptr : &format) << format.name;
  }
  EXPECT_EQ(format_named("auto"), nullptr);
  EXPECT_EQ(format_of(DType::kI8), nullptr) << "codes without scales";
  EXPECT_EQ(format_of(DType::kI64), nullptr);
}

}  // namespace
}  // namespace banyan::formats_test
