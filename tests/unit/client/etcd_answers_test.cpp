// Answers of etcd: as its gateway writes them, and wrong ones.
#include "client/etcd_answers.h"

#include <gtest/gtest.h>

#include "base/base64.h"

namespace banyan::etcd_answers_test {
namespace {

TEST(EtcdAnswers, AListOfKeys) {
  Result<EtcdListing> listing =
      read_etcd_listing({{"header", {{"revision", "42"}}},
                         {"kvs",
                          {{{"key", to_base64("a/b")}, {"value", to_base64("\xff\n")}},
                           {{"key", "YQ=="}},
                           {{"key", "?"}, {"value", 7}},
                           "text"}}});
  ASSERT_TRUE(listing);
  EXPECT_EQ(listing->revision, 42);
  ASSERT_EQ(listing->entries.size(), 4u);
  EXPECT_EQ(listing->entries[0].key, "a/b");
  EXPECT_EQ(listing->entries[0].value, "\xff\n");
  EXPECT_EQ(listing->entries[1].key, "a");
  EXPECT_EQ(listing->entries[2].key, "");
  EXPECT_TRUE(read_etcd_listing({{"header", {{"revision", 1}}}})->entries.empty());
  for (const Json& wrong : {Json(), Json(7), Json::array(), Json{{"header", 7}}}) {
    EXPECT_EQ(read_etcd_listing(wrong).error().code, ErrorCode::kCorrupt) << wrong;
  }
}

TEST(EtcdAnswers, Leases) {
  EXPECT_EQ(read_etcd_lease({{"ID", "7587886"}, {"TTL", "10"}}).value(), 7587886);
  EXPECT_FALSE(read_etcd_lease({{"ID", "x"}}));
  EXPECT_TRUE(read_etcd_renewal({{"result", {{"TTL", "10"}}}}));
  EXPECT_EQ(read_etcd_renewal({{"result", {{"ID", "5"}}}}).error().code, ErrorCode::kNotFound);
}

TEST(EtcdAnswers, TokensThatFitIntoAHeader) {
  EXPECT_EQ(read_etcd_token({{"token", "abc.9"}}).value(), "abc.9");
  for (const Json& wrong : {Json(), Json{{"token", ""}}, Json{{"token", "a\r\nHost: b"}},
                            Json{{"token", std::string(5000, 'x')}}}) {
    EXPECT_FALSE(read_etcd_token(wrong)) << wrong;
  }
}

TEST(EtcdAnswers, ChangesOfAWatch) {
  auto changes = read_etcd_changes(
      R"({"result": {"events": [{"kv": {"key": "YQ==", "value": "Yg=="}},
                                {"type": "DELETE", "kv": {"key": "YQ=="}}]}})");
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_FALSE(changes->front().removed);
  EXPECT_EQ(changes->front().entry.value, "b");
  EXPECT_TRUE(changes->back().removed);
  EXPECT_TRUE(read_etcd_changes(R"({"result": {"created": true}})")->empty());
  EXPECT_TRUE(read_etcd_changes(R"({"result": {"canceled": false}})"));
}

// A `canceled` of another type threw, and the watch hung.
TEST(EtcdAnswers, EndAWatchThatTheyDoNotContinue) {
  for (const char* line :
       {"", "{", "[]", "{\"error\": {\"code\": 5}}", "{\"result\": {\"canceled\": true}}",
        "{\"result\": {\"canceled\": \"yes\"}}"}) {
    EXPECT_FALSE(read_etcd_changes(line)) << line;
  }
}

}  // namespace
}  // namespace banyan::etcd_answers_test
