// `banyan bench speculation` on a trained model that is small.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"

namespace banyan::bench_speculation_test {
namespace {

using test::nano_model;
using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

using Words = std::vector<std::string>;

Words bench(const Words& more) {
  Words words = {"bench", "speculation", nano_model(), "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string written(const TemporaryFolder& folder, const std::string& text) {
  std::string path = folder.path() + "/texts.jsonl";
  std::ofstream(path) << text;
  return path;
}

// One answer that is recorded, one that the model writes itself, and one that a schema constrains.
const std::string kTexts =
    R"({"name": "copy", "messages": [{"role": "user", "content": "Say: a b c d e f g h"},
        {"role": "assistant", "content": "a b c d e f g h, a b c d e f g h, a b c d e f g h"}]})"
    "\n"
    R"({"suite": "own", "messages": [{"role": "user", "content": "Hello"}], "think": false})"
    "\n"
    R"({"name": "json", "messages": [{"role": "user", "content": "JSON?"},
        {"role": "assistant", "content": "{\"first\":1,\"second\":true}"}],
        "schema": {"type": "object", "properties": {"first": {"type": "integer"}, "second":
        {"type": "boolean"}}, "required": ["first", "second"], "additionalProperties": false}})"
    "\n";

std::string one_a_line(std::string text) {
  for (size_t i = 0; (i = text.find("\n  ", i)) != text.npos;) text.replace(i, 1, " ");
  return text;
}

int64_t accepted_lines(const std::string& log) {
  std::ifstream file(log);
  int64_t accepted = 0;
  for (std::string line; std::getline(file, line);) {
    Json token = Json::parse(line);
    EXPECT_EQ(token["drafter"], "suffix");
    EXPECT_GT(token["confidence"], 0);
    accepted += token["accepted"].get<bool>();
  }
  return accepted;
}

TEST(BenchSpeculation, ReportsTextsDraftersAndTheCostModel) {
  TemporaryFolder folder;
  std::string file = written(folder, one_a_line(kTexts)), log = folder.path() + "/drafts.jsonl";
  // With a log, tokens are verified however long steps take here.
  Json json = test::parse_output(
      run_program(bench({"--text", file, "--speculative-algorithm", "SUFFIX", "--max-tokens", "8",
                         "--pairs", "2", "--draft-log", log, "--json"})));
  ASSERT_EQ(json["texts"].size(), 4u);
  Words names;
  for (const Json& text : json["texts"]) {
    names.push_back(text["name"]);
    // The first step is not timed, and forced text may come with its token.
    EXPECT_LE(text["drafted"]["tokens"], text["plain"]["tokens"]);
    if (text["name"] == "copy") {
      EXPECT_EQ(text["drafted"]["tokens"], text["plain"]["tokens"]);
    }
    EXPECT_EQ(text["plain"]["steps"], text["plain"]["tokens"]);
    EXPECT_EQ(text["plain"]["draft_tokens"], 0);
    EXPECT_LE(text["drafted"]["accepted_tokens"], text["drafted"]["draft_tokens"]);
    EXPECT_LE(text["speed_up"]["low"], text["speed_up"]["mean"]);
    EXPECT_GT(text["predicted_speed_up"], 0);
  }
  EXPECT_EQ(names, (Words{"copy", "own", "json", "all"}));
  const Json& all = json["texts"][3];
  EXPECT_LT(all["drafted"]["steps"], all["plain"]["steps"]);
  double accepted = 0;
  for (const Json& drafter : all["drafters"]) accepted += drafter["accepted_tokens"].get<double>();
  EXPECT_EQ(accepted, 2 * all["drafted"]["accepted_tokens"].get<double>());
  EXPECT_GE(accepted_lines(log), accepted) << "the log has the warm-up too";
  EXPECT_EQ(json["model"]["sequences"], 1);
  EXPECT_GT(json["model"]["step_s"], 0);
  EXPECT_EQ(json["model"]["drafted_steps"][0]["draft_tokens"], 0);

  ProgramResult table =
      run_program(bench({"--text", file, "--speculative-algorithm", "NEXTN", "--limit", "1",
                         "--batch-size", "3", "--emulate-acceptance", "0.8", "--explain"}));
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_TRUE(table.out.starts_with("text          | tokens  steps")) << table.out;
  EXPECT_NE(table.out.find("3 texts"), std::string::npos) << table.out;
  EXPECT_NE(table.out.find("acceptance predicted  measured"), std::string::npos) << table.out;
}

TEST(BenchSpeculation, RefusesWhatItCannotMeasure) {
  auto error = [](const Words& more) {
    ProgramResult result = run_program(bench(more));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  TemporaryFolder folder;
  std::string file = written(folder, one_a_line(kTexts));
  EXPECT_NE(error({}).find("nothing drafts"), std::string::npos);
  EXPECT_NE(error({"--speculative-algorithm", "NEXTN", "--text", file, "--emulate-acceptance", "1"})
                .find("--emulate-acceptance needs the answers"),
            std::string::npos);
  std::string broken = written(folder, "{\"name\": \"x\", \"messages\": [{\"role\": 1}]}\n");
  EXPECT_NE(error({"--speculative-algorithm", "NGRAM", "--text", broken}).find("role and content"),
            std::string::npos);
  std::string forbidden = written(folder, R"({"name": "x", "messages": [)"
                                          R"({"role": "user", "content": "1"},)"
                                          R"({"role": "assistant", "content": "no"}],)"
                                          R"( "schema": {"type": "integer"}})");
  EXPECT_NE(error({"--speculative-algorithm", "NGRAM", "--text", forbidden}).find("forbids token"),
            std::string::npos);
}

}  // namespace
}  // namespace banyan::bench_speculation_test
