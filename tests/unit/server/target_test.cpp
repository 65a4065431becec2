// Targets of request lines: decoding, queries, and forms that are refused.
#include "server/http/target.h"

#include <gtest/gtest.h>

namespace banyan::target_test {
namespace {

std::string path(std::string_view target) {
  Result<Target> parsed = parse_target(target);
  return parsed ? parsed->path : "refused";
}

TEST(Target, DecodesThePath) {
  EXPECT_EQ(path("/v1/models"), "/v1/models");
  EXPECT_EQ(path("/v1/models/org%2Fname%C3%A9"), "/v1/models/org/name\u00e9");
  EXPECT_EQ(path("/a+b"), "/a+b");
  EXPECT_EQ(path("/a#b"), "/a");
  EXPECT_EQ(path("*"), "*");
}

TEST(Target, TakesTheFormThatProxiesAreSent) {
  EXPECT_EQ(path("http://host:80/a?b"), "/a");
  EXPECT_EQ(path("https://host"), "/");
}

TEST(Target, RefusesOtherForms) {
  for (const char* target : {"", "a", "host:80", "http://host?a", "ftp://h/a", "/%", "/%4", "/%4g",
                             "/%00", "/%0a", "/%7f", "/?a=%", "/?%=a"}) {
    EXPECT_EQ(path(target), "refused") << target;
  }
}

TEST(Target, ReadsTheQuery) {
  auto query = parse_target("/?a=1&b=x+y%26&&c&=d&a=2=3")->query;
  std::vector<std::pair<std::string, std::string>> expected = {
      {"a", "1"}, {"b", "x y&"}, {"c", ""}, {"", "d"}, {"a", "2=3"}};
  EXPECT_EQ(query, expected);
}

}  // namespace
}  // namespace banyan::target_test
