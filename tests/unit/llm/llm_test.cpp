// The text interface, on the trained model of this repository and on random weights.
#include "banyan/llm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/json.h"
#include "llm/llm_parts.h"
#include "support/shared.h"
#include "text/tokenizer/tokenizer.h"

namespace banyan::llm_test {
namespace {

using test::TemporaryFolder;

std::unique_ptr<Llm> load(const std::string& folder, const std::string& format = "auto") {
  auto llm = Llm::load({.model_path = folder, .load_format = format, .threads = 1});
  EXPECT_TRUE(llm) << (llm ? "" : llm.error().message);
  return llm ? std::move(*llm) : nullptr;
}

TextRequest greedy(std::string text, int64_t tokens) {
  return {.text = std::move(text),
          .sampling = {.temperature = 0},
          .options = {.max_new_tokens = tokens}};
}

class Stories : public testing::Test {
 protected:
  void SetUp() override {
    llm_ = load(test::nano_model());
    ASSERT_NE(llm_, nullptr);
  }
  // What the model says after "Once upon a time", up to `end`: its words change with its weights.
  std::string story_until(std::string_view end) const {
    auto result = llm_->generate(greedy("Once upon a time", 40));
    EXPECT_TRUE(result);
    size_t at = result->text.find(end);
    EXPECT_NE(at, std::string::npos) << result->text;
    return result->text.substr(0, at);
  }
  std::unique_ptr<Llm> llm_;
};

TEST_F(Stories, TellsAStoryAndStreamsTheSameText) {
  std::string streamed;
  auto result = llm_->generate(greedy("Once upon a time", 40),
                               [&](std::string_view piece) { streamed += piece; });
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->text.starts_with(", there was a ")) << result->text;
  EXPECT_EQ(streamed, result->text);
  EXPECT_EQ(result->output_ids.size(), 40u);
  EXPECT_EQ(result->finish, FinishReason::kLength);
  EXPECT_GT(result->ttft_s, 0);
}

TEST_F(Stories, StopsStayInTheTextWhenAskedTo) {
  TextRequest request = greedy("Once upon a time", 40);
  request.options.stop = {" girl named"};
  request.options.keep_stop = true;
  auto result = llm_->generate(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, story_until(" girl named") + " girl named");
  EXPECT_EQ(result->matched_stop_text, " girl named");
  request.options.stop.clear();
  request.options.stop_token_ids = {result->output_ids.back()};
  result = llm_->generate(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, story_until(" girl named") + " girl named");
}

TEST_F(Stories, StopStringEndsTextTokensAndTheRequest) {
  TextRequest request = greedy("Once upon a time", 40);
  request.options.stop = {"zzz", " girl named"};
  auto result = llm_->generate(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->text, story_until(" girl named"));
  EXPECT_EQ(result->finish, FinishReason::kStop);
  EXPECT_EQ(result->matched_stop_text, " girl named");
  std::string all = *tokenizer_of(*llm_)->decode(result->output_ids);
  EXPECT_NE(all.find(" girl named"), std::string::npos);
  EXPECT_LT(result->output_ids.size(), 40u);
  EXPECT_EQ(llm_->engine().stats().running, 0);
  EngineStats stats = llm_->engine().stats();
  EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
}

TEST_F(Stories, AStopRegexEndsTheOutputAfterItsMatch) {
  TextRequest request = greedy("Once upon a time", 40);
  request.options.stop_regex = {"z{3}", "na[lm]e."};
  auto result = llm_->generate(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->text, story_until(" girl named") + " girl named");
  EXPECT_EQ(result->finish, FinishReason::kStop);
  EXPECT_EQ(result->matched_stop_text, "na[lm]e.");
  EXPECT_LT(result->output_ids.size(), 40u);
}

TEST_F(Stories, StopRegexesThatCannotBeSearchedForAreRefused) {
  for (const auto& [patterns, why] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"a*"}, "matches the empty string"},
           {{"(?=b)c"}, "(?="},
           {{std::string(5000, 'x')}, "5000 bytes, the limit is 4096"},
           {std::vector<std::string>(17, "x"), "17 stop regexes, the limit is 16"}}) {
    TextRequest request = greedy("Once", 4);
    request.options.stop_regex = patterns;
    auto result = llm_->generate(request);
    ASSERT_FALSE(result) << why;
    EXPECT_NE(result.error().message.find(why), std::string::npos) << result.error().message;
  }
}

TEST_F(Stories, StopTokenIsReportedAndLeftOutOfTheText) {
  auto plain = llm_->generate(greedy("Once upon a time", 10));
  ASSERT_TRUE(plain);
  TextRequest request = greedy("Once upon a time", 10);
  request.options.stop_token_ids = {plain->output_ids[3]};
  auto result = llm_->generate(request);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->matched_stop_token, plain->output_ids[3]);
  EXPECT_EQ(result->finish, FinishReason::kStop);
  EXPECT_EQ(result->output_ids.size(), 4u);
  EXPECT_EQ(result->text, plain->text.substr(0, result->text.size()));
}

