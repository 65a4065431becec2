// The files next to a vocabulary: where special tokens and templates come from.
#include "text/tokenizer/tokenizer_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/shared.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::tokenizer_config_test {
namespace {

using test::TemporaryFolder;

constexpr const char* kTokenizer =
    R"({"model":{"type":"BPE","merges":[],"vocab":{"a":0,"<s>":1,"</s>":2,"<e>":3}}})";

TEST(TokenizerConfig, ReadsTokensAsStringsOrObjects) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  folder.write("tokenizer_config.json",
               R"({"bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>",)"
               R"("pad_token":null,"add_bos_token":true,"model_max_length":0.5,)"
               R"("additional_special_tokens":["<e>",{"content":"<f>"}]})");
  folder.write("special_tokens_map.json", R"({"pad_token":"<e>","eos_token":"other"})");
  folder.write("generation_config.json", R"({"eos_token_id":[3,0]})");
  folder.write("config.json", R"({"eos_token_id":1})");
  auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const SpecialTokens& special = (*tokenizer)->special();
  EXPECT_EQ(special.bos->text, "<s>");
  EXPECT_EQ(special.bos->id, 1);
  EXPECT_EQ(special.eos->id, 2);
  EXPECT_EQ(special.pad->id, 3);
  EXPECT_FALSE(special.unk);
  EXPECT_EQ(special.eos_ids, (std::vector<TokenId>{3, 0, 2}));
  EXPECT_EQ(special.named.at("pad_token"), "<e>");
}

TEST(TokenizerConfig, ReadsPastNonfiniteNumbersAndOtherFieldsWithTokenInTheirName) {
  TemporaryFolder folder;
  folder.write("tokenizer_config.json",
               R"({"a":NaN,"b":[-Infinity,"NaN \" Infinity\\"],"model_max_length":Infinity,)"
               R"("image_token":[1],"n_token":3,"audio_token":{"id":7},"x_token":"NaN"})");
  folder.write("config.json", R"({"x":{"initializer":Infinity},"eos_token_id":7,"y":NaN})");
  auto config = read_tokenizer_config(folder.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->json["b"][1], "NaN \" Infinity\\");
  EXPECT_EQ(config->special.named, (std::map<std::string, std::string>{{"x_token", "NaN"}}));
  EXPECT_EQ(config->special.eos_ids, std::vector<TokenId>{7});
  folder.write("config.json", R"({"x":NaNo})");
  EXPECT_FALSE(read_tokenizer_config(folder.path()));
}

TEST(TokenizerConfig, FallsBackToConfigJson) {
  TemporaryFolder folder;
  folder.write("tokenizer.json", kTokenizer);
  folder.write("config.json", R"({"bos_token_id":1,"eos_token_id":2})");
  auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ((*tokenizer)->special().bos->text, "<s>");
  EXPECT_EQ((*tokenizer)->special().eos->text, "</s>");
  EXPECT_EQ((*tokenizer)->special().eos_ids, std::vector<TokenId>{2});
}

TEST(TokenizerConfig, ChatTemplatesComeFromTheFirstPlaceThatHasThem) {
  TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template":[{"name":"default","template":"A"},)"
                                        R"({"name":"tool_use","template":"B"}]})");
  auto config = read_tokenizer_config(folder.path());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->chat_template, "A");
  folder.write("chat_template.json", R"({"chat_template":"C"})");
  EXPECT_EQ(read_tokenizer_config(folder.path())->chat_template, "C");
  folder.write("chat_template.jinja", "D");
  EXPECT_EQ(read_tokenizer_config(folder.path())->chat_template, "D");
}

TEST(TokenizerConfig, NamesTheFileAndKeyThatAreWrong) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"tokenizer_config.json", R"({"bos_token":1})"},
      {"tokenizer_config.json", R"({"chat_template":[1]})"},
      {"tokenizer_config.json", "[]"},
      {"generation_config.json", R"({"eos_token_id":"x"})"},
      {"generation_config.json", R"({"eos_token_id":2147483648})"},
      {"config.json", R"({"eos_token_id":[-2]})"},
      {"special_tokens_map.json", "{"},
      {"chat_template.jinja", "\xff"},
  };
  for (const auto& [name, text] : kWrong) {
    TemporaryFolder folder;
    folder.write(name, text);
    auto config = read_tokenizer_config(folder.path());
    ASSERT_FALSE(config) << name << text;
    EXPECT_NE(config.error().message.find(name), std::string::npos) << config.error().message;
  }
}

TEST(TokenizerConfig, SaysWhatIsMissing) {
  TemporaryFolder folder;
  EXPECT_EQ(Tokenizer::load(folder.path()).error().code, ErrorCode::kNotFound);
  folder.write("tokenizer.model", "x");
  EXPECT_EQ(Tokenizer::load(folder.path()).error().code, ErrorCode::kUnsupported);
  folder.write("tiktoken.model", "YQ== 0\n");
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"Other"})");
  auto other = Tokenizer::load(folder.path());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("\"Other\""), std::string::npos);
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"TikTokenTokenizer"})");
  for (const char* broken : {"", "YQ==\n", "YQ== x\n", "YQ== -1\n", "!!== 0\n", "YQ== 2147483648\n",
                             "YQ== 0\nYQ== 1\n", "YQ== 0\nYg== 0\n", " 0\n", "YQ== 0 0\n"}) {
    folder.write("tiktoken.model", broken);
    EXPECT_FALSE(Tokenizer::load(folder.path())) << broken;
  }
}

// Each way to cut a token is looked up, so their time is the square of its length.
TEST(TokenizerConfig, RefusesManyLongTiktokenTokens) {
  TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"tokenizer_class":"TikTokenTokenizer"})");
  std::string lines;
  for (int i = 0; i < 5000; ++i) {
    lines += fmt::format("{:04}{} {}\n", i, std::string(1320, 'A'), i);
  }
  folder.write("tiktoken.model", lines);
  auto tokenizer = Tokenizer::load(folder.path());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code, ErrorCode::kExhausted) << tokenizer.error().message;
}

}  // namespace
}  // namespace banyan::tokenizer_config_test
