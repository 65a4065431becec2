// Packed lists of token ids: which lists are, what is in them, and that the rest is read as ever.
#include "base/packed_json.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>

namespace banyan::packed_json_test {
namespace {

constexpr std::array<std::string_view, 2> kKeys = {"ids", "more"};

Json parsed(const std::string& text) {
  Result<Json> json = parse_packed_json(text, "test", {}, kKeys);
  EXPECT_TRUE(json) << text << ": " << json.error().message;
  return json ? *json : Json();
}

TEST(PackedJson, HoldsTheIdsOfAList) {
  Json json = parsed(R"({"ids": [0, 7, 2147483647], "more": [1]})");
  ASSERT_TRUE(is_packed(json["ids"]));
  EXPECT_EQ(packed_size(json["ids"]), 3u);
  EXPECT_EQ(unpack(json["ids"]), (std::vector<int32_t>{0, 7, std::numeric_limits<int32_t>::max()}));
  EXPECT_EQ(unpack(json["more"]), std::vector<int32_t>{1});
}

TEST(PackedJson, PacksTheListsInAList) {
  Json json = parsed(R"({"ids": [[1, 2], "text", [3], [-1], []]})");
  ASSERT_EQ(json["ids"].size(), 5u);
  EXPECT_EQ(unpack(json["ids"][0]), (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(json["ids"][1], "text");
  EXPECT_EQ(unpack(json["ids"][2]), std::vector<int32_t>{3});
  EXPECT_EQ(json["ids"][3], Json::array({-1}));
  EXPECT_EQ(json["ids"][4], Json::array());
}

TEST(PackedJson, LeavesEverythingElseAsItIs) {
  for (const std::string text :
       {R"({"ids": []})", R"({"ids": [1, -1]})", R"({"ids": [1, 2147483648]})",
        R"({"ids": [1, 2.0]})", R"({"ids": [1, "a"]})", R"({"ids": [1, [2]]})",
        R"({"ids": [18446744073709551615]})", R"({"ids": 1})", R"({"ids": "a"})",
        R"({"ids": {"ids": [1]}})", R"({"other": [1]})", R"({"other": {"ids": [1]}})",
        R"([{"ids": [1]}])", R"({"ids": [[[1]]]})", "[1]", "7"}) {
    EXPECT_EQ(parsed(text), Json::parse(text)) << text;
  }
  EXPECT_FALSE(is_packed(Json::parse("[1]")));
  EXPECT_FALSE(is_packed(Json::binary({1, 2, 3, 4})));
}

TEST(PackedJson, HasTheErrorsOfOtherJson) {
  EXPECT_FALSE(parse_packed_json(R"({"ids": [1], "ids": [2]})", "test", {}, kKeys));
  EXPECT_FALSE(parse_packed_json(R"({"ids": [1)", "test", {}, kKeys));
  EXPECT_FALSE(parse_packed_json(R"({"ids": [1]})", "test", {.bytes_max = 4}, kKeys));
  EXPECT_FALSE(parse_packed_json(R"({"ids": [[1]]})", "test", {.depth_max = 1}, kKeys));
}

}  // namespace
}  // namespace banyan::packed_json_test
