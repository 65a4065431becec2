// GenerateRequest::resume_tokens: a run that another engine takes over after any token continues
// with the bits of an uninterrupted one.
#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "support/drive.h"
#include "support/models/hybrid_model.h"
#include "support/shared.h"
#include "support/stripes.h"

namespace banyan::test::resume_test {
namespace {

const std::vector<TokenId> kPrompt = {5, 9, 77, 5, 30, 0, 42, 42, 5, 9, 77};
constexpr int64_t kTokens = 24;

EngineConfig dense_config() {
  return {.model_path = source_path("tests/golden/models/qwen3-tied"),
          .threads = 1,
          .page_size_tokens = 4,
          .total_tokens_max = 256,
          .running_max = 4,
          .chunked_prefill_tokens = 8};
}

GenerateRequest drawn_at_random(uint64_t seed) {
  return {.prompt = kPrompt,
          .sampling = {.seed = seed, .sample_index = static_cast<uint32_t>(seed % 3)},
          .options = {.max_new_tokens = kTokens, .top_logprobs = 3}};
}

GenerateRequest with_penalties(uint64_t seed) {
  GenerateRequest request = drawn_at_random(seed);
  request.sampling.frequency_penalty = 0.7f;
  request.sampling.presence_penalty = 0.3f;
  request.sampling.repetition_penalty = 1.2f;
  request.sampling.dry_multiplier = 0.8f;
  request.options.min_new_tokens = 12;
  request.options.stop_token_ids = {7, 11};
  return request;
}

// `begun` is what was heard before the cut.
void expect_continued(const Heard& whole, size_t begun, const Heard& rest) {
  ASSERT_EQ(rest.output.size() + begun, whole.output.size());
  for (size_t i = 0; i < rest.output.size(); ++i) {
    const Heard::Token &a = whole.output[begun + i], &b = rest.output[i];
    EXPECT_EQ(a.position, b.position);
    EXPECT_EQ(a.token, b.token) << "token " << begun + i << " after " << begun;
    EXPECT_EQ(std::bit_cast<uint32_t>(a.logprob), std::bit_cast<uint32_t>(b.logprob));
    ASSERT_EQ(a.top.size(), b.top.size());
    for (size_t t = 0; t < a.top.size(); ++t) EXPECT_EQ(a.top[t].token, b.top[t].token);
  }
  EXPECT_EQ(rest.finish, whole.finish);
  EXPECT_EQ(rest.matched_stop, whole.matched_stop);
  EXPECT_EQ(rest.ends, 1);
}

// Each of the requests, cut after every token of its output.
void expect_survives(Engine& first, Engine& second, const std::function<GenerateRequest()>& make) {
  Heard whole = run_alone(first, make());
  ASSERT_GT(whole.output.size(), 4u);
  std::vector<TokenId> ids = whole.output_ids();
  for (size_t n = 1; n < ids.size(); ++n) {
    if (n % 3 == 0) second.flush_cache();  // else the pages of earlier cuts are there
    GenerateRequest request = make();
    request.resume_tokens.assign(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(n));
    expect_continued(whole, n, run_alone(second, request));
  }
}

TEST(Resume, DrawsAndPenaltiesGoOnWhereTheyWere) {
  auto first = load_engine(dense_config()), second = load_engine(dense_config());
  for (uint64_t seed = 1; seed < 5; ++seed) {
    expect_survives(*first, *second, [&] { return drawn_at_random(seed); });
    expect_survives(*first, *second, [&] { return with_penalties(seed); });
    expect_survives(*first, *second, [&] {
      GenerateRequest request = with_penalties(seed);
      request.sampling.repeat_last_n = 5;
      return request;
    });
  }
}

TEST(Resume, AConstraintAcceptsWhatWasWritten) {
  auto first = load_engine(dense_config()), second = load_engine(dense_config());
  expect_survives(*first, *second, [] {
    GenerateRequest request = with_penalties(3);
    request.constraint = std::make_shared<Stripes>(5);
    return request;
  });
}

// Positions after the prompt use the decode form, whatever span they are in.
TEST(Resume, AHybridKeepsTheBoundaryOfThePrompt) {
  TemporaryFolder folder;
  EngineConfig config = hybrid_config(folder, {.context_tokens = 512});
  config.total_tokens_max = 1024;
  auto first = load_hybrid_engine(config), second = load_hybrid_engine(config);
  for (uint64_t seed = 1; seed < 4; ++seed) {
    expect_survives(*first, *second, [&] { return with_penalties(seed); });
  }
}

TEST(Resume, RefusesAnOutputThatHasEnded) {
  auto engine = load_engine(dense_config());
  GenerateRequest request = drawn_at_random(1);
  request.resume_tokens.assign(kTokens, 3);
  Heard heard;
  auto long_enough = engine->submit(request, hear_into(heard));
  ASSERT_FALSE(long_enough);
  EXPECT_NE(long_enough.error().message.find("resume_tokens: 24 tokens"), std::string::npos);
  request.resume_tokens = {3, 7, 4};
  request.options.stop_token_ids = {7};
  auto stopped = engine->submit(request, hear_into(heard));
  ASSERT_FALSE(stopped);
  EXPECT_NE(stopped.error().message.find("token 7 is a stop token"), std::string::npos);
  request.resume_tokens = {1 << 20};
  request.options.stop_token_ids = {};
  EXPECT_FALSE(engine->submit(request, hear_into(heard)));
}

}  // namespace
}  // namespace banyan::test::resume_test
