#include "cache/state_classes.h"

#include <gtest/gtest.h>

#include <vector>

namespace banyan {
namespace {

StateSpec slot(int alignment, bool two_forms = true) {
  return {.name = "slot",
          .unit = StateUnit::kSlot,
          .reach = StateReach::kPoint,
          .width = 4,
          .alignment_tokens = alignment,
          .two_forms = two_forms};
}

StateSpec window(int tokens) {
  return {.name = "window", .reach = StateReach::kWindow, .window_tokens = tokens, .width = 4};
}

TEST(StateClasses, PagesAloneResumeAnywhere) {
  std::vector<StateSpec> specs = {{.name = "keys", .width = 4}, {.name = "values", .width = 4}};
  StateClasses classes = classify_states(specs, 64);
  EXPECT_EQ(classes.page_size_tokens, 64);
  EXPECT_EQ(classes.window_tokens, 0);
  EXPECT_FALSE(classes.recurrent);
  EXPECT_EQ(classes.resume_alignment_tokens, 1);
  EXPECT_FALSE(classes.prompt_only);
}

TEST(StateClasses, TheLongestWindowCounts) {
  std::vector<StateSpec> specs = {window(12), {.name = "keys", .width = 4}, window(100), window(7)};
  EXPECT_EQ(classify_states(specs, 4).window_tokens, 100);
  EXPECT_EQ(classify_states(specs, 4).resume_alignment_tokens, 1);
}

TEST(StateClasses, SlotsAlignToPagesAndToEveryChunk) {
  EXPECT_EQ(classify_states(std::vector{slot(8)}, 4).resume_alignment_tokens, 8);
  EXPECT_EQ(classify_states(std::vector{slot(8)}, 64).resume_alignment_tokens, 64);
  EXPECT_EQ(classify_states(std::vector{slot(6), slot(10)}, 4).resume_alignment_tokens, 60);
  StateClasses one_form = classify_states(std::vector{slot(1, false)}, 16);
  EXPECT_TRUE(one_form.recurrent);
  EXPECT_EQ(one_form.resume_alignment_tokens, 16);
  EXPECT_FALSE(one_form.prompt_only);
  EXPECT_TRUE(classify_states(std::vector{slot(1, false), slot(1)}, 16).prompt_only);
}

}  // namespace
}  // namespace banyan
