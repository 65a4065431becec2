// Evaluation tasks: prompts, extracted answers, and the file of predictions.
#include <gtest/gtest.h>

#include "base/file.h"
#include "eval/answers.h"
#include "eval/predictions.h"
#include "eval/task.h"
#include "support/shared.h"

namespace banyan::eval_test {
namespace {

TEST(LastNumber, IsSpelledInOneWay) {
  auto number = [](std::string_view text) { return last_number(text).value_or("none"); };
  EXPECT_EQ(number("She makes 9 * 2 = $18 every day.\n#### 18"), "18");
  EXPECT_EQ(number("about -$1,234.50."), "-1234.5");
  EXPECT_EQ(number("It costs 070.00 dollars."), "70");
  EXPECT_EQ(number("1,000,000"), "1000000");
  EXPECT_EQ(number("the pairs 12,34"), "34");
  EXPECT_EQ(number("12,3456"), "3456");
  EXPECT_EQ(number("10-5"), "5");
  EXPECT_EQ(number("(3)-2"), "2");
  EXPECT_EQ(number("the loss is \u22125%"), "-5");
  EXPECT_EQ(number("= -0.0"), "0");
  EXPECT_EQ(number("costs $.50"), "0.5");
  EXPECT_EQ(number("at the end.5"), "5");
  EXPECT_EQ(number("2.75. Done."), "2.75");
  EXPECT_EQ(number("7."), "7");
  EXPECT_EQ(number("x2y"), "2");
  EXPECT_EQ(number("no digits"), "none");
  EXPECT_EQ(number(""), "none");
}

TEST(ChosenLetter, FollowsTheRulesInOrder) {
  auto letter = [](std::string_view text) { return chosen_letter(text).value_or("none"); };
  EXPECT_EQ(letter("B or C? The answer is (C). Answer: D"), "C");
  EXPECT_EQ(letter("so the answer is F.\nQuestion: the answer is A"), "F");
  EXPECT_EQ(letter("the answer is Apple, hence the answer is (A)"), "A");
  EXPECT_EQ(letter("I. Answer: B, no, answer: G\nAnswer: H"), "G");
  EXPECT_EQ(letter("Answer:\nE"), "E");
  EXPECT_EQ(letter("It must be D, as A is wrong: (D)!"), "D");
  EXPECT_EQ(letter("option K or z"), "none");
  EXPECT_EQ(letter("Banyan"), "none");
  EXPECT_EQ(letter(""), "none");
}

const EvalTask& task(const char* name) {
  return *eval_task_named(name);
}

std::string gsm_line(const std::string& question, const std::string& answer) {
  return Json{{"question", question}, {"answer", answer}}.dump() + "\n";
}

TEST(EvalSet, PutsExamplesInFrontOfQuestions) {
  EvalSource source{.data = gsm_line("Q1?", "a\n#### 1,000") + "\n" + gsm_line("Q2?", "#### 2"),
                    .data_name = "d"};
  source.shots = gsm_line("S1?", "one\n#### 1") + gsm_line("S2?", "two\n#### 2");
  source.shots_name = "s";
  EvalSet set = make_eval_set(task("gsm8k"), source, 1).value();
  ASSERT_EQ(set.items.size(), 2u);
  EXPECT_FALSE(set.shots_own);
  EXPECT_EQ(set.items[0].prompt, "Question: S1?\nAnswer: one\n#### 1\n\nQuestion: Q1?\nAnswer:");
  EXPECT_EQ(set.items[0].answer, "1000");
  EXPECT_EQ(make_eval_set(task("gsm8k"), source, 3).error().message,
            "s has only 2 worked examples, but --num-shots asks for 3");
  EXPECT_EQ(make_eval_set(task("gsm8k"), source, 0).value().items[1].prompt,
            "Question: Q2?\nAnswer:");

  // Without another file the data's first stand in, and are not asked.
  source.shots.reset();
  set = make_eval_set(task("gsm8k"), source, 1).value();
  ASSERT_EQ(set.items.size(), 1u);
  EXPECT_TRUE(set.shots_own);
  EXPECT_EQ(set.items[0].prompt, "Question: Q1?\nAnswer: a\n#### 1,000\n\nQuestion: Q2?\nAnswer:");
}

TEST(EvalSet, AsksCompletePromptsAsTheyStand) {
  EvalSource source{.data = R"([{"prompt": "P1", "answer": 18}, {"prompt": "P2", "answer": "7"}])",
                    .data_name = "d"};
  EvalSet set = make_eval_set(task("gsm8k"), source, 4).value();
  ASSERT_EQ(set.items.size(), 2u);
  EXPECT_EQ(set.shots, 0);
  EXPECT_EQ(set.items[0].prompt, "P1");
  EXPECT_EQ(set.items[0].answer, "18");
}

TEST(EvalSet, GroupsChoicesByCategory) {
  auto line = [](const char* category, const char* question) {
    return Json{{"question", question},
                {"options", {"yes", "no"}},
                {"answer", "B"},
                {"category", category}}
               .dump() +
           "\n";
  };
  EvalSource source{.data = line("law", "L1") + line("math", "M1") + line("law", "L2"),
                    .data_name = "d"};
  EvalSet set = make_eval_set(task("mmlu-pro"), source, 0).value();
  EXPECT_EQ(set.items[1].prompt,
            "The following are multiple choice questions (with answers) about math. Think step by "
            "step and then finish your answer with \"the answer is (X)\" where X is the correct "
            "letter choice.\n\n\nQuestion:\nM1\nOptions:\nA. yes\nB. no\nAnswer: Let's think step "
            "by step.");
  source.shots = R"({"question": "S", "options": ["u"], "answer": "A", "category": "law",)"
                 R"( "cot_content": "A: Let's think step by step. The answer is (A)."})";
  source.shots_name = "s";
  EXPECT_EQ(make_eval_set(task("mmlu-pro"), source, 1).error().message,
            "s has only 0 worked examples about \"math\", but --num-shots asks for 1");
  source.data = line("law", "L1");
  std::string prompt = make_eval_set(task("mmlu-pro"), source, 1).value().items[0].prompt;
  EXPECT_NE(prompt.find("\n\n\nQuestion:\nS\nOptions:\nA. u\nAnswer: Let's think step by step. The "
                        "answer is (A).\n\nQuestion:\nL1\n"),
            std::string::npos)
      << prompt;
}

TEST(EvalSet, SaysThatTheExamplesLeaveNoQuestion) {
  EvalSource source{.data = gsm_line("Q", "#### 1") + "\n" + gsm_line("R", "#### 2"),
                    .data_name = "d.jsonl"};
  Result<EvalSet> set = make_eval_set(task("gsm8k"), source, 5);
  ASSERT_FALSE(set);
  EXPECT_TRUE(set.error().message.contains("--num-shots")) << set.error().message;
}

TEST(EvalSet, NamesTheLineThatIsWrong) {
  auto error = [](const char* name, const std::string& data) {
    Result<EvalSet> set = make_eval_set(task(name), {.data = data, .data_name = "d.jsonl"}, 0);
    return set ? std::string("none") : set.error().message;
  };
  std::string good = gsm_line("Q", "#### 1");
  EXPECT_EQ(error("gsm8k", good + "{\"question\": \"Q\"}"), "d.jsonl:2: answer is missing");
  EXPECT_EQ(error("gsm8k", good + "\n[1]"), "d.jsonl:3: the line is not an object");
  EXPECT_EQ(error("gsm8k", gsm_line("Q", "none")),
            "d.jsonl:1: answer contains no number: \"none\"");
  EXPECT_TRUE(error("gsm8k", good + "{").starts_with("d.jsonl:2"));
  EXPECT_EQ(error("gsm8k", "[1]"), "d.jsonl: entry 1 is not an object");
  EXPECT_EQ(error("gsm8k", " \n"), "d.jsonl: the file contains no questions");
  EXPECT_EQ(error("mmlu-pro", good),
            "d.jsonl:1: answer is \"#### 1\"; it must be a letter from A to J");
  EXPECT_EQ(error("mmlu-pro", R"({"question": "q", "answer": "A", "category": "c"})"),
            "d.jsonl:1: options must be a list of 1 to 10 strings");
}

TEST(EvalSet, ReadsThePublishedFiles) {
  REQUIRE_SHARED("data/gsm8k/test.jsonl");
  EvalSource source{.data = read_file(test::shared_path("data/gsm8k/test.jsonl")).value(),
                    .data_name = "test.jsonl"};
  source.shots = read_file(test::shared_path("data/gsm8k/train.jsonl")).value();
  EvalSet set = make_eval_set(task("gsm8k"), source, 4).value();
  EXPECT_EQ(set.items.size(), 1319u);
  EXPECT_EQ(set.items[2].answer, "70000");
  REQUIRE_SHARED("data/mmlu-pro/mmlu_pro_test.jsonl");
  source = {.data = read_file(test::shared_path("data/mmlu-pro/mmlu_pro_test.jsonl")).value(),
            .data_name = "mmlu"};
  EXPECT_EQ(make_eval_set(task("mmlu-pro"), source, 0).value().items.size(), 12032u);
}

const Json kRun = {{"task", "gsm8k"}, {"num_shots", 4}};

TEST(Predictions, GoOnWhereTheyEnded) {
  test::TemporaryFolder folder;
  std::string path = folder.path() + "/p.jsonl";
  {
    PredictionFile file = PredictionFile::open(path, kRun, 3).value();
    ASSERT_TRUE(file.append({.index = 2, .answer = "5", .expected = "5", .correct = true}));
    ASSERT_TRUE(file.append({.index = 0, .expected = "6", .text = "no\xff\n"}));
    EXPECT_FALSE(PredictionFile::open(path, kRun, 3));  // one writer at a time
  }
  std::string whole = read_file(path).value();
  folder.write("p.jsonl", whole + "{\"run\": {\"ta");  // cut off while writing
  PredictionFile file = PredictionFile::open(path, kRun, 3).value();
  std::vector<std::optional<bool>> expected = {false, std::nullopt, true};
  EXPECT_EQ(file.correct(), expected);
  ASSERT_TRUE(file.append({.index = 1, .answer = "1", .expected = "2"}));
  std::string longer = read_file(path).value();
  EXPECT_TRUE(longer.starts_with(whole));
  EXPECT_EQ(std::ranges::count(longer, '\n'), 3);
  Json last = parse_json(std::string_view(longer).substr(whole.size()), "line").value();
  EXPECT_EQ(last["run"], kRun);
  EXPECT_EQ(last["prediction"], "1");
}

TEST(Predictions, RefuseWhatIsNotTheirs) {
  auto error = [](const std::string& text) {
    Result<PredictionsRead> read = read_predictions(text, "p", kRun, 3);
    return read ? std::string("none") : read.error().message;
  };
  auto line = [](Json run, Json index, Json correct) {
    return Json{{"run", run}, {"index", index}, {"correct", correct}}.dump() + "\n";
  };
  std::string good = line(kRun, 1, true);
  EXPECT_EQ(error(good), "none");
  EXPECT_EQ(
      error(good + line({{"task", "gsm8k"}, {"num_shots", 0}}, 0, true)),
      "p:2 belongs to another run: its num_shots is 0, here it is 4; choose another --out, or the "
      "same options");
  EXPECT_EQ(error("{\"a\": 1}\n"), "p:1 is not a prediction; choose another --out");
  EXPECT_TRUE(error("nonsense\n").starts_with("p:1"));
  EXPECT_EQ(error(good + good), "p:2: duplicate prediction for question 1");
  EXPECT_EQ(error(line(kRun, 3, true)), "p:1: index is not a number below 3");
  EXPECT_EQ(error(line(kRun, -1, true)), "p:1: index is not a number below 3");
  EXPECT_EQ(error(line(kRun, 0, "yes")), "p:1: correct is neither true nor false");
}

}  // namespace
}  // namespace banyan::eval_test