TEST_F(Stories, CancelKeepsWhatThereIs) {
  int asked = 0;
  auto result = llm_->generate(greedy("Once upon a time", 40), {}, [&] { return ++asked == 5; });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->finish, FinishReason::kCancelled);
  EXPECT_EQ(result->output_ids.size(), 5u);
  EXPECT_EQ(llm_->engine().stats().running, 0);
}

TEST_F(Stories, ScoresWhatItGenerates) {
  TextRequest request = greedy("Once upon a time", 12);
  request.options.logprobs = true;
  request.options.prompt_logprobs_begin = 0;
  auto made = llm_->generate(request);
  ASSERT_TRUE(made);
  std::vector<TokenId> ids = made->prompt_ids;
  ids.insert(ids.end(), made->output_ids.begin(), made->output_ids.end());
  auto scores = llm_->score(ids);
  ASSERT_TRUE(scores) << scores.error().message;
  ASSERT_EQ(scores->size(), ids.size());
  EXPECT_FALSE((*scores)[0].has_value());
  for (size_t i = 0; i < made->logprobs.size(); ++i) {
    // Recurrent layers read a prompt in chunks and generate row by row: close, but other bits,
    // which tables of bf16 pairs round to bf16 again.
    EXPECT_NEAR(*(*scores)[made->prompt_ids.size() + i], made->logprobs[i].logprob, 2e-3) << i;
  }
  ASSERT_EQ(made->prompt_logprobs.size(), made->prompt_ids.size() - 1);
  for (size_t i = 0; i < made->prompt_logprobs.size(); ++i) {
    EXPECT_EQ(made->prompt_logprobs[i].token, ids[i + 1]);
    EXPECT_EQ(*(*scores)[i + 1], made->prompt_logprobs[i].logprob) << i;
  }
}

TEST_F(Stories, SamplingRepeatsWithItsSeed) {
  TextRequest request = greedy("Once upon a time", 30);
  request.sampling = {.temperature = 1, .top_p = 0.9f, .seed = 7};
  auto first = llm_->generate(request);
  auto second = llm_->generate(request);
  request.sampling.seed = 8;
  auto other = llm_->generate(request);
  ASSERT_TRUE(first && second && other);
  EXPECT_EQ(first->output_ids, second->output_ids);
  EXPECT_NE(first->output_ids, other->output_ids);
}

constexpr const char* kTinyConfig = R"({
  "architectures": ["LlamaForCausalLM"], "vocab_size": 300, "hidden_size": 32,
  "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "max_position_embeddings": 64, "eos_token_id": 1})";

// Random weights and a small vocabulary in the manner of SentencePiece, without a chat template. A
// bias decides what is said.
class Pieces : public testing::Test {
 protected:
  void SetUp() override {
    Json config = Json::parse(kTinyConfig);
    config["vocab_size"] = 800;
    folder_.write("config.json", config.dump());
    std::string from = test::source_path("tests/golden/tokenizer/tiny_metaspace/");
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      folder_.write(name, read_file(from + name).value());
    }
    llm_ = load(folder_.path(), "dummy");
    ASSERT_NE(llm_, nullptr);
  }

  TokenId token(const std::string& piece) { return tokenizer_of(*llm_)->find(piece).value(); }

  TemporaryFolder folder_;
  std::unique_ptr<Llm> llm_;
};

// A SentencePiece decoder drops the space that a text begins with; an output is not a beginning.
TEST_F(Pieces, OutputKeepsTheSpaceThatItsFirstTokenBeginsWith) {
  for (const auto& [prompt, text] : {std::pair("Once", "  "), {"", " "}}) {  // "": after <s> alone
    TextRequest request = greedy(prompt, 2);
    request.sampling.logit_bias = {{token("\u2581"), 100.0f}};
    auto result = llm_->generate(request);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(result->text, text) << prompt;
  }
}

// A newline by byte fallback is one that the decoder holds until it knows what follows.
TEST_F(Pieces, StopStringInTheLastTokenIsReported) {
  TextRequest request = greedy("Once", 1);
  request.sampling.logit_bias = {{token("<0x0A>"), 100.0f}};
  request.options.stop = {"\n"};
  auto result = llm_->generate(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->finish, FinishReason::kStop);
  EXPECT_EQ(result->matched_stop_text, "\n");
  EXPECT_EQ(result->text, "");
}

