// `banyan eval` in its two ways: with an engine of its own and against a server.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/program.h"
#include "cli/serving_program.h"

namespace banyan::eval_test {
namespace {

using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

std::string data(int questions) {
  std::string text;
  for (int i = 0; i < questions; ++i) {
    text +=
        Json{{"question", "Tom had " + std::to_string(i) + " toys."}, {"answer", "#### 1"}}.dump() +
        "\n";
  }
  return text;
}

std::vector<std::string> eval(const TemporaryFolder& folder, const char* out,
                              const std::vector<std::string>& more) {
  std::vector<std::string> words = {
      "eval",        "gsm8k", "--data", folder.path() + "/data",  "--max-tokens", "9",
      "--num-shots", "1",     "--out",  folder.path() + "/" + out};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Lines in the order of questions, without the parameters of the run.
std::vector<Json> predictions(const TemporaryFolder& folder, const char* out) {
  std::string text = read_file(folder.path() + "/" + out).value();
  std::vector<Json> lines;
  for (size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1) {
    std::string_view line = std::string_view(text).substr(begin, text.find('\n', begin) - begin);
    lines.push_back(parse_json(line, "line").value());
    lines.back().erase("run");
  }
  std::ranges::sort(lines, {}, [](const Json& line) { return line["index"].get<int>(); });
  return lines;
}

TEST(Eval, AsksAnEngineOrAServerAlike) {
  TemporaryFolder folder;
  folder.write("data", data(6));
  std::vector<std::string> here = {"--model", test::nano_model(), "--threads", "1"};
  ProgramResult first = run_program(eval(folder, "a", [&] {
    std::vector<std::string> words = here;
    for (const char* word : {"--limit", "3", "--parallel", "2"}) words.push_back(word);
    return words;
  }()));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("正确率: ") && first.out.find("/3 = 0.") != std::string::npos)
      << first.out;
  EXPECT_NE(first.err.find("accuracy: "), std::string::npos) << first.err;
  EXPECT_EQ(predictions(folder, "a").size(), 3u);

  // The remaining questions, and none twice.
  ProgramResult all = run_program(eval(folder, "a", here));
  EXPECT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.out.find("/5 = "), std::string::npos) << all.out;
  std::vector<Json> lines = predictions(folder, "a");
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[4]["index"], 4);
  EXPECT_GT(lines[4]["completion_tokens"], 0);

  test::ServingProgram server(test::nano_model());
  ASSERT_NE(server.url, "");
  ProgramResult served =
      run_program(eval(folder, "b", {"--base-url", server.url + "/v1", "--parallel", "2"}));
  EXPECT_EQ(served.exit_code, 0) << served.err;
  EXPECT_EQ(served.out, all.out);
  EXPECT_EQ(predictions(folder, "b"), lines);
}

TEST(Eval, TakesTheOptionsOfTheDesignAndSaysWhatIsWrong) {
  TemporaryFolder folder;
  folder.write("data", data(2));
  std::string model = test::nano_model();
  ProgramResult named = run_program(eval(folder, "a",
                                         {"--model",
                                          model,
                                          "--threads",
                                          "1",
                                          "--tp_size",
                                          "1",
                                          "--nnodes=1",
                                          "--page_size",
                                          "256",
                                          "--disable_overlap_schedule",
                                          "--precompile_token_paddings",
                                          "16",
                                          "128",
                                          "512",
                                          "--disable_radix_cache",
                                          "--chunked_prefill_size",
                                          "512",
                                          "--mem_fraction_static",
                                          "0.6",
                                          "--max_running_requests",
                                          "64"}));
  EXPECT_EQ(named.exit_code, 0) << named.err;

  auto error = [&](const std::vector<std::string>& more) {
    ProgramResult result = run_program(eval(folder, "a", more));
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_NE(error({"--model", model, "--dp_size", "16"}).find("16 is not supported yet"),
            std::string::npos);
  EXPECT_NE(
      error({"--model", model, "--temperature", "1"}).find("belongs to another run: its sampling"),
      std::string::npos);
  EXPECT_NE(error({}).find("--base-url"), std::string::npos);
  EXPECT_NE(error({"--base-url", "http://x", "--page-size", "64"}).find("--page-size"),
            std::string::npos);
  EXPECT_NE(error({"--model", model, "--timeout", "5"}).find("--timeout"), std::string::npos);
}

}  // namespace
}  // namespace banyan::eval_test
