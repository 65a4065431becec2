// banyan-nano, if it is there: it answers the first cases of its suites as the training code does.
#include <gtest/gtest.h>

#include "cli/program.h"

namespace banyan::nano_test {
namespace {

using test::ProgramResult;
using test::run_program;

const std::string kModel = test::nano_model();

TEST(Nano, SaysWhatTheTrainingCodeSays) {
  if (!file_exists(kModel + "/model.safetensors")) GTEST_SKIP() << kModel << " has no weights yet";
  std::string text = read_file(test::source_path("tests/golden/nano.json")).value();
  Json golden = parse_json(text, "nano.json").value();
  ASSERT_GE(golden.size(), 5u);
  std::string suites;
  for (const auto& [suite, answers] : golden.items()) suites += (suites.empty() ? "" : ",") + suite;
  std::string limit = std::to_string(golden.front().size());
  ProgramResult result =
      run_program({"eval", "nano", "--model", kModel, "--dtype", "f32", "--suite", suites,
                   "--limit", limit, "--max-tokens", "48", "--json", "--answers"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  Json rows = parse_json(result.out, "the table").value();
  EXPECT_EQ(rows.size(), golden.size());
  for (const Json& row : rows) {
    const Json& expected = golden[row["suite"].get<std::string>()];
    ASSERT_EQ(row["answers"].size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(row["answers"][i]["tokens"].dump(), expected[i].dump()) << row["suite"] << " " << i;
    }
  }
}

TEST(Nano, AsksMoreCasesThanMayWaitAtOnce) {
  if (!file_exists(kModel + "/model.safetensors")) GTEST_SKIP() << kModel << " has no weights yet";
  constexpr int kCases = 600;
  std::string suite = read_file(kModel + "/eval/copy.jsonl").value();
  std::string line = suite.substr(0, suite.find('\n') + 1), lines;
  for (int i = 0; i < kCases; ++i) lines += line;
  test::TemporaryFolder folder;
  folder.write("copy.jsonl", lines);
  ProgramResult result = run_program({"eval", "nano", "--model", kModel, "--data", folder.path(),
                                      "--suite", "copy", "--max-tokens", "1", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse_json(result.out, "the table").value()[0]["cases"], kCases);
}

TEST(Nano, SaysWhatIsMissing) {
  ProgramResult result = run_program({"eval", "nano", "--model", kModel, "--suite", "chess"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("chess.jsonl"), std::string::npos) << result.err;
  EXPECT_EQ(run_program({"eval", "nano", "--model", kModel, "--answers"}).exit_code, 2);
}

}  // namespace
}  // namespace banyan::nano_test
