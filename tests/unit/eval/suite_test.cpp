// Suites of questions: the files, and how answers are compared.
#include "eval/suite.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace banyan::suite_test {
namespace {

std::string line(const char* suite, const char* answer, const char* more = "") {
  return fmt::format(
      R"({{"suite": "{}", "messages": [{{"role": "user", "content": "x"}}], "answer": {}{}}})",
      suite, answer, more);
}

bool right(const char* suite, const char* answer, SuiteReply reply) {
  return is_right(read_suite(line(suite, answer), "s").value()[0], reply);
}

TEST(Suite, ReadsCases) {
  std::string text = line("extraction", R"({"b":1,"a":2})", R"(, "schema": {"type": "object"})") +
                     "\n\n" + line("extraction", "{}", R"(, "think": true)");
  std::vector<SuiteCase> cases = read_suite(text, "s").value();
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].answer.dump(), R"({"b":1,"a":2})");
  EXPECT_EQ(cases[0].schema, R"({"type":"object"})");
  EXPECT_FALSE(cases[0].think);
  EXPECT_TRUE(cases[1].think);
  EXPECT_TRUE(cases[1].schema.empty());
}

TEST(Suite, NamesTheLineThatIsWrong) {
  auto error_of = [](const std::string& text) { return read_suite(text, "s").error().message; };
  EXPECT_EQ(error_of(""), "s: the file contains no cases");
  EXPECT_EQ(error_of(line("copy", "\"a\"") + "\n[]"), "s:2: the line is not an object");
  EXPECT_EQ(error_of(line("copy", "\"a\"") + "\n" + line("sort", "\"a\"")),
            "s:2: suite is \"sort\", but earlier lines have \"copy\"");
  EXPECT_EQ(error_of(R"({"suite": "copy", "messages": [], "answer": 1})"),
            "s:1: messages is not a list of messages");
  EXPECT_EQ(error_of(R"({"suite": "copy", "messages": [1]})"), "s:1: answer is missing");
  EXPECT_EQ(error_of(line("copy", "1", R"(, "think": 1)")), "s:1: think is not a flag");
  EXPECT_EQ(error_of(line("stories", "1")), "s:1: answer is not a string");
}

TEST(Suite, ComparesTextsWithoutSpaceAround) {
  EXPECT_TRUE(right("copy", "\"a, b\"", {" a, b\n", nullptr}));
  EXPECT_FALSE(right("copy", "\"a, b\"", {"a,b", nullptr}));
}

TEST(Suite, ComparesNumbers) {
  EXPECT_TRUE(right("arithmetic", "12", {"3 * 4 = 12 eggs\n#### 12", nullptr}));
  EXPECT_FALSE(right("arithmetic", "12", {"#### 13", nullptr}));
  EXPECT_FALSE(right("arithmetic", "12", {"twelve", nullptr}));
}

TEST(Suite, FindsOneOfTheTexts) {
  EXPECT_TRUE(right("everyday-talk", R"(["bye", "hello"])", {"Hello! Who is there?", nullptr}));
  EXPECT_FALSE(right("everyday-talk", R"(["bye", "hello"])", {"Hell", nullptr}));
}

TEST(Suite, WantsStoriesOfWhatWasAskedFor) {
  std::string rest = "It was cold. " + std::string(200, 'x');
  auto told = [&](const std::string& story) {
    return right("everyday-stories", "\"dragon\"", {story, nullptr});
  };
  EXPECT_TRUE(told("Once there was a Dragon. " + rest + ". \"The end!\""));
  EXPECT_TRUE(told("It was night. The dragon slept. " + rest + "."));
  EXPECT_FALSE(told("It was night. It was late. The dragon slept. " + rest + "."));
  EXPECT_FALSE(told("It was night. The dragon slept. " + rest));
  EXPECT_FALSE(told("There is a dragon."));
}

TEST(Suite, ComparesJsonWhateverItsOrder) {
  EXPECT_TRUE(right("extraction", R"({"a":1,"b":["x"]})", {R"({"b": ["x"], "a": 1})", nullptr}));
  EXPECT_FALSE(right("extraction", R"({"a":1})", {R"({"a":"1"})", nullptr}));
  EXPECT_FALSE(right("extraction", R"({"a":1})", {R"({"a":1)", nullptr}));
}

TEST(Suite, ComparesCalls) {
  const char* call = R"({"name": "timer", "arguments": {"minutes": 3, "of": "x"}})";
  Json same = {{"name", "timer"}, {"arguments", {{"of", "x"}, {"minutes", 3}}}};
  EXPECT_TRUE(right("tools", call, {"", same}));
  same["arguments"]["minutes"] = 4;
  EXPECT_FALSE(right("tools", call, {"", same}));
  EXPECT_FALSE(right("tools", call, {"I would", nullptr}));
  EXPECT_TRUE(right("tools", "null", {"Hello!", nullptr}));
  EXPECT_FALSE(right("tools", "null", {"", same}));
}

}  // namespace
}  // namespace banyan::suite_test
