// Requests that Engine::submit refuses, and the reasons that it gives.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::engine_submit_test {
namespace {

constexpr int kVocabulary = 131;
constexpr int kContext = 64;

EngineConfig small_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .context_length_tokens = kContext,
          .page_size_tokens = 4,
          .total_tokens_max = 96,
          .running_max = 2,
          .queued_max = 3,
          .top_logprobs_max = 5,
          .stop_token_ids_max = 4,
          .logit_bias_max = 2};
}

class EngineSubmit : public testing::Test {
 protected:
  // Expects `change`d to be refused with `code` and a message that has `words`.
  void refuses(const std::function<void(GenerateRequest&)>& change, ErrorCode code,
               const std::string& words) {
    GenerateRequest request{.prompt = {1, 2, 3}, .options = {.max_new_tokens = 4}};
    change(request);
    auto id = engine_->submit(request, [](const TokenEvent&) { FAIL() << "it was refused"; });
    ASSERT_FALSE(id.has_value()) << words;
    EXPECT_EQ(id.error().code, code) << id.error().message;
    EXPECT_NE(id.error().message.find(words), std::string::npos)
        << id.error().message << " does not say " << words;
    EXPECT_FALSE(engine_->step()) << words;
    EXPECT_EQ(engine_->stats().queued, 0);
  }

  std::unique_ptr<Engine> engine_ = load_engine(small_config());
};

TEST_F(EngineSubmit, RefusesBadPrompts) {
  using R = GenerateRequest;
  auto wrong = ErrorCode::kInvalidArgument;
  refuses([](R& r) { r.prompt.clear(); }, wrong, "the prompt has no tokens");
  refuses([](R& r) { r.prompt[1] = kVocabulary; }, wrong,
          "prompt: token 131 is outside the vocabulary of 131 tokens");
  refuses([](R& r) { r.prompt[2] = -1; }, wrong, "prompt: token -1");
  refuses([](R& r) { r.prompt[0] = std::numeric_limits<TokenId>::min(); }, wrong,
          "prompt: token -2147483648");
  refuses([](R& r) { r.prompt.assign(kContext + 1, 1); }, wrong,
          "the prompt has 65 tokens, the context length is 64");
  refuses([](R& r) { r.prompt.assign(kContext, 1); }, wrong, "the prompt has 64 tokens");
  refuses([](R& r) { r.prompt.assign((1 << 20) + 1, 1); }, wrong, "prompt tokens is 1048577");
}

TEST_F(EngineSubmit, RefusesBadLimits) {
  using R = GenerateRequest;
  auto wrong = ErrorCode::kInvalidArgument;
  refuses([](R& r) { r.options.max_new_tokens = -1; }, wrong, "max_new_tokens is -1");
  refuses([](R& r) { r.options.max_new_tokens = int64_t{1} << 62; }, wrong,
          "max_new_tokens is 46116860");
  refuses([](R& r) { r.options.top_logprobs = 6; }, wrong,
          "top_logprobs is 6; it must be between 0 and 5");
  refuses([](R& r) { r.options.top_logprobs = -1; }, wrong, "top_logprobs is -1");
  refuses([](R& r) { r.options.stop_token_ids.assign(5, 1); }, wrong, "stop_token_ids is 5");
  refuses([](R& r) { r.sampling.logit_bias.assign(3, {1, 1.f}); }, wrong,
          "logit_bias entries is 3");
  refuses([](R& r) { r.sampling.logit_bias = {{kVocabulary, 1.f}}; }, wrong,
          "logit_bias: token 131");
  refuses([](R& r) { r.sampling.logit_bias = {{-5, 1.f}}; }, wrong, "logit_bias: token -5");
  refuses([](R& r) { r.options.prompt_logprobs_begin = -1; }, wrong, "prompt_logprobs_begin is -1");
  refuses([](R& r) { r.options.prompt_logprobs_begin = 4; }, wrong, "prompt_logprobs_begin is 4");
}

TEST_F(EngineSubmit, RefusesBadSampling) {
  using R = GenerateRequest;
  auto wrong = ErrorCode::kInvalidArgument;
  refuses([](R& r) { r.sampling.temperature = -1; }, wrong, "temperature is -1");
  refuses([](R& r) { r.sampling.temperature = std::nanf(""); }, wrong, "temperature is nan");
  refuses([](R& r) { r.sampling.top_p = 0; }, wrong, "top_p is 0");
  refuses([](R& r) { r.sampling.logit_bias = {{1, INFINITY}}; }, wrong, "logit_bias is inf");
  refuses([](R& r) { r.options.adapter = "poet"; }, wrong,
          "there is no adapter \"poet\"; none is loaded");
}

TEST_F(EngineSubmit, RefusesWhatIsNotSupportedYet) {
  using R = GenerateRequest;
  auto unsupported = ErrorCode::kUnsupported;
  refuses([](R& r) { r.options.priority = 7; }, unsupported, "priority 7");
}

