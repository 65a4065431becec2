// The JSON parser's limits: depth, keys, numbers, bytes; and linear time.
#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace banyan {
namespace {

std::string error_of(const std::string& text) {
  auto result = parse_json(text, "doc");
  return result ? "" : result.error().message;
}

TEST(Json, KeepsKeyOrder) {
  auto json = parse_json(R"({"b": 1, "a": {"z": 2, "y": 3}})", "doc");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->dump(), R"({"b":1,"a":{"z":2,"y":3}})");
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_NE(error_of(R"({"a": 1, "a": 2})").find("\"a\" appears twice"), std::string::npos);
  EXPECT_EQ(error_of(R"([{"a": 1}, {"a": 2}])"), "");
}

TEST(Json, RefusesDeepNesting) {
  std::string deep(100000, '[');
  EXPECT_NE(error_of(deep).find("nested deeper than 64"), std::string::npos);
  EXPECT_EQ(error_of(std::string(60, '[') + std::string(60, ']')), "");
}

TEST(Json, RefusesHugeNumbersInvalidUtf8AndTrailingBytes) {
  EXPECT_NE(error_of("1e400"), "");
  EXPECT_NE(error_of("\"\xff\""), "");
  EXPECT_NE(error_of("{} x"), "");
  EXPECT_NE(error_of("NaN"), "");
  EXPECT_NE(error_of(""), "");
}

TEST(Json, RefusesTooManyKeysAndBytes) {
  std::string many = "{";
  for (int i = 0; i < 5000; ++i) many += (i ? ",\"k" : "\"k") + std::to_string(i) + "\":0";
  EXPECT_NE(error_of(many + "}").find("more than 4096 keys"), std::string::npos);
  EXPECT_FALSE(parse_json("[1,2,3]", "doc", {.bytes_max = 4}));
}

// Issue 17: nlohmann's parser with a callback takes time by the square of a list's length, so that
// a body of a megabyte held a worker for minutes.
TEST(Json, ReadsLongListsOfObjectsInTimeByTheirLength) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += R"({"a":[]},)";
  Result<Json> json = parse_json(text + "{}]", "a list");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(json->size(), 300'001U);
  EXPECT_EQ(json->front().dump(), R"({"a":[]})");
}

}  // namespace
}  // namespace banyan
