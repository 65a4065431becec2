// Quoted text in messages: what is escaped, and where long text is cut.
#include "base/quote.h"

#include <gtest/gtest.h>

namespace banyan::quote_test {
namespace {

TEST(Quote, KeepsPlainTextAndUtf8) {
  EXPECT_EQ(quote("layers.0.weight"), "\"layers.0.weight\"");
  EXPECT_EQ(quote("größe 漢"), "\"größe 漢\"");
  EXPECT_EQ(quote("a\"b\\"), "\"a\\\"b\\\\\"");
}

TEST(Quote, EscapesWhatDrivesATerminal) {
  EXPECT_EQ(quote("\x1b[2J\n"), "\"\\x1b[2J\\x0a\"");
  EXPECT_EQ(quote("\xff\xc3"), "\"\\xff\\xc3\"");
  EXPECT_EQ(quote("\u009b"), "\"\\xc2\\x9b\"");
  EXPECT_EQ(quote("\u202e"), "\"\\xe2\\x80\\xae\"");
}

TEST(Quote, CutsLongTextAtWholeCharacters) {
  EXPECT_EQ(quote("abcdef", 3), "\"abc\"... (6 bytes)");
  EXPECT_EQ(quote("aéé", 2), "\"aé\"... (5 bytes)");
}

}  // namespace
}  // namespace banyan::quote_test
