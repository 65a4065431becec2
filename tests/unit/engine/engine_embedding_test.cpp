// Embeddings of prompts: the model's own hidden states, whatever runs with them.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::engine_embedding_test {
namespace {

EngineConfig config_of(const std::string& model) {
  return {.model_path = source_path(model),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 512,
          .running_max = 4,
          .chunked_prefill_tokens = 512};
}

const std::string kAttention = "tests/golden/models/qwen3-tied";
const std::string kRecurrent = "models/banyan-nano";  // KDA, MLA and experts

std::vector<TokenId> prompt_of(int64_t tokens, TokenId seed) {
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < tokens; ++i) ids.push_back((i * i + seed * (i + 3)) % 97);
  return ids;
}

GenerateRequest embedding_of(std::vector<TokenId> prompt, Pooling pooling = Pooling::kLast) {
  return {.prompt = std::move(prompt), .options = {.max_new_tokens = 0, .pooling = pooling}};
}

// The hidden states of all positions, computed in one go.
std::vector<float> hidden_states(const std::string& model, const std::vector<TokenId>& prompt) {
  std::unique_ptr<Runner> runner = load_runner(config_of(model));
  std::vector<int32_t> pages((prompt.size() + 3) / 4);
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i);
  Batch batch = one_span(runner->classes(), prompt, 0, std::ssize(prompt), pages);
  return runner->run_hidden(batch, {}).final;
}

std::vector<float> embedding(Engine& engine, const GenerateRequest& request) {
  Heard heard = run_alone(engine, request);
  EXPECT_EQ(heard.finish, FinishReason::kLength) << heard.error.message;
  EXPECT_TRUE(heard.output.empty());
  return heard.embedding;
}

TEST(Embedding, IsTheHiddenStateOfTheLastTokenOrTheMeanOfAll) {
  for (const std::string& model : {kAttention, kRecurrent}) {
    std::vector<TokenId> prompt = prompt_of(37, 5);
    std::vector<float> states = hidden_states(model, prompt);
    std::unique_ptr<Engine> engine = load_engine(config_of(model));
    auto width = static_cast<size_t>(engine->info().hidden);
    std::span<const float> last = std::span(states).last(width);
    EXPECT_TRUE(same_bits(embedding(*engine, embedding_of(prompt)), last)) << model;
    std::vector<float> mean = embedding(*engine, embedding_of(prompt, Pooling::kMean));
    ASSERT_EQ(mean.size(), width);
    for (size_t i = 0; i < width; ++i) {
      double sum = 0;
      for (size_t row = 0; row < prompt.size(); ++row) sum += states[row * width + i];
      EXPECT_EQ(mean[i], static_cast<float>(sum / 37.0));
    }
  }
}

// With other prompts, with sequences that decode, in chunks, from the cache, a step ahead, and with
// so little memory that sequences are retracted.
TEST(Embedding, DoesNotDependOnTheSchedule) {
  for (const std::string& model : {kAttention, kRecurrent}) {
    EngineConfig alone = config_of(model);
    alone.radix_cache = false;
    std::unique_ptr<Engine> plain = load_engine(alone);
    std::vector<GenerateRequest> requests;
    for (TokenId i = 0; i < 8; ++i) {
      std::vector<TokenId> prompt = prompt_of(30 + 9 * i, i / 3);  // some begin alike
      requests.push_back(embedding_of(prompt, i % 4 == 1 ? Pooling::kMean : Pooling::kLast));
      requests.push_back({.prompt = prompt, .options = {.max_new_tokens = 12}});
    }
    std::vector<Heard> expected;
    for (const GenerateRequest& request : requests) expected.push_back(run_alone(*plain, request));
    int64_t retracted = 0;
    for (bool overlap : {false, true}) {
      for (int64_t memory : {512, 192, 160, 128}) {
        EngineConfig config = config_of(model);
        config.chunked_prefill_tokens = 16;
        config.overlap_schedule = overlap;
        config.total_tokens_max = memory;
        config.running_max = 6;
        std::unique_ptr<Engine> engine = load_engine(config);
        for (int round = 0; round < 2; ++round) {  // the second finds prefixes in the cache
          std::vector<Heard> heard(requests.size());
          for (size_t i = 0; i < requests.size(); ++i) {
            ASSERT_TRUE(engine->submit(requests[i], hear_into(heard[i])));
          }
          while (engine->step()) EngineAssembly::scheduler(*engine).check();
          for (size_t i = 0; i < requests.size(); ++i) {
            expect_same(heard[i], expected[i]);
            EXPECT_TRUE(same_bits(heard[i].embedding, expected[i].embedding)) << i;
            if (requests[i].options.pooling == Pooling::kMean) {
              EXPECT_EQ(heard[i].cached_tokens, 0);
            }
          }
        }
        retracted += engine->stats().retracted;
      }
    }
    EXPECT_GT(retracted, 0) << model;
  }
}

