#include "llm/line_limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace banyan::line_limits_test {
namespace {

// The output in pieces of `piece` bytes; "|" where it ends.
std::string limited(int64_t indent_min, const std::string& text, size_t piece) {
  LineLimits lines(indent_min, 0);
  std::string all;
  for (size_t i = 0; i < text.size(); i += piece) {
    std::string next = text.substr(i, piece);
    bool ends = lines.take(next);
    all += next;
    if (ends) return all + "|";
  }
  return all;
}

TEST(LineLimits, EndsBeforeALineThatIsIndentedLess) {
  for (size_t piece : {1, 2, 3, 100}) {
    EXPECT_EQ(limited(2, "a\n  b\n\t c\n d", piece), "a\n  b\n\t c\n |") << piece;
    EXPECT_EQ(limited(2, "a\n\n  b", piece), "a\n|") << piece;
    EXPECT_EQ(limited(2, "a\n  b\n ", piece), "a\n  b\n ") << "nothing but blanks yet";
    EXPECT_EQ(limited(0, "a\nb\n\nc", piece), "a\nb\n\nc") << piece;
    EXPECT_EQ(limited(3, "no line ends", piece), "no line ends") << piece;
  }
}

TEST(LineLimits, EndsWithTheNextLineOnceTheTimeIsUp) {
  LineLimits lines(0, 1e-3);
  std::string line = "a\n", rest = "b";
  EXPECT_FALSE(lines.take(line)) << "the time begins with the first text";
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_FALSE(lines.take(rest)) << "within a line";
  EXPECT_TRUE(lines.take(line));
  EXPECT_EQ(line, "a\n");
  LineLimits unlimited(0, 0);
  EXPECT_FALSE(unlimited.take(line));
}

}  // namespace
}  // namespace banyan::line_limits_test
