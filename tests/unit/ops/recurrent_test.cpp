// The spans, slots and drafts that recurrent ops accept and refuse.
#include "ops/recurrent.h"

#include <gtest/gtest.h>

#include <functional>

#include "kernels/select.h"

namespace banyan::recurrent_test {
namespace {

constexpr size_t kSlots = 1, kLogs = 2;  // their classes
constexpr LinearAttentionShape kShape = {.heads = 2, .key_dim = 3, .value_dim = 5};

// Runs the op over `rows` rows from position `first` of a prompt of `prompt`, in chunks of 4 and
// two slots, after `change`.
void run(int first, int rows, int prompt, const std::function<void(Batch&)>& change = {}) {
  StateSpec spec{.name = "recurrent",
                 .unit = StateUnit::kSlot,
                 .reach = StateReach::kPoint,
                 .heads = 2,
                 .width = 15,
                 .alignment_tokens = 4};
  StateSpec log{.name = "log",
                .unit = StateUnit::kSlot,
                .reach = StateReach::kNone,
                .heads = 2,
                .width = 2 * update_width(0, 3, 5),
                .draft_log = true};
  StatePools pools = *StatePools::create({spec, log}, 4, {0, 2, 1});
  Batch batch;
  batch.tokens.resize(static_cast<size_t>(rows));
  batch.spans = {{.row_begin = 0, .row_count = rows, .first_position = first}};
  batch.tables[kSlots].units = {1};
  batch.tables[kLogs].units = {0};
  batch.prompt_tokens = {prompt};
  if (change) change(batch);
  Arena arena(1 << 16);
  StepImage image(host_queue());
  Step s{.kernels = **select_kernels("portable"),
         .launch = {},
         .arena = arena,
         .pools = pools,
         .batch = batch,
         .inputs = image.load(batch),
         .auxiliary_layers = {}};
  Tensor q = s.allocate({rows, 6}), v = s.allocate({rows, 10}), log_decay = s.allocate({2});
  std::fill_n(q.f32(), q.count(), 1.0f);
  std::fill_n(v.f32(), v.count(), 1.0f);
  std::fill_n(log_decay.f32(), 2, 0.0f);
  Tensor out = linear_attention(s, q, q, v, log_decay, {.state = 0, .log = 1}, kShape);
  // Without decay, every position before adds one unit per key.
  EXPECT_EQ(out.f32()[0], first == 0 ? 3 : 0);
  EXPECT_EQ(out.f32()[out.count() - 1], 3.0f * static_cast<float>(rows));
}

TEST(LinearAttentionOp, TakesSpansWhoseFormsBeginAndEndWhereTheyMay) {
  run(0, 8, 20);
  run(0, 9, 9);
  run(0, 11, 9);
  run(0, 7, 0);
  run(0, 8, 8, [](Batch& b) { b.tables[kSlots].captures = {{0, 3, 0}, {0, 7, 0}}; });
  run(0, 8, 4, [](Batch& b) { b.tables[kSlots].captures = {{0, 3, 0}, {0, 5, 0}}; });
}

TEST(LinearAttentionOpDeathTest, RefusesSpansThatCutAChunkOfThePrompt) {
  EXPECT_DEATH(run(2, 2, 20), "positions 2 to 4 of a prompt of 20 in chunks of 4");
  EXPECT_DEATH(run(0, 6, 20), "positions 0 to 6 of a prompt of 20 in chunks of 4");
}

TEST(LinearAttentionOpDeathTest, RefusesSlotsThatAreNotThere) {
  EXPECT_DEATH(run(0, 4, 4, [](Batch& b) { b.tables[kSlots].units = {-1}; }), "slot -1 of 2");
  EXPECT_DEATH(run(0, 4, 4, [](Batch& b) { b.tables[kSlots].units = {2}; }), "slot 2 of 2");
  EXPECT_DEATH(run(0, 4, 4, [](Batch& b) { b.tables[kSlots].captures = {{0, 3, 2}}; }),
               "slot 2 of 2");
}

TEST(LinearAttentionOp, RunsDraftsAsItRunsOtherRows) {
  run(0, 9, 7, [](Batch& b) { b.drafts = {{.count = 2}}; });
}

TEST(LinearAttentionOpDeathTest, RefusesDraftsThatTheLogHasNoRoomFor) {
  EXPECT_DEATH(run(0, 9, 6, [](Batch& b) { b.drafts = {{.count = 3}}; }), "3 drafts after 0");
  EXPECT_DEATH(run(0, 9, 7,
                   [](Batch& b) {
                     b.drafts = {{.count = 2}};
                     b.tables[kLogs].units = {1};
                   }),
               "log 1 of 1");
}

TEST(LinearAttentionOpDeathTest, RefusesCapturesThatCutAChunkOfThePrompt) {
  EXPECT_DEATH(run(0, 8, 8, [](Batch& b) { b.tables[kSlots].captures = {{0, 4, 0}}; }),
               "5 positions");
}

}  // namespace
}  // namespace banyan::recurrent_test
