// Trace files in both formats, and errors that name the line.
#include "replay/trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "support/shared.h"

namespace banyan::trace_test {
namespace {

Result<Trace> read_text(const std::string& text) {
  test::TemporaryFolder folder;
  return read_trace(folder.write("trace.jsonl", text), 3);
}

void expect_refused(const std::string& text, const std::string& named) {
  Result<Trace> trace = read_text(text);
  ASSERT_FALSE(trace) << text;
  EXPECT_NE(trace.error().message.find(named), std::string::npos) << trace.error().message;
}

TEST(Trace, ReadsMooncakeLines) {
  auto trace = read_text(
      R"({"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [0, 7]})"
      "\n"
      R"({"timestamp": 27, "input_length": 512, "output_length": 0, "hash_ids": [9]})"
      "\n");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].prompt_tokens, 512) << "by arrival";
  EXPECT_DOUBLE_EQ(trace->requests[0].arrival_s, 0.027);
  std::vector<TokenId> prompt = trace->prompt_of(trace->requests[1]);
  ASSERT_EQ(prompt.size(), 600u);
  EXPECT_EQ(prompt[511], 0);
  EXPECT_EQ(prompt[512], 7);
  EXPECT_EQ(prompt[599], 7);
  EXPECT_EQ(trace->requests[1].output_tokens, 5);
  EXPECT_NE(trace->requests[0].output, trace->requests[1].output);
  EXPECT_EQ(trace->prompt_tokens(), 1112);
  EXPECT_EQ(trace->longest_tokens(), 605);
}

TEST(Trace, ReadsChats) {
  auto trace = read_text(R"({"question_id": 1, "turns": ["one two", "two"]})"
                         "\n"
                         R"({"turns": ["one\n two three"]})");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 3u);
  const TraceRequest &first = trace->requests[0], &second = trace->requests[1];
  EXPECT_EQ(first.prompt_tokens, 4) << "two words between the marks of the turn";
  EXPECT_EQ(first.after, -1);
  EXPECT_EQ(second.after, 0);
  std::vector<TokenId> expected = first.blocks;
  expected.insert(expected.end(), 3, first.output);
  expected.insert(expected.end(), {first.blocks[0], first.blocks[2], first.blocks[3]});
  EXPECT_EQ(second.blocks, expected);
  EXPECT_EQ(trace->requests[2].after, -1);
  EXPECT_EQ(trace->requests[2].blocks[2], first.blocks[2]) << "the same word";
}

TEST(Trace, NamesWhatIsWrong) {
  expect_refused("", "contains no requests");
  expect_refused("{\n", "trace.jsonl:1");
  expect_refused("[1]\n", "not an object");
  const std::string good =
      R"({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [0]})"
      "\n";
  expect_refused(good + "{}\n", "trace.jsonl:2: timestamp");
  auto with = [](const char* time, const char* input, const char* output, const char* ids) {
    return fmt::format(
        R"({{"timestamp": {}, "input_length": {}, "output_length": {}, "hash_ids": {}}})", time,
        input, output, ids);
  };
  expect_refused(with("-1", "5", "5", "[0]"), "timestamp");
  expect_refused(with("1e300", "5", "5", "[0]"), "timestamp");
  expect_refused(with("0", "0", "5", "[0]"), "input_length is 0");
  expect_refused(with("0", "5.5", "5", "[0]"), "input_length is 5.5");
  expect_refused(with("0", "9223372036854775807", "5", "[0]"), "input_length");
  expect_refused(with("0", "18446744073709551615", "5", "[0]"), "input_length");
  expect_refused(with("0", "5", "-1", "[0]"), "output_length is -1");
  expect_refused(with("0", "513", "5", "[0]"), "list of 2 ids");
  expect_refused(with("0", "5", "5", "[-1]"), "hash_ids has -1");
  expect_refused(with("0", "5", "5", "[1073741824]"), "hash_ids has 1073741824");
  expect_refused(with("0", "5", "5", "[\"a\"]"), "hash_ids has \"a\"");
  expect_refused(R"({"turns": "text"})", "turns must be a list of strings");
  expect_refused(R"({"turns": [5]})", "turns has 5");
}

TEST(Trace, SharesOnlyTheGroupsPrompt) {
  Trace trace = shared_prefix_trace({.groups = 3,
                                     .prompts_per_group = 4,
                                     .system_prompt_tokens = 5,
                                     .question_tokens = 2,
                                     .output_tokens = 1});
  std::set<TokenId> groups, questions, outputs;
  for (const TraceRequest& request : trace.requests) {
    EXPECT_EQ(request.blocks.size(), 7u);
    EXPECT_EQ(request.blocks[0], request.blocks[4]);
    groups.insert(request.blocks[0]);
    questions.insert(request.blocks[5]);
    outputs.insert(request.output);
  }
  EXPECT_EQ(groups.size(), 3u);
  EXPECT_EQ(questions.size(), 12u);
  EXPECT_EQ(outputs.size(), 12u);
  spread_arrivals(trace, 10, 0);
  for (size_t i = 1; i < trace.requests.size(); ++i) {
    EXPECT_LT(trace.requests[i - 1].arrival_s, trace.requests[i].arrival_s);
  }
}

}  // namespace
}  // namespace banyan::trace_test