TEST_F(Pieces, HasNoChatTemplateAndSaysSo) {
  EXPECT_FALSE(llm_->has_chat_template());
  auto text = llm_->apply_chat_template({{"user", "Hi"}});
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("no chat template"), std::string::npos);
}

TEST_F(Pieces, TakesAChatTemplateAsTextOrFile) {
  EngineConfig config{.model_path = folder_.path(), .load_format = "dummy"};
  auto rendered = [&] {
    auto llm = Llm::load(config);
    EXPECT_TRUE(llm) << llm.error().message;
    return llm ? (*llm)->apply_chat_template({{"user", "Hi"}}).value() : "";
  };
  config.chat_template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
  EXPECT_EQ(rendered(), "<user>Hi");
  folder_.write("mine.jinja", "{{ messages[0].content }}!");
  config.chat_template = folder_.path() + "/mine.jinja";
  EXPECT_EQ(rendered(), "Hi!");

  auto error = [&](const std::string& chat_template) {
    config.chat_template = chat_template;
    auto llm = Llm::load(config);
    EXPECT_FALSE(llm) << chat_template;
    return llm ? "" : llm.error().message;
  };
  EXPECT_EQ(error("chatml"), "chat template \"chatml\": no such file, nor is it Jinja text");
  EXPECT_TRUE(error("{% for %}").starts_with("chat template: ")) << error("{% for %}");
}

TEST(LlmWithoutTokenizer, RunsOnTokenIdsAlone) {
  TemporaryFolder folder;
  folder.write("config.json", kTinyConfig);
  auto llm = load(folder.path(), "dummy");
  ASSERT_NE(llm, nullptr);
  TextRequest request{
      .ids = {5, 6, 7}, .sampling = {.temperature = 0}, .options = {.max_new_tokens = 5}};
  request.options.ignore_eos = true;
  auto result = llm->generate(request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output_ids.size(), 5u);
  EXPECT_EQ(result->text, "");

  auto text = llm->generate({.text = "hello"});
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("no tokenizer"), std::string::npos);
  request.options.stop = {"x"};
  EXPECT_FALSE(llm->generate(request));
  request.options.stop.clear();
  request.options.stop_regex = {"x"};
  EXPECT_FALSE(llm->generate(request));
}

TEST(LlmRequests, RefuseEmptyLongAndTooManyStopStrings) {
  TemporaryFolder folder;
  folder.write("config.json", kTinyConfig);
  auto llm = load(folder.path(), "dummy");
  ASSERT_NE(llm, nullptr);
  TextRequest request{.ids = {5}};
  for (const auto& stops : {std::vector<std::string>{""},
                            {std::string(5000, 'x')},
                            std::vector<std::string>(65, "x")}) {
    request.options.stop = stops;
    auto result = llm->generate(request);
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message.find("stop string"), std::string::npos);
  }
}

// No answer would end by itself.
TEST(GenerationConfig, OfAnEndOutsideTheVocabularyIsRefused) {
  TemporaryFolder folder;
  folder.write("config.json", kTinyConfig);
  for (const char* ids : {"300", "[2, 100000]"}) {
    folder.write("generation_config.json", fmt::format(R"({{"eos_token_id": {}}})", ids));
    auto llm = Llm::load({.model_path = folder.path(), .load_format = "dummy"});
    ASSERT_FALSE(llm) << ids;
    EXPECT_NE(llm.error().message.find("outside the vocabulary of 300"), std::string::npos);
  }
  folder.write("generation_config.json", R"({"eos_token_id": [299, -1]})");
  EXPECT_NE(load(folder.path(), "dummy"), nullptr);
}

TEST(GenerationConfig, IsReadAndChecked) {
  TemporaryFolder folder;
  folder.write("config.json", kTinyConfig);
  folder.write("generation_config.json",
               R"({"temperature": 0.6, "top_k": 20, "top_p": 0.95, "eos_token_id": [2, 3]})");
  auto llm = load(folder.path(), "dummy");
  ASSERT_NE(llm, nullptr);
  EXPECT_FLOAT_EQ(llm->recommended_sampling().temperature, 0.6f);
  EXPECT_EQ(llm->recommended_sampling().top_k, 20);
  auto neutral = Llm::load(
      {.model_path = folder.path(), .sampling_defaults = "openai", .load_format = "dummy"});
  ASSERT_TRUE(neutral) << neutral.error().message;
  EXPECT_FLOAT_EQ((*neutral)->recommended_sampling().temperature, 1);
  EXPECT_EQ((*neutral)->recommended_sampling().top_k, 0);

  folder.write("generation_config.json", R"({"top_p": 7})");
  auto bad = Llm::load({.model_path = folder.path(), .load_format = "dummy"});
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("top_p"), std::string::npos);
}

}  // namespace
}  // namespace banyan::llm_test