TEST(Embedding, APrefixFromTheCacheIsUsed) {
  std::unique_ptr<Engine> engine = load_engine(config_of(kAttention));
  std::vector<TokenId> prompt = prompt_of(60, 1);
  Heard first = run_alone(*engine, embedding_of(prompt));
  Heard second = run_alone(*engine, embedding_of(prompt));
  EXPECT_EQ(first.cached_tokens, 0);
  EXPECT_EQ(second.cached_tokens, 59) << "all but the last token, whose state is asked for";
  EXPECT_TRUE(same_bits(second.embedding, first.embedding));
}

TEST(Embedding, RanksAgree) {
  EngineConfig config = config_of(kRecurrent);
  config.tp_size = 2;
  std::unique_ptr<Engine> engine = load_engine(config);
  std::vector<float> alone = embedding(*engine, embedding_of(prompt_of(50, 3)));
  engine->flush_cache();
  std::vector<Heard> heard(3);
  for (TokenId i = 0; i < 3; ++i) {
    ASSERT_TRUE(engine->submit(embedding_of(prompt_of(50, i + 1)),
                               hear_into(heard[static_cast<size_t>(i)])));
  }
  while (engine->step()) {
  }
  EXPECT_TRUE(same_bits(heard[2].embedding, alone));
  std::unique_ptr<Engine> one = load_engine(config_of(kRecurrent));
  std::vector<float> other = embedding(*one, embedding_of(prompt_of(50, 3)));
  ASSERT_EQ(other.size(), alone.size());
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], other[i], 0.1);
}

TEST(Embedding, EveryKernelTableHasThem) {
  std::vector<TokenId> prompt = prompt_of(21, 2);
  std::vector<float> portable;
  for (const std::string& kernels : all_kernels()) {
    EngineConfig config = config_of(kAttention);
    config.kernels = kernels;
    std::vector<float> values = embedding(*load_engine(config), embedding_of(prompt));
    if (portable.empty()) portable = values;
    ASSERT_EQ(values.size(), portable.size());
    for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], portable[i], 1e-3) << kernels;
  }
}

TEST(Embedding, IsRefusedWithWhatAPromptDoesNotHave) {
  std::unique_ptr<Engine> engine = load_engine(config_of(kAttention));
  auto refusal = [&](const auto& change) {
    GenerateRequest request = embedding_of(prompt_of(5, 1));
    change(request);
    auto id = engine->submit(std::move(request), [](const TokenEvent&) {});
    return id ? std::string() : id.error().message;
  };
  EXPECT_EQ(refusal([](GenerateRequest&) {}), "");
  EXPECT_TRUE(refusal([](GenerateRequest& r) {
                r.options.max_new_tokens = 3;
              }).contains("pooling is last, and max_new_tokens 3"));
  EXPECT_TRUE(refusal([](GenerateRequest& r) {
                r.options.prompt_logprobs_begin = 0;
              }).contains("no log-probabilities"));
  while (engine->step()) {
  }
  EngineConfig emulated = config_of(kAttention);
  emulated.emulated_steps = StepTimes{.step_s = 0, .prompt_row_s = 0, .decode_row_s = 0};
  auto id = load_engine(emulated)->submit(embedding_of({1, 2}), [](const TokenEvent&) {});
  ASSERT_FALSE(id);
  EXPECT_TRUE(id.error().message.contains("emulated")) << id.error().message;
}

}  // namespace
}  // namespace banyan::test::engine_embedding_test
