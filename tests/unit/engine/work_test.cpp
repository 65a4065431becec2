// The cost model of prefill and decode steps, against figures computed by hand.
#include "engine/work.h"

#include <gtest/gtest.h>

namespace banyan::work_test {
namespace {

constexpr auto kF32 = static_cast<size_t>(Operand::kF32);
constexpr auto kBF16 = static_cast<size_t>(Operand::kBF16);
constexpr auto kInt8 = static_cast<size_t>(Operand::kInt8);

// A head and an embedding of 10 x 8 in bf16, layers of int4 with 500 parameters, and 12 values.
EngineInfo dense() {
  EngineInfo info;
  info.vocabulary = 10;
  info.hidden = 8;
  info.parameters_active = 80 + 500 + 12;
  info.weights = {{.matrices = 1, .format = "bf16", .share = 0, .parameters = 80, .bytes = 160},
                  {.matrices = 4, .format = "int4", .parameters = 500, .bytes = 280},
                  {.matrices = 1, .format = "bf16", .parameters = 80, .bytes = 160}};
  info.weight_bytes_streamed = 280 + 160 + 48;
  info.attention_flops_per_key = 6;
  info.state_bytes_per_token = 20;
  info.state_format = "bf16";
  return info;
}

TEST(Work, OnlyTheLastTokenOfAPromptReachesTheHead) {
  Work work = prompt_work(dense(), 2, 5);
  EXPECT_EQ(work.operations[kF32], 0);
  EXPECT_EQ(work.operations[kInt8], 2 * 500 * 10);
  double attention = 2 * 6 * (1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(work.operations[kBF16], 2 * 80 * 2 + 2 * 12 * 10 + attention);
  EXPECT_EQ(work.bytes, 488);
}

TEST(Work, APromptMayTakeAnotherFormOfAttention) {
  EngineInfo info = dense();
  info.prompt_attention_flops_per_key = 2;
  double saved = (6 - 2) * (1 + 2 + 3 + 4 + 5);
  EXPECT_EQ(prompt_work(info, 1, 5).operations[kBF16],
            prompt_work(dense(), 1, 5).operations[kBF16] - saved);
  EXPECT_EQ(decode_work(info, 3, 7).all_operations(), decode_work(dense(), 3, 7).all_operations());
}

TEST(Work, ADecodeStepReadsWeightsOnceAndStatesForEachSequence) {
  Work work = decode_work(dense(), 3, 7);
  EXPECT_EQ(work.bytes, 488 + 3 * 7 * 20);
  EXPECT_EQ(work.all_operations(), 3 * (2 * (80 + 500 + 12) + 6 * 7));
}

TEST(Work, AWindowBoundsWhatIsSeenAndAStateIsReadAndWritten) {
  EngineInfo info = dense();
  info.state_bytes_per_window_token = 10;  // half of the layers
  info.window_tokens = 4;
  info.state_bytes_per_sequence = 100;
  EXPECT_EQ(decode_work(info, 1, 8).bytes, 488 + 10 * 8 + 10 * 4 + 200);
  EXPECT_EQ(decode_work(info, 1, 2).bytes, 488 + 20 * 2 + 200);
  double keys = 1 + 2 + 3 + 4 + (5 + 4) / 2.0 + (6 + 4) / 2.0;
  EXPECT_EQ(prompt_work(info, 1, 6).operations[kBF16], 2 * 80 + 2 * 12 * 6 + 6 * keys);
}

TEST(Work, AChoiceOfKeysBoundsWhatIsSeenAndItsIndexIsRead) {
  EngineInfo info = dense();
  info.selected_flops_per_key = 3;  // of half of the layers
  info.selected_keys = 4;
  info.index_bytes_per_token = 2;
  info.index_bytes_per_key = 0.5;
  info.index_flops_per_key = 0.25;
  EXPECT_EQ(decode_work(info, 1, 8).bytes, 488 + 18 * (8 + 4) / 2 + 8 * 0.5);
  EXPECT_EQ(decode_work(info, 1, 4).bytes, 488 + 18 * 4);
  EXPECT_EQ(decode_work(info, 1, 8).operations[kF32], 8 * 0.25);
  double keys = 1 + 2 + 3 + 4 + (5 + 4) / 2.0 + (6 + 4) / 2.0;
  EXPECT_EQ(prompt_work(info, 1, 6).operations[kBF16], 2 * 80 + 2 * 12 * 6 + 6 * keys);
}

TEST(Work, ExpertsAreReadOnceForAllTokensThatMeetThem) {
  EngineInfo info = dense();
  info.weights.push_back(
      {.matrices = 8, .format = "int8", .share = 0.25, .parameters = 800, .bytes = 880});
  info.weight_bytes_streamed += 220;
  info.parameters_active += 200;
  EXPECT_EQ(decode_work(info, 1, 1).bytes, 488 + 220 + 20);
  EXPECT_EQ(decode_work(info, 2, 1).bytes, 488 + 880 * (1 - 0.75 * 0.75) + 40);
  EXPECT_EQ(decode_work(info, 2, 1).operations[kInt8], 2 * 2 * (500 + 200));
}

TEST(Work, TakesTheTimeOfAllItsOperations) {
  Work work{.operations = {6, 8, 10}};
  EXPECT_EQ(work.seconds({1, 2, 5}), 6 + 4 + 2);
}

}  // namespace
}  // namespace banyan::work_test
