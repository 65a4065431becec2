// Steps that are launched before the drafts of the one before them are verified give the same
// events.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/padding.h"
#include "engine/assemble.h"
#include "engine/schedule/scheduler.h"
#include "kernels/fenced/fenced.h"
#include "support/chance.h"
#include "support/drive.h"
#include "support/models/checkpoint_copy.h"
#include "support/models/eagle3_head.h"
#include "support/models/grown_checkpoint.h"
#include "support/shared.h"

namespace banyan::test::following_test {
namespace {

// The trained layer, most of whose drafts are accepted.
EngineConfig nano(int steps, const std::string& kernels = "auto") {
  EngineConfig config{.model_path = source_path("models/banyan-nano"),
                      .kernels = kernels,
                      .threads = 1,
                      .page_size_tokens = 16,
                      .total_tokens_max = 2048,
                      .running_max = 4,
                      .chunked_prefill_tokens = 64,
                      .draft_tokens_max = 3,
                      .measure_drafts = false};
  if (steps > 0) config.drafters = {"mtp"};
  config.scheduler_steps = std::max(steps, 1);
  return config;
}

// Text that the model writes well.
GenerateRequest copying(float temperature, uint32_t sample) {
  std::vector<TokenId> prompt = {3, 400, 5, 2178, 20, 1162, 20, 1061, 20, 1608, 20, 1886, 2, 4};
  for (TokenId t = 0; t < 90; ++t) prompt.push_back(2178 - t % 7);
  prompt.resize(prompt.size() - sample * 11);  // the beginning is shared
  return {.prompt = prompt,
          .sampling = {.temperature = temperature, .seed = 7, .sample_index = sample},
          .options = {.max_new_tokens = 32, .min_new_tokens = 0, .top_logprobs = 2}};
}

std::vector<GenerateRequest> copying_requests(float temperature) {
  std::vector<GenerateRequest> requests;
  for (uint32_t i = 0; i < 6; ++i) requests.push_back(copying(temperature, i));
  requests[1].sampling.logit_bias = {{2900, 1.f}, {7, 2.f}};
  requests[2].options.draft_tokens_max = 1;
  requests[4].sampling.frequency_penalty = 0.5f;  // no step follows one of it unread
  requests[4].options.max_new_tokens = 8;
  return requests;
}

// The fenced table computes the portable one's bits, but late.
TEST(Following, ChangesNothingThatATrainedLayerDrafts) {
  auto plain = load_engine(nano(0, "portable"));
  for (float temperature : {0.f, 0.9f}) {
    std::vector<GenerateRequest> requests = copying_requests(temperature);
    std::vector<Heard> expected;
    for (const GenerateRequest& request : requests) expected.push_back(run_alone(*plain, request));
    for (const auto& [steps, kernels] : {std::pair(2, "portable"), {5, "fenced"}}) {
      auto following = load_engine(nano(steps, kernels));
      std::vector<Heard> heard(requests.size());
      for (size_t i = 0; i < heard.size(); ++i) {
        ASSERT_TRUE(following->submit(requests[i], hear_into(heard[i])));
      }
      while (following->step()) EngineAssembly::scheduler(*following).check();
      for (size_t i = 0; i < heard.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} steps, {}, temperature {}, request {}", steps, kernels,
                                 temperature, i));
        expect_same(heard[i], expected[i]);
      }
      EngineStats stats = following->stats();
      EXPECT_GT(stats.accepted_draft_tokens * 3, stats.draft_tokens);
      EXPECT_GT(EngineAssembly::overlapped_steps(*following), 10);
      EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
    }
  }
}

