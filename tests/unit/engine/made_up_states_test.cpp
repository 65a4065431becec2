// Kinds of states that no family has yet, in an engine: where they can be resumed, and what missing
// ones read as.
#include <gtest/gtest.h>

#include "support/drive.h"
#include "support/models/hybrid_model.h"
#include "support/models/made_up_mixers.h"

namespace banyan::test::made_up_states_test {
namespace {

EngineConfig config_of(const TemporaryFolder& folder, bool block_means, bool notes) {
  EngineConfig config = hybrid_config(folder, {.window = false,
                                               .lightning = false,
                                               .delta = false,
                                               .block_means = block_means,
                                               .notes = notes});
  config.total_tokens_max = 512;
  return config;
}

GenerateRequest request_of(int64_t shared, TokenId own) {
  GenerateRequest request;
  request.sampling.temperature = 0;
  request.options.max_new_tokens = 12;
  for (TokenId i = 0; i < 20; ++i) request.prompt.push_back(i < shared ? i * 7 % 97 : own + i);
  return request;
}

// Runs a request after one that begins with the same `shared` tokens, and without any cache.
void expect_naive_run(EngineConfig config, int64_t shared) {
  std::unique_ptr<Engine> engine = load_hybrid_engine(config);
  config.radix_cache = false;
  std::unique_ptr<Engine> naive_engine = load_hybrid_engine(config);
  run_alone(*engine, request_of(shared, 30));
  Heard resumed = run_alone(*engine, request_of(shared, 60));
  Heard naive = run_alone(*naive_engine, request_of(shared, 60));
  EXPECT_EQ(resumed.cached_tokens, shared);
  EXPECT_EQ(resumed.output_ids(), naive.output_ids());
  EXPECT_EQ(resumed.output_logprobs(), naive.output_logprobs());
}

// A row of four tokens, of which the first ones are copied with their page and the others are of
// somebody else.
TEST(MadeUpStates, ASequenceResumesInTheMiddleOfARow) {
  for (int page_size : {1, 2, 4, 16, 64}) {
    for (int64_t shared : {3, 5, 6, 7, 8, 13, 18}) {
      SCOPED_TRACE(testing::Message() << shared << " tokens, pages of " << page_size);
      TemporaryFolder folder;
      EngineConfig config = config_of(folder, true, false);
      config.page_size_tokens = page_size;
      expect_naive_run(config, shared);
    }
  }
}

// Between two snapshots there is none to resume from: an advisory state starts as zeros.
TEST(MadeUpStates, ASequenceResumesWhereAnAdvisoryStateIsMissing) {
  TemporaryFolder folder;
  int64_t missing = Notes::missing_slots;
  expect_naive_run(config_of(folder, false, true), 13);
  EXPECT_GT(Notes::missing_slots, missing);
}

}  // namespace
}  // namespace banyan::test::made_up_states_test
