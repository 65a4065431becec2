// What a recurrent model's answers leave in the cache, with and without EngineConfig's
// reuse_generated_state.
#include <gtest/gtest.h>

#include "support/drive.h"
#include "support/models/hybrid_model.h"

namespace banyan::test::generated_state_test {
namespace {

constexpr int64_t kAnswerTokens = 30;

struct Conversation {
  Heard first, second;
  int64_t snapshots = 0;
};

// A prompt of 20 tokens, and a second one that goes on from its answer.
Conversation converse(bool reuse, bool radix_cache = true) {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder, {.window = false, .chunk_tokens = 8});
  config.reuse_generated_state = reuse;
  config.radix_cache = radix_cache;
  config.total_tokens_max = 512;
  std::unique_ptr<Engine> engine = load_hybrid_engine(config);
  Conversation c;
  GenerateRequest request{.sampling = {.temperature = 0},
                          .options = {.max_new_tokens = kAnswerTokens}};
  for (TokenId i = 0; i < 20; ++i) request.prompt.push_back(i * 7 % 97);
  c.first = run_alone(*engine, request);
  for (TokenId token : c.first.output_ids()) request.prompt.push_back(token);
  for (TokenId token : {3, 1, 4}) request.prompt.push_back(token);
  request.options.max_new_tokens = 8;
  c.second = run_alone(*engine, request);
  c.snapshots = engine->stats().slots_cached;
  return c;
}

TEST(GeneratedState, TheNextTurnResumesBehindTheLastPromptUnlessAskedOtherwise) {
  EXPECT_EQ(converse(false).second.cached_tokens, 16) << "the last chunk before the prompt's end";
  EXPECT_EQ(converse(true).second.cached_tokens, 48) << "the last chunk of what was computed";
}

TEST(GeneratedState, OfAnAnswerOnlyTheLastSnapshotIsKept) {
  // Before each prompt's end, and one for each answer that reached the end of a chunk.
  EXPECT_EQ(converse(false).snapshots, 2);
  EXPECT_LE(converse(true).snapshots, 4);
}

TEST(GeneratedState, ItIsTheSameUpToRounding) {
  Conversation naive = converse(false, false), reused = converse(true);
  EXPECT_EQ(reused.first.output_logprobs(), naive.first.output_logprobs());
  ASSERT_EQ(reused.second.output_ids(), naive.second.output_ids());
  for (size_t i = 0; i < naive.second.output.size(); ++i) {
    EXPECT_NEAR(reused.second.output[i].logprob, naive.second.output[i].logprob, 1e-4);
  }
}

}  // namespace
}  // namespace banyan::test::generated_state_test