// Random weights predict little, so nearly all is rejected, and sequences go on at many places of
// a step. Recurrent states replay what was accepted.
TEST(Following, ChangesNothingWhateverTheFamily) {
  for (const char* model :
       {"deepseek-v3", "longcat-flash", "ling3-tiny", "glm4-moe", "qwen3-next", "qwen3-5"}) {
    CheckpointCopy checkpoint(model);
    checkpoint.config["num_nextn_predict_layers"] = 1;
    TemporaryFolder folder;
    checkpoint.save(folder);
    EngineConfig config{.model_path = folder.path(),
                        .kernels = "portable",
                        .load_format = "dummy",
                        .threads = 1,
                        .page_size_tokens = 4,
                        .total_tokens_max = 256,
                        .running_max = 4,
                        .chunked_prefill_tokens = 64,
                        .snapshot_interval_tokens = 64,
                        .draft_tokens_max = 3,
                        .measure_drafts = false};
    auto plain = load_engine(config);
    config.drafters = {"mtp"};
    config.scheduler_steps = 4;
    for (const char* kernels : {"portable", "fenced"}) {
      config.kernels = kernels;
      auto following = load_engine(config);
      std::vector<GenerateRequest> requests;
      std::vector<Heard> heard(6);  // more than fit, so that some are retracted
      for (uint32_t i = 0; i < heard.size(); ++i) {
        requests.push_back({.prompt = {5, 9, 77, 5, 30, 0, 42, 42},
                            .sampling = {.temperature = i % 2 == 0 ? 0.f : 0.7f, .seed = i},
                            .options = {.max_new_tokens = 60}});
        // Few tokens are likely, so that some drafts are right.
        if (i > 2) requests[i].sampling.logit_bias = {{3, 30.f}, {8, 30.f}, {11, 30.f}};
        ASSERT_TRUE(following->submit(requests[i], hear_into(heard[i])));
      }
      while (following->step()) EngineAssembly::scheduler(*following).check();
      for (size_t i = 0; i < heard.size(); ++i) {
        SCOPED_TRACE(fmt::format("{}, {}, request {}", model, kernels, i));
        expect_same(heard[i], run_alone(*plain, requests[i]));
      }
      EXPECT_GT(EngineAssembly::overlapped_steps(*following), 10) << model;
    }
  }
}

TEST(Following, ChangesNothingThatAHeadDrafts) {
  for (const char* model : {"qwen3-moe", "gemma3", "gpt-oss", "llama4"}) {
    EngineConfig config{.model_path = golden_folder(model),
                        .kernels = "fenced",
                        .load_format = "dummy",
                        .threads = 1,
                        .page_size_tokens = 4,
                        .total_tokens_max = 256,
                        .running_max = 4,
                        .chunked_prefill_tokens = 16,
                        .draft_tokens_max = 4,
                        .measure_drafts = false};
    auto plain = load_engine(config);
    config.drafters = {"eagle3"};
    config.draft_model_path = random_head_folder(model);
    config.scheduler_steps = 3;
    auto loaded = Engine::load(config);
    if (std::string(model) == "llama4") {  // whose chunks the host divides
      ASSERT_FALSE(loaded);
      EXPECT_NE(loaded.error().message.find("in chunks or blocks"), std::string::npos);
      continue;
    }
    auto following = std::move(*loaded);
    for (uint64_t seed = 1; seed < 4; ++seed) {
      GenerateRequest request{.prompt = {5, 9, 37, 5, 30, 0, 12, 42, 1, 1, 7, 16, 40, 22},
                              .sampling = {.temperature = 0.7f, .seed = seed},
                              .options = {.max_new_tokens = 48}};
      request.sampling.logit_bias = {{3, 30.f}, {8, 30.f}, {11, 30.f}};
      expect_same(run_alone(*following, request), run_alone(*plain, request));
    }
    EXPECT_GT(EngineAssembly::overlapped_steps(*following), 20) << model;
  }
}

// A GPU launches drafts, verification and the next step as one graph (document 004's TVD fusing).
TEST(Following, LaunchesAStepAsOneList) {
  if (!BANYAN_CLEARS_PADDING) GTEST_SKIP() << "this compiler cannot clear padding";
  auto following = load_engine(nano(4, "fenced"));
  GenerateRequest request = copying(0, 0);
  request.options.max_new_tokens = 110;
  Heard heard;
  ASSERT_TRUE(following->submit(request, hear_into(heard)));
  int64_t steps = 0, unread = 0;
  uint64_t checked = 0, repeated = 0;
  fenced::Lists lists = {};
  while (following->step()) {
    fenced::Lists now = fenced::lists();
    int64_t followed = EngineAssembly::overlapped_steps(*following) - unread;
    unread += followed;
    // While steps follow each other, one is launched and one is read.
    if (followed == 1 && steps++ > 0) {
      EXPECT_EQ(now.all - lists.all, 1u);
      repeated += now.repeated - lists.repeated;
      ++checked;
    }
    if (followed != 1) steps = 0;
    lists = now;
  }
  EXPECT_GT(checked, 12u);
  EXPECT_GT(2 * repeated, checked) << "a GPU makes graphs of lists that come again";
}