TEST_F(EngineSubmit, RefusesOptionsOfText) {
  using R = GenerateRequest;
  auto wrong = ErrorCode::kInvalidArgument;
  refuses([](R& r) { r.options.stop = {"."}; }, wrong, "stop strings: an Engine takes no text");
  refuses([](R& r) { r.options.stop_regex = {"."}; }, wrong,
          "stop regexes: an Engine takes no text");
  refuses([](R& r) { r.options.grammar = GrammarSource::regex("a"); }, wrong,
          "a grammar: an Engine takes no text");
}

TEST_F(EngineSubmit, RefusesARequestWithoutASink) {
  auto id = engine_->submit({.prompt = {1}}, {});
  ASSERT_FALSE(id.has_value());
  EXPECT_EQ(id.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(EngineSubmit, RefusesWhatMemoryCanNeverHold) {
  EngineConfig config = small_config();
  config.total_tokens_max = 32;
  engine_ = load_engine(config);
  refuses([](GenerateRequest& r) { r.prompt.assign(32, 1); }, ErrorCode::kInvalidArgument,
          "33 tokens of prompt and output do not fit into the 32 tokens");
}

TEST_F(EngineSubmit, EndsAtTheMemorysEndWhateverIsAskedFor) {
  EngineConfig config = small_config();
  config.total_tokens_max = 32;
  engine_ = load_engine(config);
  Heard heard = run_alone(
      *engine_, {.prompt = std::vector<TokenId>(20, 1), .options = {.max_new_tokens = 1'000'000}});
  EXPECT_EQ(heard.output.size(), 12u);
  EXPECT_EQ(heard.finish, FinishReason::kLength);
}

TEST_F(EngineSubmit, AClientThatFillsTheQueueKeepsNobodyOut) {
  EngineConfig config = small_config();
  config.running_max = 1;
  config.queued_max = 4;
  engine_ = load_engine(config);
  auto submit = [&](const std::string& client) {
    GenerateRequest request{.prompt = {1, 2, 3}, .options = {.max_new_tokens = 2}};
    request.options.client = client;
    return engine_->submit(std::move(request), [](const TokenEvent&) {});
  };
  auto refusal = [&](const std::string& client) {
    auto id = submit(client);
    return id ? std::string() : id.error().message;
  };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(submit("a"));
  EXPECT_EQ(refusal("a"), "4 requests are waiting, which is the limit");
  EXPECT_EQ(refusal(""), "4 requests are waiting, which is the limit");
  SequenceId first = submit("b").value();
  ASSERT_TRUE(submit("b"));
  EXPECT_EQ(refusal("b"), "6 requests are waiting, 2 of them this client's; the limit is 4");
  EXPECT_EQ(refusal("a"), "6 requests are waiting, 4 of them this client's; the limit is 4");
  EXPECT_EQ(refusal("c"), "");
  engine_->cancel(first);
  engine_->step();  // one of a's runs
  EXPECT_EQ(engine_->stats().queued, 5);
  EXPECT_NE(refusal("b"), "") << "it has one, as each of three clients may";
  EXPECT_NE(refusal("a"), "");
  while (engine_->step()) {
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(refusal("b"), "") << "nothing of the others is left";
  EXPECT_NE(refusal("b"), "");
}

TEST_F(EngineSubmit, RefusesWhenTheQueueIsFull) {
  std::vector<Heard> heard(4);
  GenerateRequest request{.prompt = {1, 2, 3}, .options = {.max_new_tokens = 2}};
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(engine_->submit(request, hear_into(heard[i])));
  auto fourth = engine_->submit(request, hear_into(heard[3]));
  ASSERT_FALSE(fourth.has_value());
  EXPECT_EQ(fourth.error().code, ErrorCode::kExhausted);
  EXPECT_EQ(fourth.error().message, "3 requests are waiting, which is the limit");
  engine_->step();
  EXPECT_TRUE(engine_->submit(request, hear_into(heard[3]))) << "two were admitted";
  while (engine_->step()) {
  }
  for (const Heard& h : heard) EXPECT_EQ(h.output.size(), 2u);
}

TEST_F(EngineSubmit, TakesTheLargestThatFits) {
  Heard scored =
      run_alone(*engine_, {.prompt = std::vector<TokenId>(kContext, 5),
                           .options = {.max_new_tokens = 0, .prompt_logprobs_begin = kContext}});
  EXPECT_EQ(scored.finish, FinishReason::kLength);
  EXPECT_TRUE(scored.prompt.empty());
  Heard one = run_alone(*engine_, {.prompt = std::vector<TokenId>(kContext - 1, 5),
                                   .options = {.max_new_tokens = 1 << 20}});
  EXPECT_EQ(one.output.size(), 1u);
  EXPECT_EQ(one.finish, FinishReason::kLength);
}

}  // namespace
}  // namespace banyan::test::engine_submit_test
