// Model folders that cannot be run end in exit code 1 and one clear line, never in a crash.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/program.h"
#include "support/sanitized.h"

namespace banyan::broken_models_test {
namespace {

using test::golden_model;
using test::nano_model;
using test::ProgramResult;
using test::run_program;
using test::TemporaryFolder;

void expect_failure(const std::vector<std::string>& words, const std::string& named) {
  ProgramResult result = run_program(words);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.starts_with("banyan: ")) << result.err;
  EXPECT_NE(result.err.find(named), std::string::npos) << result.err;
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
}

// Every verb that loads a model reports the same error.
void expect_unusable(const std::string& folder, const std::string& named) {
  expect_failure({"inspect", "--model", folder}, named);
  expect_failure({"run", "--model", folder}, named);
  expect_failure({"generate", "--model", folder, "--prompt-ids", "1"}, named);
  expect_failure({"score", "--model", folder, "--ids", "1"}, named);
  expect_failure({"bench", "one-batch", "--model", folder}, named);
}

TEST(BrokenModels, MissingFolder) {
  expect_unusable("/nonexistent/model", "/nonexistent/model");
  expect_failure({"tokenize", "--model", "/nonexistent/model", "a"}, "/nonexistent/model");
}

TEST(BrokenModels, EmptyFolder) {
  TemporaryFolder folder;
  expect_unusable(folder.path(), "config.json");
  expect_failure({"tokenize", "--model", folder.path(), "a"}, "tokenizer");
  expect_failure({"detokenize", "--model", folder.path(), "--ids", "1"}, "tokenizer");
}

TEST(BrokenModels, FileInPlaceOfAFolder) {
  TemporaryFolder folder;
  expect_unusable(folder.write("model", ""), "a file of 0 B that is no model");
  expect_unusable(folder.write("x.gguf", "GGUF...."), "GGUF version 774778414 is not");
}

TEST(BrokenModels, UnknownArchitectureListsTheSupported) {
  TemporaryFolder folder;
  folder.write("config.json", R"({"architectures": ["WonderForCausalLM"]})");
  expect_unusable(folder.path(), "WonderForCausalLM");
  expect_failure({"inspect", "--model", folder.path()}, "Qwen3ForCausalLM");
}

TEST(BrokenModels, ConfigsThatAreNotJson) {
  for (const char* text : {"", "{", "[]", "null", "{\"architectures\": 7}", "\xff\xfe"}) {
    TemporaryFolder folder;
    folder.write("config.json", text);
    expect_unusable(folder.path(), "config.json");
  }
}

TEST(BrokenModels, MissingWeights) {
  TemporaryFolder folder;
  std::filesystem::copy_file(golden_model() + "/config.json", folder.path() + "/config.json");
  expect_unusable(folder.path(), "safetensors");
}

TEST(BrokenModels, WeightsCutShort) {
  TemporaryFolder folder;
  std::filesystem::copy_file(golden_model() + "/config.json", folder.path() + "/config.json");
  std::string weights = read_file(golden_model() + "/model.safetensors").value();
  for (size_t bytes : {size_t{0}, size_t{7}, size_t{100}, weights.size() - 1}) {
    folder.write("model.safetensors", weights.substr(0, bytes));
    expect_unusable(folder.path(), "model.safetensors");
  }
}

// It aborted the program.
TEST(BrokenModels, TooLittleAddressSpace) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer needs terabytes of address space";
  ProgramResult result =
      run_program({"generate", nano_model(), "hi", "--threads", "2"}, "", rlim_t{1'000'000} << 10);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(result.err.contains("cannot reserve ")) << result.err;
  EXPECT_TRUE(result.err.contains("--max-total-tokens")) << result.err;
}

TEST(BrokenModels, TokenizerThatIsNotJson) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", "{\"model\": ");
  expect_failure({"tokenize", "--model", folder.path(), "a"}, "tokenizer.json");
}

}  // namespace
}  // namespace banyan::broken_models_test