// n steps of K drafts need pages for (K + 1) n tokens after the last known one, whatever was
// accepted before; document 004 reserves up to (2 K + 1) n.
TEST(Following, ReservesWhatTheStepsInFlightCanAccept) {
  constexpr int64_t kSteps = 4, kDrafts = 3;
  EngineConfig config = nano(kSteps);
  config.page_size_tokens = 1;
  auto following = load_engine(config);
  Heard heard;
  GenerateRequest request = copying(0, 0);
  request.options.max_new_tokens = 120;
  ASSERT_TRUE(following->submit(request, hear_into(heard)));
  int64_t most = 0, full = 0;
  while (following->step()) {
    const Sequence* s = EngineAssembly::scheduler(*following).any();
    if (s == nullptr) break;
    int64_t reserved = s->pages() - s->computed;
    EXPECT_LE(reserved, (kDrafts + 1) * kSteps);
    most = std::max(most, reserved);
    full += reserved >= (kDrafts + 1) * (kSteps - 1) ? 1 : 0;
  }
  EXPECT_GE(most, (kDrafts + 1) * (kSteps - 1)) << "of steps that are in flight after one is read";
  EXPECT_GT(full, 10);
}

TEST(Following, StepsEndWithASequenceThatStopsOrIsCancelled) {
  auto plain = load_engine(nano(0)), following = load_engine(nano(4));
  GenerateRequest request = copying(0.9f, 0), other = copying(0.9f, 1);
  request.options.stop_token_ids = {run_alone(*plain, request).output_ids()[17]};
  Heard expected = run_alone(*plain, request), stopped, cancelled, rest;
  ASSERT_EQ(expected.finish, FinishReason::kStop);
  ASSERT_TRUE(following->submit(request, hear_into(stopped)));
  auto id = following->submit(copying(0, 2), hear_into(cancelled));
  ASSERT_TRUE(id && following->submit(other, hear_into(rest)));
  for (int i = 0; i < 6; ++i) following->step();
  following->cancel(*id);
  following->step();
  EXPECT_EQ(cancelled.finish, FinishReason::kCancelled);
  while (following->step()) EngineAssembly::scheduler(*following).check();
  expect_same(stopped, expected);
  expect_same(rest, run_alone(*plain, other));
  EXPECT_EQ(cancelled.ends, 1);
  EngineStats stats = following->stats();
  EXPECT_EQ(stats.pages_free + stats.pages_cached, stats.pages_total);
}

// The last row of a prompt that is only scored draws nothing.
TEST(Following, NothingFollowsARequestThatDrawsNothing) {
  auto plain = load_engine(nano(0)), following = load_engine(nano(4));
  GenerateRequest scored = copying(0, 3);
  scored.options.max_new_tokens = 0;
  scored.options.prompt_logprobs_begin = 1;
  // Chunks of 64 leave its last token to a step of its own.
  scored.prompt.resize(65);
  GenerateRequest other = copying(0, 0);
  Heard heard, rest;
  ASSERT_TRUE(following->submit(other, hear_into(rest)));
  for (int i = 0; i < 8; ++i) following->step();
  ASSERT_TRUE(following->submit(scored, hear_into(heard)));
  while (following->step()) EngineAssembly::scheduler(*following).check();
  expect_same(rest, run_alone(*plain, other));
  EXPECT_TRUE(same_bits(heard.prompt_logprobs(), run_alone(*plain, scored).prompt_logprobs()));
  EXPECT_EQ(heard.ends, 1);
}

TEST(Following, IsRefusedWhereNoDrafterCan) {
  EngineConfig config = nano(4);
  config.drafters = {"ngram"};
  auto engine = Engine::load(config);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("scheduler_steps is 4"), std::string::npos);
  config.scheduler_steps = 17;
  EXPECT_FALSE(Engine::load(config));
}

}  // namespace
}  // namespace banyan::test::following_test
