// The reader of JSON fields: types, ranges and hostile values.
#include "server/fields/request.h"

#include <gtest/gtest.h>

#include "server/fields/sampling.h"
#include "server/json/endpoint.h"

namespace banyan::request_fields_test {
namespace {

// What reading the one field `x` of `{"x": value}` says; "" if all is well.
std::string problem(const std::string& value, const std::function<void(RequestFields&)>& read) {
  Parsed<Json> json = parse_body("{\"x\": " + value + "}");
  if (!json) return json.error().error.message;
  RequestFields fields(*json);
  read(fields);
  auto done = fields.finish();
  return done ? "" : done.error().error.message;
}

TEST(RequestFields, IntegersAreIntegersInTheirRange) {
  auto read = [](RequestFields& fields) { fields.integer("x", 7, 0, 100); };
  for (const char* good : {"0", "100", "null", "5.0", "1e2", "-0.0"}) {
    EXPECT_EQ(problem(good, read), "");
  }
  for (const char* bad : {"-1", "101", "5.5", "101.0", "\"5\"", "\"5.0\"", "true", "[]", "{}",
                          "2147483648", "9223372036854775808", "18446744073709551616", "1e300"}) {
    std::string message = problem(bad, read);
    EXPECT_NE(message.find("x is "), std::string::npos) << bad << ": " << message;
    EXPECT_NE(message.find("an integer from 0 to 100"), std::string::npos) << message;
  }
}

// Clients whose language has one type of number write them as floats.
TEST(RequestFields, AnIntegerMayBeWrittenAsAFloat) {
  Json json = Json::parse(R"({"a": 16.0, "b": 4294967295.0, "c": -1.0, "d": [3.0, 4]})");
  RequestFields fields(json);
  EXPECT_EQ(fields.integer("a", 0, 0, 100), 16);
  EXPECT_EQ(fields.bits_if("b"), 4294967295U);
  EXPECT_EQ(fields.bits_if("c"), ~uint64_t{0});
  EXPECT_EQ(fields.token_ids("d", 2), (std::vector<TokenId>{3, 4}));
  EXPECT_TRUE(fields.finish());
}

TEST(RequestFields, FloatsThatAreNotExactAreNoIntegers) {
  auto read = [](RequestFields& fields) { fields.integer("x", 7, INT64_MIN, INT64_MAX); };
  for (const char* good : {"9007199254740992.0", "-9007199254740992.0", "9223372036854775807",
                           "-9223372036854775808"}) {
    EXPECT_EQ(problem(good, read), "");
  }
  for (const char* bad : {"-9223372036854775809", "9223372036854775808", "9007199254740994.0",
                          "-9007199254740994.0", "1e16", "-9.223372036854775808e18", "1e300"}) {
    EXPECT_NE(problem(bad, read), "") << bad;
  }
}

TEST(RequestFields, NumbersAreFiniteAndInTheirRange) {
  auto read = [](RequestFields& fields) { fields.number("x", 1, 0, 2); };
  for (const char* good : {"0", "2", "0.5", "1e-400", "null"}) EXPECT_EQ(problem(good, read), "");
  for (const char* bad : {"-1e-9", "2.001", "\"1\"", "false", "[]", "9223372036854775808"}) {
    std::string message = problem(bad, read);
    EXPECT_NE(message.find("a number from 0 to 2"), std::string::npos) << bad << ": " << message;
  }
  for (const char* bad : {"NaN", "Infinity", "-Infinity", "1e400", "0x1", "01", "+1"}) {
    EXPECT_NE(problem(bad, read).find("not valid JSON"), std::string::npos) << problem(bad, read);
  }
}

TEST(RequestFields, SeedsAreAnySixtyFourBits) {
  auto read = [](RequestFields& fields) { fields.bits_if("x"); };
  for (const char* good : {"-1", "18446744073709551615", "-9223372036854775808"}) {
    EXPECT_EQ(problem(good, read), "");
  }
  for (const char* bad :
       {"1.5", "\"1\"", "18446744073709551616", "-9223372036854775809", "9007199254740994.0"}) {
    EXPECT_NE(problem(bad, read), "") << bad;
  }
}

TEST(RequestFields, StringsAndListsOfThemAreBounded) {
  auto read = [](RequestFields& fields) { fields.strings("x", 3, 4); };
  for (const char* good : {"\"abcd\"", "[]", "[\"a\",\"b\",\"c\"]", "\"\"", "null"}) {
    EXPECT_EQ(problem(good, read), "");
  }
  for (const char* bad :
       {"\"abcde\"", "[\"a\",\"b\",\"c\",\"d\"]", "[1]", "7", "{}", "[\"abcde\"]"}) {
    EXPECT_NE(problem(bad, read).find('x'), std::string::npos) << bad;
  }
  Json json = Json::parse(R"({"x": ["", "a", ""]})");
  EXPECT_EQ(RequestFields(json).strings("x", 3, 4), std::vector<std::string>{"a"});
}

TEST(RequestFields, TokenIdsAreIds) {
  auto read = [](RequestFields& fields) { fields.token_ids("x", 3); };
  for (const char* good : {"[1,2,3]", "[]", "5", "[2147483647]"})
    EXPECT_EQ(problem(good, read), "");
  for (const char* bad : {"[-1]", "[1.5]", "[\"1\"]", "[1,2,3,4]", "\"1\"", "[2147483648]", "{}"}) {
    EXPECT_NE(problem(bad, read), "") << bad;
  }
}

TEST(RequestFields, WhatIsNotSupportedMayOnlySayNothing) {
  auto read = [](RequestFields& fields) { fields.refuse({"x"}); };
  for (const char* good : {"null", "false", "\"\"", "[]", "{}", "[null, null]"}) {
    EXPECT_EQ(problem(good, read), "") << good;
  }
  for (const char* bad : {"true", "\"a\"", "[1]", "{\"a\":1}", "0", "[\"a\"]"}) {
    EXPECT_EQ(problem(bad, read), "x is not supported yet; leave it out") << bad;
  }
}

TEST(RequestFields, TheFirstErrorStaysAndNamesItsPlace) {
  Json json = Json::parse(R"({"a": "x", "b": "y"})");
  RequestFields fields(json, "sampling_params.");
  fields.integer("a", 0, 0, 1);
  fields.flag("b", false);
  auto done = fields.finish();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().param, "sampling_params.a");
  Json list = Json::array();
  EXPECT_NE(RequestFields(list).finish().error().error.message.find("not a JSON object"),
            std::string::npos);
}

TEST(RequestBody, HostileJsonIsRefused) {
  std::string deep(100000, '[');
  std::string keys = "{";
  for (int i = 0; i < 10000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  keys.back() = '}';
  for (const std::string& bad :
       {deep, keys, std::string(R"({"a":1,"a":2})"), std::string(R"({"a":"\ud800"})"),
        std::string(R"({"a":"\udc00\ud800"})"), std::string("{\"a\":\"\xff\"}"),
        std::string("{\"a\":\"\xed\xa0\x80\"}"), std::string("{\"a\":\"\0\"}", 9),
        std::string(R"({"a":1} x)"), std::string(R"({"a":)"), std::string("{'a':1}"),
        std::string("{\"a\":1,}"), std::string(""), std::string("\xef\xbb\xbf"),
        std::string(R"({"a":1e400})")}) {
    auto json = parse_body(bad);
    ASSERT_FALSE(json) << bad.substr(0, 40);
    EXPECT_EQ(json.error().error.code, ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(parse_body(R"({"a":"\ud83d\ude00\u0000"})"));
}

TEST(RequestFields, DraftsAreLimitedAndTurnedOffByRequest) {
  auto limit = [](const std::string& json) -> std::optional<int> {
    Parsed<Json> body = parse_body(json);
    RequestFields fields(*body);
    GenerationOptions options;
    read_scheduling(fields, options);
    EXPECT_TRUE(fields.finish().has_value()) << json;
    return options.draft_tokens_max;
  };
  EXPECT_EQ(limit("{}"), std::nullopt);
  EXPECT_EQ(limit(R"({"speculation": "auto"})"), std::nullopt);
  EXPECT_EQ(limit(R"({"speculation": "none", "draft_tokens_max": 4})"), 0);
  EXPECT_EQ(limit(R"({"draft_tokens_max": 4})"), 4);
  EXPECT_EQ(limit(R"({"speculative.n_max": 3})"), 3);
}

TEST(RequestFields, ARequestNamesItsDrafter) {
  auto drafter = [](const std::string& json) {
    Parsed<Json> body = parse_body(json);
    RequestFields fields(*body);
    GenerationOptions options;
    read_scheduling(fields, options);
    EXPECT_TRUE(fields.finish().has_value()) << json;
    return options.drafter;
  };
  EXPECT_EQ(drafter("{}"), "");
  EXPECT_EQ(drafter(R"({"speculation": "auto"})"), "");
  EXPECT_EQ(drafter(R"({"speculation": "none"})"), "");
  EXPECT_EQ(drafter(R"({"speculation": "suffix"})"), "suffix");
}

}  // namespace
}  // namespace banyan::request_fields_test
