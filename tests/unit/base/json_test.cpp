// The JSON parser: it reads as nlohmann's does, though simdjson parses what is valid; its limits of
// depth, keys, numbers and bytes; and linear time.
#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

namespace banyan::json_test {
namespace {

Json parsed(const std::string& text) {
  Result<Json> json = parse_json(text, "test");
  EXPECT_TRUE(json) << text << ": " << json.error().message;
  return json ? *json : Json();
}

std::string error_of(const std::string& text) {
  auto result = parse_json(text, "doc");
  return result ? "" : result.error().message;
}

TEST(Json, KeepsKeyOrder) {
  auto json = parse_json(R"({"b": 1, "a": {"z": 2, "y": 3}})", "doc");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->dump(), R"({"b":1,"a":{"z":2,"y":3}})");
}

TEST(Json, ReadsAsNlohmannDoes) {
  for (const std::string text :
       {R"({"b": [1, -2, 0, -0, 18446744073709551615, -9223372036854775808], "a": {"x": null}})",
        R"([1.5, -0.0, 1e308, 5e-324, 0.1, 123456789012345678901234567890])",
        R"(["\u0000", "\ud83d\ude00", "\u00e9\n", "\"\\\/", "\ud7ff", "퟿"])", "true", "\"\"",
        "[]", "{}", " [ { } , [ ] ] ", "\xef\xbb\xbf[1]", "18446744073709551616"}) {
    Json expected = Json::parse(text);
    EXPECT_EQ(parsed(text), expected) << text;
    EXPECT_EQ(parsed(text).dump(), expected.dump()) << "the same order and types: " << text;
  }
  EXPECT_TRUE(parsed("[7]")[0].is_number_unsigned());
  EXPECT_TRUE(parsed("[-7]")[0].is_number_integer());
  EXPECT_TRUE(parsed("[7.0]")[0].is_number_float());
}

TEST(Json, SaysWhatIsNotJson) {
  EXPECT_NE(error_of("[1, 2").find("line 1, column 6"), std::string::npos);
  for (const char* text : {"", "[1] 2", "[1e400]", "[01]", "[+1]", "[NaN]", "['a']", "[1,]",
                           "{\"a\"}", R"(["\ud800"])", R"(["\udc00"])", R"({"\udc00": 1})",
                           "[\"\xff\"]", "[\"\xed\xa0\x80\"]", "[\"\x01\"]", "tru"}) {
    EXPECT_NE(error_of(text).find("not valid JSON"), std::string::npos) << text;
  }
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
}  // namespace banyan::json_test
