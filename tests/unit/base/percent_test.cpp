// Percent-encoding: escapes, and what is none.
#include "base/percent.h"

#include <gtest/gtest.h>

namespace banyan::percent_test {
namespace {

TEST(PercentDecode, ReplacesEscapes) {
  EXPECT_EQ(percent_decode("").value(), "");
  EXPECT_EQ(percent_decode("a+b/c").value(), "a+b/c");
  EXPECT_EQ(percent_decode("%41%2f%2F%c3%A9").value(), "A//\u00e9");
  EXPECT_EQ(percent_decode("%2525").value(), "%25");
  EXPECT_EQ(percent_decode("%00").value(), std::string(1, '\0'));
}

TEST(PercentDecode, NamesWhatIsNoEscape) {
  for (const char* wrong : {"%", "a%", "%4", "%4g", "%g4", "% 4", "%-1", "%+1", "%0x"}) {
    Result<std::string> decoded = percent_decode(wrong);
    ASSERT_FALSE(decoded) << wrong;
    EXPECT_EQ(decoded.error().code, ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(percent_decode("ab%4gcd").error().message, "\"%4g\" is not % and two hex digits");
}

}  // namespace
}  // namespace banyan::percent_test
