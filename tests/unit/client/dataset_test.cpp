// Prompts of load tests: lengths, shared prefixes, arrival times and trace files.
#include "client/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "support/shared.h"

namespace banyan::dataset_test {
namespace {

std::vector<TokenId> ids_of(const BenchPrompt& prompt, uint64_t seed, int64_t vocabulary) {
  std::vector<TokenId> ids;
  append_token_ids(prompt, seed, vocabulary, [&](TokenId id) { ids.push_back(id); });
  return ids;
}

TEST(Dataset, RandomPromptsHaveTheLengthsAskedFor) {
  Dataset fixed =
      random_dataset({.prompts = 20, .input_len = 30, .output_len = 7, .range_ratio = 1}, 1);
  ASSERT_EQ(fixed.prompts.size(), 20u);
  for (const BenchPrompt& prompt : fixed.prompts) {
    EXPECT_EQ(ids_of(prompt, 1, 512).size(), 30u);
    EXPECT_EQ(prompt.prompt_tokens(), 30);
    EXPECT_EQ(prompt.output_tokens, 7);
  }
  Dataset range =
      random_dataset({.prompts = 2000, .input_len = 30, .output_len = 10, .range_ratio = 0.5}, 1);
  std::set<int64_t> inputs, outputs;
  for (const BenchPrompt& prompt : range.prompts) {
    inputs.insert(prompt.prompt_tokens());
    outputs.insert(prompt.output_tokens);
  }
  EXPECT_EQ(*inputs.begin(), 15);
  EXPECT_EQ(*inputs.rbegin(), 30);
  EXPECT_EQ(inputs.size(), 16u);
  EXPECT_EQ(outputs, (std::set<int64_t>{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(
      random_dataset({.prompts = 1, .input_len = 1, .output_len = 1}, 1).prompts[0].output_tokens,
      1);
}

TEST(Dataset, TokensFollowFromTheSeedAndStayInTheVocabulary) {
  Dataset one = random_dataset({.prompts = 2, .input_len = 100, .range_ratio = 1}, 1);
  std::vector<TokenId> ids = ids_of(one.prompts[0], 1, 50);
  EXPECT_EQ(ids, ids_of(one.prompts[0], 1, 50));
  EXPECT_NE(ids, ids_of(one.prompts[0], 2, 50));
  EXPECT_NE(ids, ids_of(one.prompts[1], 1, 50));
  EXPECT_LT(*std::ranges::max_element(ids), 50);
  EXPECT_GE(*std::ranges::min_element(ids), 0);
  EXPECT_EQ(std::ranges::count(prompt_words(one.prompts[0], 1), ' '), 99);
}

TEST(Dataset, GroupsShareTheirPrefixAndNothingElse) {
  GroupedShape shape{.groups = 5,
                     .prompts_per_group = 4,
                     .system_prompt_len = 50,
                     .question_len = 10,
                     .output_len = 3};
  Dataset dataset = shared_prefix_dataset(shape, 7);
  ASSERT_EQ(dataset.prompts.size(), 20u);
  std::map<std::vector<TokenId>, int> groups;
  std::set<std::vector<TokenId>> questions;
  for (const BenchPrompt& prompt : dataset.prompts) {
    std::vector<TokenId> ids = ids_of(prompt, 7, 1000);
    ASSERT_EQ(ids.size(), 60u);
    ++groups[{ids.begin(), ids.begin() + 50}];
    questions.insert({ids.begin() + 50, ids.end()});
  }
  EXPECT_EQ(groups.size(), 5u);
  for (const auto& [ids, count] : groups) EXPECT_EQ(count, 4);
  EXPECT_EQ(questions.size(), 20u);
  auto group = [](const BenchPrompt& prompt) { return prompt.parts[0].stream; };
  EXPECT_FALSE(std::ranges::is_sorted(dataset.prompts, {}, group));
}

TEST(Dataset, PoissonArrivalsHaveTheRateAskedFor) {
  std::vector<double> times = poisson_arrivals(20'000, 50, 3);
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_NEAR(times.back(), 400, 12);  // four standard deviations of the sum
  // The gaps of a Poisson process are as spread as they are long, and 1/e of them are longer.
  int64_t longer = 0;
  double squares = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    double gap = times[i] - times[i - 1];
    longer += gap > 0.02;
    squares += (gap - 0.02) * (gap - 0.02);
  }
  EXPECT_NEAR(static_cast<double>(longer) / 20'000, std::exp(-1), 0.015);
  EXPECT_NEAR(std::sqrt(squares / 20'000), 0.02, 0.001);
  EXPECT_EQ(times, poisson_arrivals(20'000, 50, 3));
  EXPECT_NE(times, poisson_arrivals(20'000, 50, 4));
  EXPECT_EQ(poisson_arrivals(3, std::numeric_limits<double>::infinity(), 3),
            (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(poisson_arrivals(0, 1, 3).empty());
}

TEST(Dataset, ReadsATrace) {
  test::TemporaryFolder folder;
  std::string path = folder.write(
      "trace.jsonl",
      "{\"timestamp\": 2500, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 2]}\n\n"
      "{\"timestamp\": 2000, \"input_length\": 512, \"output_length\": 9, \"hash_ids\": [0]}\n"
      "{\"timestamp\": 9000, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [7]}\n");
  Dataset dataset = read_mooncake(path, 2, 1).value();
  ASSERT_EQ(dataset.prompts.size(), 2u);
  EXPECT_TRUE(dataset.timed);
  EXPECT_EQ(dataset.prompts[0].arrival_s, 0);
  EXPECT_EQ(dataset.prompts[1].arrival_s, 0.5);
  std::vector<TokenId> first = ids_of(dataset.prompts[0], 1, 1000);
  std::vector<TokenId> second = ids_of(dataset.prompts[1], 1, 1000);
  EXPECT_EQ(first.size(), 512u);
  EXPECT_EQ(second.size(), 600u);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), second.begin()));
  EXPECT_EQ(dataset.drop_longer_than(600), 1u);
  EXPECT_EQ(dataset.prompts.size(), 1u);
}

TEST(Dataset, NamesTheLineOfATraceThatIsWrong) {
  const std::string good =
      R"({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1]})";
  for (const char* line : {
           "[]",
           R"({"input_length": 5, "output_length": 5, "hash_ids": [1]})",
           R"({"timestamp": -1, "input_length": 5, "output_length": 5, "hash_ids": [1]})",
           R"({"timestamp": 0, "input_length": 0, "output_length": 5, "hash_ids": []})",
           R"({"timestamp": 0, "input_length": 1e99, "output_length": 5, "hash_ids": [1]})",
           R"({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1, 2]})",
           R"({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [-1]})",
           R"({"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": ["a"]})",
       }) {
    test::TemporaryFolder folder;
    auto dataset = read_mooncake(folder.write("t", good + "\n" + line), 10, 1);
    ASSERT_FALSE(dataset) << line;
    EXPECT_NE(dataset.error().message.find(":2: "), std::string::npos) << dataset.error().message;
  }
  test::TemporaryFolder folder;
  EXPECT_FALSE(read_mooncake(folder.write("empty", "\n"), 10, 1));
  EXPECT_FALSE(read_mooncake(folder.path() + "/missing", 10, 1));
}

TEST(Dataset, ReadsConversations) {
  test::TemporaryFolder folder;
  std::string path = folder.write(
      "q.jsonl", "{\"turns\": [\"a\", \"b\"]}\n{\"turns\": [\"c\"]}\n{\"turns\": [1]}\n");
  Dataset dataset = read_conversations(path, 2, 64).value();
  ASSERT_EQ(dataset.prompts.size(), 2u);
  EXPECT_EQ(dataset.prompts[0].turns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(dataset.prompts[0].output_tokens, 64);
  EXPECT_FALSE(read_conversations(path, 3, 64));
}

TEST(Dataset, ReadsThePublishedFiles) {
  REQUIRE_SHARED("data/mooncake/conversation_trace.jsonl");
  Dataset trace =
      read_mooncake(test::shared_path("data/mooncake/conversation_trace.jsonl"), 500, 1).value();
  EXPECT_EQ(trace.prompts.size(), 500u);
  EXPECT_EQ(trace.prompts[0].prompt_tokens(), 6758);
  REQUIRE_SHARED("data/mt-bench/question.jsonl");
  Dataset chats =
      read_conversations(test::shared_path("data/mt-bench/question.jsonl"), 1000, 64).value();
  EXPECT_EQ(chats.prompts.size(), 80u);
  for (const BenchPrompt& chat : chats.prompts) EXPECT_EQ(chat.turns.size(), 2u);
}

}  // namespace
}  // namespace banyan::dataset_test
