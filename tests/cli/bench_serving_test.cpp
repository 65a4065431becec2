// `banyan bench serving` against `banyan serve`, as two programs.
#include <gtest/gtest.h>

#include "cli/program.h"
#include "cli/serving_program.h"

namespace banyan::bench_serving_test {
namespace {

using test::golden_model;
using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

std::vector<std::string> bench(const std::string& url, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"bench", "serving", "--base-url", url};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(BenchServing, PrintsTheTableAndAppendsJson) {
  test::ServingProgram server(golden_model());
  ASSERT_NE(server.url, "");
  TemporaryFolder folder;
  std::string file = folder.path() + "/figures.jsonl";
  std::vector<std::string> load = {"--num-prompts",       "6",  "--random-input-len",   "9",
                                   "--random-output-len", "5",  "--max-concurrency",    "2",
                                   "--output-file",       file, "--random-range-ratio", "1",
                                   "--flush-cache"};
  ProgramResult result = run_program(bench(server.url, load));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(result.out.starts_with("============ Serving Benchmark Result ============\n"));
  EXPECT_NE(result.out.find("Successful requests:                     6 "), std::string::npos)
      << result.out;
  load.insert(load.end(), {"--goodput", "ttft:1e9", "e2el:1e9"});
  load.push_back("--json");
  load.push_back("--backend");
  load.push_back("openai-completions");
  Json json = test::parse_output(run_program(bench(server.url, load)));
  EXPECT_EQ(json["backend"], "openai-completions");
  EXPECT_EQ(json["completed"], 6);
  EXPECT_EQ(json["request_goodput"], json["request_throughput"]);
  EXPECT_EQ(json["total_input_tokens"], 54);
  EXPECT_EQ(json["total_output_tokens"], 30);
  EXPECT_EQ(json["max_concurrent_requests"], 2);
  EXPECT_EQ(json["server_info"]["page_size"], 64);
  std::string lines = read_file(file).value();
  EXPECT_EQ(std::ranges::count(lines, '\n'), 2);

  // Failures are reported with their reason; the second dataset exceeds the context.
  ProgramResult failed =
      run_program(bench(server.url, {"--extra-request-body", "{\"stream\": 1}"}));
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_NE(failed.err.find("banyan: "), std::string::npos) << failed.err;
}

TEST(BenchServing, SaysWhatIsWrong) {
  ProgramResult nobody = run_program(bench("http://127.0.0.1:1"));
  EXPECT_EQ(nobody.exit_code, 1);
  EXPECT_EQ(nobody.out, "");
  EXPECT_NE(nobody.err.find("no server answers at http://127.0.0.1:1"), std::string::npos);
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{"--dataset", "sharegpt"}, "\"sharegpt\" is not one of"},
      {{"--dataset", "mooncake"}, "--dataset mooncake needs a file"},
      {{"--dataset", "random", "file"}, "takes no file"},
      {{"--request-rate", "0"}, "--request-rate 0"},
      {{"--goodput", "ttft:1", "p99:5"}, "--goodput \"p99:5\" is not ttft:MS"},
      {{"--request-rate", "nan"}, "--request-rate nan"},
      {{"--backend", "x"}, "--backend"},
      {{"--random-range-ratio", "1.5"}, "--random-range-ratio"},
      {{"--random-output-len", "0"}, "--random-output-len"},
      {{"--base-url", "ftp://x"}, "--base-url"},
  };
  for (const auto& [words, named] : mistakes) {
    std::vector<std::string> all = {"bench", "serving"};
    all.insert(all.end(), words.begin(), words.end());
    ProgramResult result = run_program(all);
    EXPECT_EQ(result.exit_code, 2) << named << result.err;
    EXPECT_NE(result.err.find(named), std::string::npos) << named << "\n" << result.err;
  }
}

TEST(BenchServing, HelpShowsExamplesAndDefaults) {
  ProgramResult result = run_program({"bench", "serving", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* text : {"Examples:\n  banyan bench serving --num-prompts",
                           "[http://127.0.0.1:30000]", "--gsp-system-prompt-len", "[2048]"}) {
    EXPECT_NE(result.out.find(text), std::string::npos) << text << result.out;
  }
}

}  // namespace
}  // namespace banyan::bench_serving_test
