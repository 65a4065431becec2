// Engines that emulate their steps: no weights, the scheduler and cache of any other engine, and
// tokens that follow from the request.
#include "engine/emulator.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "support/drive.h"
#include "support/models/tiny_model.h"
#include "support/shared.h"
#include "support/stripes.h"

namespace banyan::test::emulator_test {
namespace {

class Emulation : public testing::Test {
 protected:
  EngineConfig config() const {
    EngineConfig config = tiny_model(folder_);
    config.emulated_steps = {.step_s = 0, .prompt_row_s = 0, .decode_row_s = 0};
    return config;
  }
  static GenerateRequest request(float temperature, uint64_t seed) {
    return {.prompt = std::vector<TokenId>(40, 3),
            .sampling = {.temperature = temperature, .seed = seed},
            .options = {.max_new_tokens = 20}};
  }

  TemporaryFolder folder_;
};

TEST_F(Emulation, TokensFollowFromTheRequestWhateverElseRuns) {
  EngineConfig overlapping = config();
  overlapping.overlap_schedule = true;
  auto engine = load_engine(config()), other = load_engine(overlapping);
  Heard heard = run_alone(*engine, request(1, 7));
  ASSERT_EQ(heard.output.size(), 20u);
  EXPECT_EQ(heard.finish, FinishReason::kLength);
  EXPECT_FLOAT_EQ(heard.output[3].logprob, -std::log(float{kTinyVocabulary}));
  EXPECT_NE(run_alone(*engine, request(1, 8)).output_ids(), heard.output_ids());
  EXPECT_EQ(run_alone(*engine, request(0, 8)).output_ids(),
            run_alone(*engine, request(0, 9)).output_ids());
  Heard again, beside;
  ASSERT_TRUE(other->submit(request(1, 9), hear_into(beside)));
  ASSERT_TRUE(other->submit(request(1, 7), hear_into(again)));
  while (other->step()) EngineAssembly::scheduler(*other).check();
  EXPECT_EQ(again.output_ids(), heard.output_ids());
  EXPECT_GT(again.cached_tokens, 0);
}

TEST_F(Emulation, ARunMovesAndConstraintsHold) {
  auto engine = load_engine(config());
  GenerateRequest constrained = request(1, 7);
  constrained.constraint = std::make_shared<Stripes>(3);
  constrained.options.top_logprobs = 2;
  Heard heard = run_alone(*engine, constrained);
  std::vector<TokenId> tokens = heard.output_ids();
  ASSERT_EQ(tokens.size(), 20u);
  EXPECT_EQ(heard.output[0].top.size(), 2u);
  Stripes stripes(3);
  for (TokenId token : tokens) {
    std::vector<uint32_t> mask((kTinyVocabulary + 31) / 32);
    stripes.fill_mask(mask);
    auto t = static_cast<size_t>(token);
    EXPECT_TRUE((mask[t / 32] >> t % 32 & 1u) != 0) << token;
    stripes.accept(token);
  }
  GenerateRequest moved = request(1, 7);
  Heard whole = run_alone(*engine, moved);
  std::vector<TokenId> all = whole.output_ids();
  moved.resume_tokens = {all.begin(), all.begin() + 9};
  EXPECT_EQ(run_alone(*load_engine(config()), moved).output_ids(),
            std::vector<TokenId>(all.begin() + 9, all.end()));
}

// 40 rows of a prompt in a step, then 19 steps with one row.
TEST_F(Emulation, StepsTakeTheirTime) {
  EngineConfig slow = config();
  slow.emulated_steps = {.step_s = 1e-3, .prompt_row_s = 1e-3, .decode_row_s = 1e-4};
  auto engine = load_engine(slow);
  auto begin = std::chrono::steady_clock::now();
  run_alone(*engine, request(0, 0));
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(time.count(), 41e-3 + 19 * 1.1e-3);
}

TEST_F(Emulation, NeedsNoMemoryForItsCache) {
  EngineConfig large = config();
  large.total_tokens_max = int64_t{1} << 30;
  large.page_size_tokens = 1024;
  auto engine = load_engine(large);
  EXPECT_EQ(engine->info().total_tokens_max, int64_t{1} << 30);
  EXPECT_EQ(engine->info().kernels, "emulated");
}

TEST_F(Emulation, RefusesWhatItCannotDo) {
  auto refused = [](const EngineConfig& config) {
    Status status = config.validate();
    return status ? "" : status.error().message;
  };
  EXPECT_EQ(refused(config()), "");
  EngineConfig unsized = config();
  unsized.total_tokens_max = 0;
  EXPECT_NE(refused(unsized).find("total_tokens_max"), std::string::npos);
  EngineConfig stored = config();
  stored.cache_storage.backend = "disk";
  EXPECT_NE(refused(stored).find("stored prefixes"), std::string::npos);
  EngineConfig drafting = config();
  drafting.drafters = {"ngram"};
  EXPECT_NE(refused(drafting).find("drafters"), std::string::npos);
  EngineConfig counting = config();
  counting.expert_counts = true;
  EXPECT_NE(refused(counting).find("expert counts"), std::string::npos);
  EngineConfig chosen = config();
  chosen.kernels = "portable";
  EXPECT_NE(refused(chosen).find("kernels"), std::string::npos);
  EngineConfig backwards = config();
  backwards.emulated_steps->step_s = -1;
  EXPECT_NE(refused(backwards).find("step_s"), std::string::npos);
}

}  // namespace
}  // namespace banyan::test::emulator_test
