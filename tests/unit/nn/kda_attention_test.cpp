// The states and weights that Kimi Delta Attention declares. Golden tests check what it computes.
#include "nn/kda_attention.h"

#include <gtest/gtest.h>

#include "kernels/select.h"

namespace banyan::kda_attention_test {
namespace {

constexpr KdaConfig kConfig = {.hidden = 24, .heads = 3, .head_dim = 8, .taps = 4, .eps = 1e-5f};

// What a layer of random weights declares.
std::pair<std::vector<StateSpec>, WeightCounts> declared(const KdaConfig& config) {
  ThreadPool threads(1);
  WeightLoader loader({.kernels = *select_kernels("portable"), .threads = &threads, .dry = true});
  KdaAttention(Builder(loader) / "mixer", config);
  return {loader.take_states(), loader.counts()};
}

TEST(KdaAttention, KeepsItsLastInputsAndOneMatrixPerHead) {
  auto states = declared(kConfig).first;
  ASSERT_EQ(states.size(), 4u);
  EXPECT_EQ(states[0].name, "mixer.convolution");
  EXPECT_EQ(states[0].heads * states[0].width, 3 * 3 * 24);
  EXPECT_EQ(states[0].alignment_tokens, 1);
  EXPECT_FALSE(states[0].two_forms);
  EXPECT_EQ(states[2].name, "mixer.recurrent");
  EXPECT_EQ(states[2].heads, 3);
  EXPECT_EQ(states[2].width, 64);
  EXPECT_EQ(states[2].alignment_tokens, 64);
  EXPECT_TRUE(states[2].two_forms);
  for (size_t i : {0, 2}) {
    EXPECT_EQ(states[i].unit, StateUnit::kSlot);
    EXPECT_EQ(states[i].reach, StateReach::kPoint);
    EXPECT_EQ(states[i].dtype, DType::kF32);
  }
}

TEST(KdaAttention, LogsTheInputsAndUpdatesOfDrafts) {
  auto states = declared(kConfig).first;
  EXPECT_EQ(states[1].name, "mixer.convolution_log");
  EXPECT_EQ(states[1].width, 3 * 24);
  EXPECT_EQ(states[3].name, "mixer.recurrent_log");
  EXPECT_EQ(states[3].width, 3 * (8 + 8 + 8)) << "decays, key and value of each head";
  for (size_t i : {1, 3}) {
    EXPECT_EQ(states[i].reach, StateReach::kNone);
    EXPECT_TRUE(states[i].draft_log);
  }
}

TEST(KdaAttention, CountsTheWeightsOfBothKindsOfGates) {
  constexpr int64_t kShared = 3 * 24 * 24 + 3 * 24 + 3 + 24 + 3 * 24 * 4 + 8 + 24 * 24;
  KdaConfig low_rank = kConfig;
  low_rank.low_rank_gates = true;
  EXPECT_EQ(declared(kConfig).second.parameters_total, kShared + 2 * 24 * 24);
  EXPECT_EQ(declared(low_rank).second.parameters_total, kShared + 2 * (8 * 24 + 24 * 8));
}

}  // namespace
}  // namespace banyan::kda_attention_test
