// Steps that are launched before the previous one is read give the same events.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/padding.h"
#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "kernels/fenced/fenced.h"
#include "support/drive.h"
#include "support/shared.h"
#include "support/stripes.h"

namespace banyan::test::overlap_test {
namespace {

const std::vector<TokenId> kPrompt = {5, 9, 77, 5, 30, 0, 42, 42};

std::unique_ptr<Engine> engine_of(bool overlap, int64_t total_tokens = 256) {
  return load_engine({.model_path = source_path("tests/golden/models/qwen3-tied"),
                      .threads = 1,
                      .page_size_tokens = 4,
                      .total_tokens_max = total_tokens,
                      .running_max = 4,
                      .chunked_prefill_tokens = 8,
                      .overlap_schedule = overlap});
}

GenerateRequest seeded(uint64_t seed, int64_t tokens) {
  return {.prompt = kPrompt, .sampling = {.seed = seed}, .options = {.max_new_tokens = tokens}};
}

TEST(Overlap, LaunchesAllButTheFirstStepAhead) {
  std::unique_ptr<Engine> plain = engine_of(false), overlapping = engine_of(true);
  Heard expected = run_alone(*plain, seeded(1, 20)), heard = run_alone(*overlapping, seeded(1, 20));
  expect_same(heard, expected);
  EXPECT_EQ(heard.output.size(), 20u);
  EXPECT_EQ(plain->stats().steps, overlapping->stats().steps) << "the end by length is foreseen";
  EXPECT_EQ(EngineAssembly::overlapped_steps(*plain), 0);
  EXPECT_EQ(EngineAssembly::overlapped_steps(*overlapping), overlapping->stats().steps - 1);
}

// Step images alternate, so that a step launches what the one before the last did: a GPU launches
// it as one graph. Pages come and go meanwhile.
TEST(Overlap, StepsOfDecodingLaunchTheSameKernelsWithTheSameArguments) {
  if (!BANYAN_CLEARS_PADDING) GTEST_SKIP() << "this compiler cannot clear padding";
  std::unique_ptr<Engine> engine =
      load_engine({.model_path = source_path("tests/golden/models/qwen3-tied"),
                   .kernels = "fenced",
                   .threads = 1,
                   .page_size_tokens = 4,
                   .total_tokens_max = 256,
                   .running_max = 4});
  fenced::Lists before = fenced::lists();
  run_alone(*engine, seeded(1, 60));
  fenced::Lists after = fenced::lists();
  EXPECT_EQ(after.all - before.all, 60u);
  EXPECT_GE(after.repeated - before.repeated, 54u);
}

// The stop token is drawn in a step after which another one is in flight.
TEST(Overlap, ASequenceThatStopsKeepsItsUnitsUntilItsLastStepIsRead) {
  std::unique_ptr<Engine> plain = engine_of(false), overlapping = engine_of(true);
  GenerateRequest request = seeded(2, 30);
  TokenId stop = run_alone(*plain, request).output_ids()[9];
  request.options.stop_token_ids = {stop};
  Heard expected = run_alone(*plain, request), heard;
  EXPECT_EQ(expected.finish, FinishReason::kStop);
  int64_t free_at_end = -1;
  ASSERT_TRUE(overlapping->submit(request, [&](const TokenEvent& event) {
    heard.hear(event);
    if (event.finish == FinishReason::kNone) return;
    EngineStats stats = overlapping->stats();
    free_at_end = stats.pages_total - stats.pages_free - stats.pages_cached;
    EXPECT_EQ(stats.running, 0);
  }));
  while (overlapping->step()) EngineAssembly::scheduler(*overlapping).check();
  expect_same(heard, expected);
  EXPECT_GT(free_at_end, 0) << "pages were free while a step wrote to them";
  EngineStats stats = overlapping->stats();
  EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
  EXPECT_EQ(stats.generated_tokens, static_cast<int64_t>(heard.output.size()));
}

TEST(Overlap, ConstraintsAndPenaltiesWaitForTheirTokens) {
  std::unique_ptr<Engine> plain = engine_of(false), overlapping = engine_of(true);
  GenerateRequest penalised = seeded(3, 20);
  penalised.sampling.frequency_penalty = 0.5f;
  expect_same(run_alone(*overlapping, penalised), run_alone(*plain, penalised));
  GenerateRequest constrained = seeded(4, 20);
  constrained.constraint = std::make_shared<Stripes>(3);
  Heard heard = run_alone(*overlapping, constrained);
  constrained.constraint = std::make_shared<Stripes>(3);
  expect_same(heard, run_alone(*plain, constrained));
  EXPECT_EQ(EngineAssembly::overlapped_steps(*overlapping), 0);
}

TEST(Overlap, ACancelledRequestEndsInTheNextStep) {
  std::unique_ptr<Engine> engine = engine_of(true);
  Heard cancelled, other;
  auto id = engine->submit(seeded(5, 50), hear_into(cancelled));
  ASSERT_TRUE(id && engine->submit(seeded(6, 12), hear_into(other)));
  for (int i = 0; i < 5; ++i) engine->step();
  engine->cancel(*id);
  engine->step();
  EXPECT_EQ(cancelled.finish, FinishReason::kCancelled);
  EXPECT_EQ(cancelled.ends, 1);
  engine->cancel(*id);
  while (engine->step()) EngineAssembly::scheduler(*engine).check();
  expect_same(other, run_alone(*engine_of(false), seeded(6, 12)));
}

// Retracted while the step that draws its next token is in flight.
TEST(Overlap, RetractedSequencesGoOnWithWhatWasDrawn) {
  std::unique_ptr<Engine> engine = engine_of(true, 64), naive = engine_of(false);
  std::vector<Heard> heard(4);
  for (size_t i = 0; i < heard.size(); ++i) {
    ASSERT_TRUE(engine->submit(seeded(10 + i, 40), hear_into(heard[i])));
  }
  while (engine->step()) EngineAssembly::scheduler(*engine).check();
  EXPECT_GT(engine->stats().retracted, 0);
  EXPECT_GT(EngineAssembly::overlapped_steps(*engine), 40);
  for (size_t i = 0; i < heard.size(); ++i) {
    expect_same(heard[i], run_alone(*naive, seeded(10 + i, 40)));
  }
}

}  // namespace
}  // namespace banyan::test::overlap_test
