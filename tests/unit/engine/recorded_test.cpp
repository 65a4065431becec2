// Outputs that are recorded: drawn whatever the logits are, and unknown to drafters.
#include <gtest/gtest.h>

#include "engine/assemble.h"
#include "support/drive.h"
#include "support/shared.h"

namespace banyan::test::recorded_test {
namespace {

using Tokens = std::vector<TokenId>;

const Tokens kPrompt = {5, 9, 77, 5, 30, 0, 42, 42};
// It repeats the prompt's beginning, then goes its own way.
const Tokens kRecorded = {5, 9, 77, 5, 30, 0, 42, 1, 2, 3, 17, 5, 9, 77, 5, 30, 0, 42, 42, 5, 9};

EngineConfig config_of(Tokens::size_type tokens, std::vector<std::string> drafters) {
  EngineConfig config{.model_path = source_path("tests/golden/models/qwen3-tied"),
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = 512,
                      .running_max = 4,
                      .chunked_prefill_tokens = 64,
                      .draft_tokens_max = static_cast<int>(tokens),
                      .drafters = std::move(drafters),
                      .measure_drafts = false};
  if (config.drafters == std::vector<std::string>{"draft"}) {
    config.draft_model_path = config.model_path;
  }
  return config;
}

GenerateRequest request(int64_t new_tokens) {
  return {.prompt = kPrompt,
          .sampling = {.temperature = 0},
          .options = {.max_new_tokens = new_tokens, .ignore_eos = true}};
}

Heard run_recorded(Engine& engine, const GenerateRequest& request, const Tokens& recorded) {
  Heard heard;
  auto id = EngineAssembly::submit_recorded(engine, request, hear_into(heard), recorded);
  EXPECT_TRUE(id.has_value());
  while (engine.step()) {
  }
  return heard;
}

TEST(Recorded, IsDrawnWithItsOwnProbabilities) {
  auto engine = load_engine(config_of(0, {}));
  auto tokens = std::ssize(kRecorded);
  Heard heard = run_recorded(*engine, request(tokens), kRecorded);
  EXPECT_EQ(heard.output_ids(), kRecorded);
  GenerateRequest scored = request(0);
  scored.prompt.insert(scored.prompt.end(), kRecorded.begin(), kRecorded.end());
  scored.options.prompt_logprobs_begin = std::ssize(kPrompt);
  engine->flush_cache();
  EXPECT_TRUE(same_bits(heard.output_logprobs(), run_alone(*engine, scored).prompt_logprobs()));
}

TEST(Recorded, IsContinuedByTheModel) {
  auto engine = load_engine(config_of(0, {}));
  GenerateRequest resumed = request(9);
  resumed.resume_tokens = {1, 2, 3};
  Tokens output = run_recorded(*engine, request(9), {1, 2, 3}).output_ids();
  ASSERT_EQ(output.size(), 9u);
  EXPECT_EQ(Tokens(output.begin() + 3, output.end()), run_alone(*engine, resumed).output_ids());
}

TEST(Recorded, TokensOutsideTheVocabularyAreRefused) {
  auto engine = load_engine(config_of(0, {}));
  auto id = EngineAssembly::submit_recorded(*engine, request(4), [](const auto&) {}, {1, 1 << 30});
  ASSERT_FALSE(id.has_value());
  EXPECT_NE(id.error().message.find("1073741824"), std::string::npos) << id.error().message;
}

TEST(Recorded, DraftsSaveStepsAndChangeNothing) {
  auto plain = load_engine(config_of(0, {})), drafting = load_engine(config_of(8, {"ngram"}));
  GenerateRequest all = request(std::ssize(kRecorded));
  Heard with = run_recorded(*drafting, all, kRecorded);
  Heard without = run_recorded(*plain, all, kRecorded);
  EXPECT_EQ(with.output_ids(), without.output_ids());
  EXPECT_TRUE(same_bits(with.output_logprobs(), without.output_logprobs()));
  EXPECT_EQ(plain->stats().steps, std::ssize(kRecorded));
  EXPECT_GT(drafting->stats().accepted_draft_tokens, 8);
  EXPECT_LT(drafting->stats().steps, std::ssize(kRecorded) - 8);
}

TEST(Recorded, DraftsOfAModelAreRightAsOftenAsIsAskedFor) {
  for (double rate : {0.0, 0.5, 1.0}) {
    auto engine = load_engine(config_of(3, {"draft"}));
    EngineAssembly::emulate_acceptance(*engine, rate);
    Tokens recorded;
    for (TokenId t = 0; t < 200; ++t) recorded.push_back((t * 37 + 11) % 90);
    Heard heard = run_recorded(*engine, request(200), recorded);
    EXPECT_EQ(heard.output_ids(), recorded);
    EngineStats stats = engine->stats();
    int64_t least = rate == 1 ? stats.draft_tokens : rate == 0 ? 0 : 40;
    int64_t most = rate == 1 ? stats.draft_tokens : rate == 0 ? 0 : stats.draft_tokens - 20;
    EXPECT_GE(stats.accepted_draft_tokens, least) << rate;
    EXPECT_LE(stats.accepted_draft_tokens, most) << rate;
  }
}

}  // namespace
}  // namespace banyan::test::recorded_test
