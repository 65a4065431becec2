#include "base/base64.h"

#include <gtest/gtest.h>

namespace banyan::base64_test {
namespace {

TEST(Base64, HasThePaddingOfItsStandard) {
  const char* texts[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t i = 0; i < std::size(texts); ++i) {  // RFC 4648, section 10
    EXPECT_EQ(to_base64(std::string_view("foobar").substr(0, i)), texts[i]);
    EXPECT_EQ(from_base64(texts[i]), std::string("foobar").substr(0, i));
  }
  EXPECT_EQ(from_base64("Zg"), "f");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(all)), all);
}

TEST(Base64, NothingElseIsTaken) {
  for (const char* text : {"Z", "Zm9vY", "Zm 9v", "Zm9v\n", "Zm9-", "QUJD----", "Z=9v",
                           "Zm\xff"
                           "v"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

}  // namespace
}  // namespace banyan::base64_test
