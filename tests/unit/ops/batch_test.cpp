#include "ops/batch.h"

#include <gtest/gtest.h>

#include <functional>

namespace banyan {
namespace {

Batch plain_batch() {
  Batch batch;
  batch.tokens = {1, 2};
  batch.positions = {0, 1};
  batch.spans = {{.row_begin = 0, .row_count = 2, .first_position = 0, .page_begin = 0}};
  batch.slots = batch.adapters = {-1};
  batch.prompt_tokens = {2};
  batch.page_table = {0};
  batch.logit_rows = {1};
  return batch;
}

TEST(Batch, RefusesWhatNoKernelUnderstandsYet) {
  auto refusal = [](const std::function<void(Batch&)>& change) {
    Batch batch = plain_batch();
    change(batch);
    Status status = batch.validate(10);
    return status ? std::string() : status.error().message;
  };
  EXPECT_EQ(refusal([](Batch&) {}), "");
  EXPECT_EQ(refusal([](Batch& b) { b.position_axes = 3; }), "batch: 3 position axes");
  EXPECT_EQ(refusal([](Batch& b) { b.row_parents = {0, 0}; }), "batch: draft trees");
  EXPECT_EQ(refusal([](Batch& b) { b.embedding_rows = {1}; }), "batch: embedding rows");
  EXPECT_EQ(refusal([](Batch& b) { b.captures = {{0, 1, 0}}; }), "batch: state captures");
  EXPECT_EQ(refusal([](Batch& b) { b.adapters = {0}; }), "batch: adapters");
  EXPECT_EQ(refusal([](Batch& b) { b.slots = {0}; }), "batch: state slots");
  EXPECT_EQ(refusal([](Batch& b) { b.tokens[1] = Batch::kSampleOfRow; }),
            "batch: tokens of a step in flight");
  EXPECT_EQ(refusal([](Batch& b) { b.tokens[1] = 10; }), "token 10 is not in the vocabulary of 10");
}

TEST(Batch, ClearsEveryField) {
  Batch batch = plain_batch();
  batch.row_parents = batch.embedding_rows = {1};
  batch.captures = {{0, 1, 0}};
  batch.position_axes = 3;
  batch.clear();
  EXPECT_EQ(batch.rows(), 0);
  EXPECT_EQ(batch.position_axes, 1);
  EXPECT_TRUE(batch.positions.empty() && batch.spans.empty() && batch.slots.empty());
  EXPECT_TRUE(batch.prompt_tokens.empty() && batch.adapters.empty() && batch.page_table.empty());
  EXPECT_TRUE(batch.logit_rows.empty() && batch.captures.empty() && batch.row_parents.empty());
  EXPECT_TRUE(batch.embedding_rows.empty());
}

}  // namespace
}  // namespace banyan
