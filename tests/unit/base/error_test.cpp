// Error messages: cut at whole characters, without control bytes.
#include "base/error.h"

#include <gtest/gtest.h>

namespace banyan::error_test {
namespace {

TEST(Error, MessagesAreCutBetweenCharactersAndKeepNoControlBytes) {
  std::string message(kErrorBytesMax - 1, 'a');
  message += "é and on";
  std::string cut = make_error(ErrorCode::kCorrupt, message).error().message;
  EXPECT_EQ(cut.substr(0, kErrorBytesMax + 3), std::string(kErrorBytesMax - 1, 'a') + "... ");
  EXPECT_NE(cut.find("(4104 bytes)"), std::string::npos) << cut.substr(4090);
  EXPECT_EQ(make_error(ErrorCode::kCorrupt, std::string("a\x1b[0m\0b", 7)).error().message,
            "a\\x1b[0m\\x00b");
}

}  // namespace
}  // namespace banyan::error_test
