// Batches that are inconsistent, or ask for what no kernel supports, are refused.
#include "ops/batch.h"

#include <gtest/gtest.h>

#include <functional>

#include "support/states.h"

namespace banyan::batch_test {
namespace {

const StateClasses kClasses = test::classes_of({test::window_state(4), test::slot_state()}, 4);
constexpr size_t kPages = kPathClass, kWindow = 1, kSlots = 2;  // classes

Batch plain_batch() {
  Batch batch;
  batch.tokens = {1, 2};
  batch.positions = {0, 1};
  batch.spans = {{.row_begin = 0, .row_count = 2, .first_position = 0, .page_begin = 0}};
  batch.adapters = {-1};
  batch.prompt_tokens = {2};
  batch.tables[kPages].units = {0};
  batch.tables[kWindow].units = {-1};
  batch.tables[kSlots].units = {-1};
  batch.logit_rows = {1};
  return batch;
}

std::string refusal(const std::function<void(Batch&)>& change) {
  Batch batch = plain_batch();
  change(batch);
  Status status = batch.validate(10, kClasses);
  return status ? std::string() : status.error().message;
}

TEST(Batch, RefusesWhatNoKernelUnderstandsYet) {
  EXPECT_EQ(refusal([](Batch&) {}), "");
  EXPECT_EQ(refusal([](Batch& b) { b.position_axes = 3; }), "batch: 3 position axes");
  EXPECT_EQ(refusal([](Batch& b) { b.embedding_rows = {1}; }),
            "batch: embedding rows are not supported");
  EXPECT_EQ(refusal([](Batch& b) { b.adapters = {0}; }), "batch: adapter 0 of 0");
  EXPECT_EQ(refusal([](Batch& b) { b.tokens[1] = Batch::kSampleOfRow - 2; }),
            "batch: a token refers to logit row 2, but the step in flight has 0");
  EXPECT_EQ(refusal([](Batch& b) { b.tokens[1] = 10; }),
            "token 10 is outside the vocabulary of 10 tokens");
}

TEST(Batch, RefusesArraysThatDoNotFitEachOther) {
  EXPECT_EQ(refusal([](Batch& b) { b.prompt_tokens = {}; }),
            "batch: 1 spans, 0 prompt lengths, 1 adapters");
  EXPECT_EQ(refusal([](Batch& b) { b.tables[kSlots].units = {}; }), "batch: 0 slots, expected 1");
  EXPECT_EQ(refusal([](Batch& b) { b.tables[kWindow].units = {}; }),
            "batch: 0 pages of a window of 4 tokens, expected 1");
  EXPECT_EQ(refusal([](Batch& b) { b.tables[kWindow].captures = {{0, 1, 0}}; }),
            "batch: 1 captures of pages of a window of 4 tokens");
  EXPECT_EQ(refusal([](Batch& b) { b.spans[0].row_begin = 1; }),
            "batch: a span of 2 rows from row 1 and position 0 after 0 rows");
  EXPECT_EQ(refusal([](Batch& b) { b.spans[0].row_count = 1; }),
            "batch: 2 tokens, 2 positions, 1 rows in spans");
}

TEST(Batch, RefusesCapturesOutsideTheirSpans) {
  auto of = [](Capture capture) {
    return refusal([capture](Batch& b) {
      b.tables[kSlots].units = {3};
      b.tables[kSlots].captures = {capture};
    });
  };
  EXPECT_EQ(of({0, 1, 0}), "");
  EXPECT_EQ(of({1, 1, 0}), "batch: a capture of span 1 of 1");
  EXPECT_EQ(of({0, 2, 0}), "batch: a capture after position 2 of a span of 2 from 0");
  EXPECT_EQ(of({0, 1, 3}), "batch: a capture of slot 3 in slot 3");
  EXPECT_EQ(of({0, 1, -1}), "batch: a capture of slot 3 in slot -1");
  EXPECT_EQ(refusal([](Batch& b) { b.tables[kSlots].captures = {{0, 1, 0}}; }),
            "batch: a capture of slot -1 in slot 0");
}

// A span of four rows from position 8 in a model whose logs have three.
TEST(Batch, RefusesDraftsThatALogCannotHold) {
  StateClasses classes = test::classes_of({test::draft_log_state(3)}, 4);
  auto of = [&](std::vector<DraftRows> drafts) {
    Batch batch;
    batch.tokens = {1, 2, 3, 4};
    batch.positions = {8, 9, 10, 11};
    batch.spans = {{.row_begin = 0, .row_count = 4, .first_position = 8, .page_begin = 0}};
    batch.adapters = {-1};
    batch.prompt_tokens = {6};
    batch.tables[kPathClass].units = {0, 1, 2};
    batch.tables[1].units = {0};
    batch.drafts = std::move(drafts);
    Status status = batch.validate(10, classes);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(of({}), "");
  EXPECT_EQ(of({{.count = 3, .replayed = 2}}), "");
  EXPECT_EQ(of({{}, {}}), "batch: 1 spans, drafts of 2");
  EXPECT_EQ(of({{.count = 5}}),
            "batch: 5 drafts of a span of 4 from 8 after 0 replayed and 0 held");
  EXPECT_EQ(of({{.count = 3, .held = 1}}),
            "batch: 3 drafts of a span of 4 from 8 after 0 replayed and 1 held");
  EXPECT_EQ(of({{.count = 4}}), "batch: 4 drafts after 0 replayed and 0 held in a log of 3");
  EXPECT_EQ(of({{.count = 1, .replayed = 3}}),
            "batch: 1 drafts of a span of 4 from 8 after 3 replayed and 0 held")
      << "position 5 is of the prompt";
}

TEST(Batch, RefusesCapturesOfDraftsButNotOfReplays) {
  auto of = [&](int32_t position) {
    return refusal([position](Batch& b) {
      b.spans[0].first_position = 5;
      b.drafts = {{.count = 1, .replayed = 2}};
      b.tables[kSlots].units = {3};
      b.tables[kSlots].captures = {{0, position, 0}};
    });
  };
  EXPECT_EQ(of(2), "batch: a capture after position 2 of a span of 2 from 5");
  for (int32_t position : {3, 4, 5}) EXPECT_EQ(of(position), "");
  EXPECT_EQ(of(6), "batch: a capture after position 6 of a span of 2 from 5");
}

TEST(Batch, RefusesSharedRowsThatItDoesNotHave) {
  auto of = [](SpanArgs shared, bool trees = true) {
    Batch batch = plain_batch();
    batch.shared_rows = {shared};
    StateClasses classes = kClasses;
    classes.draft_trees = trees;
    Status status = batch.validate(10, classes);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(of({.row_begin = 1, .row_count = 1, .first_position = 1}), "");
  EXPECT_EQ(of({.row_begin = 1, .row_count = 2, .first_position = 1}),
            "batch: 2 shared rows from row 1 and position 1 of 2 rows");
  EXPECT_EQ(of({.row_begin = 1, .row_count = 1, .first_position = 2}),
            "batch: 1 shared rows from row 1 and position 2 of 2 rows");
  EXPECT_EQ(of({.row_begin = 1, .row_count = 1, .first_position = 1}, false),
            "batch: a draft tree of a model that keeps more than pages of rows");
}

TEST(Batch, ClearsEveryField) {
  Batch batch = plain_batch();
  batch.embedding_rows = {1};
  batch.shared_rows = {{.row_count = 1}};
  batch.tables[kSlots].captures = {{0, 1, 0}};
  batch.copies = {{kPathClass, 0, 1, 2}};
  batch.position_axes = 3;
  batch.drafts = {{.count = 1}};
  batch.clear();
  EXPECT_EQ(batch.rows(), 0);
  EXPECT_EQ(batch.position_axes, 1);
  EXPECT_TRUE(batch.positions.empty() && batch.spans.empty() && batch.copies.empty());
  EXPECT_TRUE(batch.prompt_tokens.empty() && batch.adapters.empty() && batch.drafts.empty());
  EXPECT_TRUE(batch.logit_rows.empty() && batch.shared_rows.empty());
  EXPECT_TRUE(batch.embedding_rows.empty());
  for (const UnitTable& table : batch.tables) {
    EXPECT_TRUE(table.units.empty() && table.captures.empty());
  }
}

}  // namespace
}  // namespace banyan::batch_test
