// How a model's states are grouped into classes, and which combinations are refused.
#include "cache/state_classes.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "support/states.h"

namespace banyan::state_classes_test {
namespace {

using test::classes_of;
using test::slot_state;
using test::window_state;

std::string refusal(const std::vector<StateSpec>& specs, int page_size_tokens = 4) {
  auto classes = classify_states(specs, page_size_tokens);
  return classes ? std::string() : classes.error().message;
}

TEST(StateClasses, PagesAloneResumeAnywhere) {
  StateClasses classes =
      classes_of({{.name = "keys", .width = 4}, {.name = "values", .width = 4}}, 64);
  EXPECT_EQ(classes.page_size_tokens, 64);
  EXPECT_EQ(classes.count, 1);
  EXPECT_EQ(describe(classes[kPathClass]), "pages");
  EXPECT_FALSE(classes.keeps_snapshots() || classes.needs_snapshots());
  EXPECT_EQ(classes.resume_alignment_tokens, 1);
  EXPECT_FALSE(classes.prompt_only);
}

TEST(StateClasses, EveryWindowIsAClass) {
  std::vector<StateSpec> specs = {
      window_state(12), {.name = "keys", .width = 4}, window_state(100), window_state(12)};
  StateClasses classes = classes_of(specs, 4);
  ASSERT_EQ(classes.count, 3);
  EXPECT_EQ(describe(classes[1]), "pages of a window of 12 tokens");
  EXPECT_EQ(describe(classes[2]), "pages of a window of 100 tokens");
  EXPECT_EQ(find_class(classes, specs[1]), kPathClass);
  EXPECT_EQ(find_class(classes, specs[3]), 1);
  EXPECT_EQ(classes.resume_alignment_tokens, 1);
  EXPECT_EQ(classes[1].reach_begin(20), 9) << "what position 20 sees besides itself";
  EXPECT_EQ(classes[1].reach_begin(3), 0);
  EXPECT_EQ(classes[kPathClass].reach_begin(20), 0);
  EXPECT_EQ(unit_bytes(specs, classes), (UnitCounts{64, 128, 64}));
}

TEST(StateClasses, SlotsAlignToPagesAndToEveryChunk) {
  EXPECT_EQ(classes_of({slot_state(8)}, 4).resume_alignment_tokens, 8);
  EXPECT_EQ(classes_of({slot_state(8)}, 64).resume_alignment_tokens, 64);
  EXPECT_EQ(classes_of({slot_state(6), slot_state(10)}, 4).resume_alignment_tokens, 60);
  StateClasses one_form = classes_of({slot_state(1)}, 16);
  EXPECT_TRUE(one_form.needs_snapshots());
  EXPECT_EQ(one_form.resume_alignment_tokens, 16);
  EXPECT_FALSE(one_form.prompt_only);
  EXPECT_TRUE(classes_of({slot_state(1), slot_state(1, true)}, 16).prompt_only);
}

TEST(StateClasses, WhatIsAdvisoryOrNeverSharedDecidesNothing) {
  StateClasses classes = classes_of(
      {window_state(7, true), window_state(7), test::advisory_slot_state(), test::own_slot_state()},
      4);
  ASSERT_EQ(classes.count, 5);
  EXPECT_EQ(describe(classes[1]), "advisory pages of a window of 7 tokens");
  EXPECT_EQ(describe(classes[3]), "advisory slots");
  EXPECT_EQ(describe(classes[4]), "slots of a sequence");
  for (int c : {1, 3}) EXPECT_TRUE(!classes[c].decides() && classes[c].has_blank()) << c;
  EXPECT_TRUE(!classes[4].decides() && !classes[4].has_blank());
  for (int c : {0, 2}) EXPECT_TRUE(classes[c].decides() && !classes[c].has_blank()) << c;
  EXPECT_TRUE(classes.keeps_snapshots());
  EXPECT_FALSE(classes.needs_snapshots());
  EXPECT_EQ(classes.resume_alignment_tokens, 1);
  EXPECT_EQ(classes.snapshot_alignment_tokens, 4) << "a snapshot stands at the end of a page";
  StateSpec draft_keys{.name = "draft.keys", .width = 4, .advisory = true};
  EXPECT_EQ(classes_of({draft_keys}, 4).count, 1) << "pages of the path are always there";
}

TEST(StateClasses, TheSmallestLogLimitsTheDraftsOfAStep) {
  EXPECT_FALSE(classes_of({slot_state(), test::own_slot_state()}, 4).logs_drafts());
  StateClasses classes =
      classes_of({slot_state(), test::draft_log_state(7), test::draft_log_state(5)}, 4);
  EXPECT_TRUE(classes.logs_drafts());
  EXPECT_EQ(classes.draft_rows_max, 5);
  EXPECT_EQ(classes_of({test::draft_log_state(0)}, 4).draft_rows_max, 0);
}

TEST(StateClasses, RowsOfSeveralTokensFitThePages) {
  StateSpec sums{.name = "sums", .heads = 2, .width = 3, .tokens_per_row = 8};
  for (auto [page, rows, tokens] : {std::tuple(4, 1, 4), {8, 1, 8}, {32, 4, 8}, {1, 1, 1}}) {
    EXPECT_EQ(refusal({sums}, page), "");
    EXPECT_EQ(sums.rows_per_page(page), rows);
    EXPECT_EQ(sums.tokens_of_row(page), tokens);
    EXPECT_EQ(sums.unit_bytes(page), static_cast<size_t>(2 * 3 * 4 * rows));
  }
  sums.tokens_per_row = 6;
  EXPECT_EQ(refusal({sums}, 4),
            "sums has one row for every 6 tokens, which must divide the page size of 4 or be a "
            "multiple of it; choose another page size");
}

TEST(StateClasses, RefuseWhatIsNotKeptYetByName) {
  StateSpec growing{.name = "a.slot", .unit = StateUnit::kSlot, .width = 4};
  StateSpec own_pages{.name = "a.log", .reach = StateReach::kNone, .width = 4};
  StateSpec ahead{.name = "a.draft", .lookahead_tokens = 1, .width = 4};
  StateSpec narrow = slot_state(), advisory = slot_state(8);
  narrow.dtype = DType::kBF16;
  advisory.advisory = true;
  EXPECT_EQ(refusal({slot_state()}), "");
  EXPECT_EQ(refusal({growing}), "a.slot: this combination of unit and reach is not supported");
  EXPECT_EQ(refusal({own_pages}), "a.log: this combination of unit and reach is not supported");
  EXPECT_EQ(refusal({ahead}), "a.draft: states that look 1 tokens ahead are not supported");
  EXPECT_EQ(refusal({narrow}),
            "slot: recurrent state (slots) of type BF16 is not supported, only F32");
  EXPECT_EQ(refusal({advisory}), "slot: an advisory state must be resumable at any position");
  std::vector<StateSpec> windows;
  for (int tokens = 1; tokens <= kUnitClassesMax; ++tokens) windows.push_back(window_state(tokens));
  EXPECT_EQ(refusal(windows),
            "window: more than 8 classes of state (7 of them windows) are not supported");
}

}  // namespace
}  // namespace banyan::state_classes_test
