// LoRA adapters on the command line, under the names of SGLang, vLLM and llama.cpp.
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/options/adapter_options.h"
#include "cli/program.h"
#include "support/models/adapters.h"
#include "support/models/grown_checkpoint.h"

namespace banyan::test::cli_adapters_test {
namespace {

class AdapterProgram : public testing::Test {
 protected:
  // The output ids of `generate` with these options more.
  Json ids(std::vector<std::string> more) {
    std::vector<std::string> words = {"generate", "--model", golden_folder(kModel), "--json",
                                      "-n",       "8",       "--prompt-ids",        "5,9,77,5",
                                      "--dtype",  "f32"};
    words.insert(words.end(), more.begin(), more.end());
    auto result = run_program(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out, nullptr, false)["output_ids"];
  }
  std::string error(std::vector<std::string> words) {
    auto result = run_program(words);
    EXPECT_NE(result.exit_code, 0);
    return result.err;
  }

  static constexpr const char* kModel = "qwen3-tied";
  TemporaryFolder folder_;
  std::string path_ = TestAdapter(kModel, 1).save(folder_);
};

TEST_F(AdapterProgram, GenerateAndScoreTakeAdapters) {
  Json base = ids({}), poet = ids({"--lora-paths", "poet=" + path_, "--adapter", "poet"});
  EXPECT_NE(base, poet);
  EXPECT_EQ(ids({"--lora-paths", "poet=" + path_}), base);
  EXPECT_EQ(ids({"--lora-modules", R"({"name":"poet","path":")" + path_ + "\"}", "--adapter",
                 "poet", "--max-loras", "4", "--enable-lora"}),
            poet);
  EXPECT_EQ(ids({"--lora", path_}), poet);
  EXPECT_EQ(ids({"--lora-scaled", path_, "1"}), poet);
  EXPECT_EQ(ids({"--lora-scaled", path_, "0"}), base);
  auto score = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"score", golden_folder(kModel), "--json", "--ids", "5,9,77"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words).out;
  };
  EXPECT_NE(score({"--lora", path_}), score({}));
  EXPECT_EQ(score({"--lora-paths", path_}), score({}));
}

TEST_F(AdapterProgram, InspectShowsTheirMemory) {
  auto result = run_program(
      {"inspect", golden_folder(kModel), "--lora-paths", path_, "--max-loaded-loras", "3"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.contains("for 3 of rank 4")) << result.out;
}

TEST_F(AdapterProgram, WrongOnesAreNamed) {
  std::string model = golden_folder(kModel);
  auto generate = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"generate", "--model", model, "--prompt-ids", "5"};
    words.insert(words.end(), more.begin(), more.end());
    return error(words);
  };
  EXPECT_TRUE(generate({"--adapter", "poet"}).contains("there is no adapter \"poet\""));
  EXPECT_TRUE(generate({"--lora-paths", "=x"}).contains("\"=x\" is not NAME=PATH"));
  EXPECT_TRUE(generate({"--lora-paths", "x=/nowhere/y"}).contains("/nowhere/y: no such folder"));
  EXPECT_TRUE(generate({"--lora", path_, "--lora", path_}).contains("a request has one adapter"));
  EXPECT_TRUE(generate({"--lora-scaled", path_, "much"}).contains("\"much\" is not a number"));
  EXPECT_TRUE(generate({"--lora", path_, "--max-lora-rank", "2"})
                  .contains("its rank is 4, but there is room for rank 2"));
  EXPECT_TRUE(generate({"--lora", path_, "--tp-size", "2"}).contains("not supported with several"));
  EXPECT_TRUE(error({"serve", model, "--lora", path_, "--disaggregation-mode", "prefill"})
                  .contains("not supported with LoRA adapters yet"));
}

TEST_F(AdapterProgram, NamesAndPathsAreReadInEveryForm) {
  auto parsed = [](const std::string& text) {
    auto adapter = cli::parse_adapter(text);
    return adapter ? adapter->name + " at " + adapter->path : adapter.error().message;
  };
  EXPECT_EQ(parsed("a=b=c"), "a at b=c");
  EXPECT_EQ(parsed("b/c"), "b/c at b/c");
  EXPECT_EQ(parsed(R"({"lora_name":"a","lora_path":"b","pinned":true})"), "a at b");
  EXPECT_EQ(parsed(R"({"name":"a","path":"b","base_model_name":"c"})"), "a at b");
  EXPECT_TRUE(parsed(R"({"name":"a"})").contains("not NAME=PATH"));
  EXPECT_TRUE(parsed("{").contains("the adapter"));
}

}  // namespace
}  // namespace banyan::test::cli_adapters_test
