// The image of a batch that kernels read: contents, split spans, stable addresses.
#include "ops/step_inputs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "cache/state_pools.h"
#include "kernels/select.h"

namespace banyan::step_inputs_test {
namespace {

// Two sequences: five positions across the end of a prompt of 6, and one of an answer.
Batch batch_of(size_t pages) {
  Batch b;
  b.tokens = {11, 12, 13, 14, 15, 16};
  b.positions = {4, 5, 6, 7, 8, 30};
  b.spans = {{.row_begin = 0, .row_count = 5, .first_position = 4},
             {.row_begin = 5, .row_count = 1, .first_position = 30, .page_begin = 2}};
  b.prompt_tokens = {6, 20};
  b.drafts = {{}, {.count = 1, .replayed = 3}};
  b.tables[kPathClass].units.resize(pages, 7);
  b.tables[1].units = {3, 1};  // slots
  b.logit_rows = {4, 5};
  b.copies = {{.unit_class = 1, .from = 2, .to = 3}};
  return b;
}

template <class T>
std::vector<T> on_host(const DeviceQueue& queue, const T* array, size_t count) {
  std::vector<T> values(count);
  queue.download(values.data(), array, count * sizeof(T));
  queue.synchronise();
  return values;
}

TEST(StepImage, HasTheArraysOfTheBatchWhereKernelsReadThem) {
  for (const char* kernels : {"portable", "fenced"}) {
    DeviceQueue queue(*(*select_kernels(kernels))->device);
    StepImage image(queue);
    Batch batch = batch_of(3);
    const StepInputs& inputs = image.load(batch);
    EXPECT_EQ(on_host(queue, inputs.tokens, 6), batch.tokens);
    EXPECT_EQ(on_host(queue, inputs.positions, 6), batch.positions);
    for (size_t c : {0, 1}) {
      const std::vector<int32_t>& units = batch.tables[c].units;
      EXPECT_EQ(on_host(queue, inputs.tables[c].units, units.size()), units);
    }
    EXPECT_EQ(on_host(queue, inputs.logit_rows, 2), batch.logit_rows);
    EXPECT_EQ(on_host(queue, inputs.drafts, 2), batch.drafts);
    EXPECT_EQ(on_host(queue, inputs.spans.device, 2)[1].first_position, 30);
    EXPECT_EQ(on_host(queue, inputs.copies, 1)[0], batch.copies[0]);
  }
}

TEST(StepImage, CutsSpansWhereAPromptEnds) {
  StepImage image(host_queue());
  Batch batch = batch_of(3);
  const StepInputs& inputs = image.load(batch);
  ASSERT_EQ(inputs.prompt.count(), 1);
  EXPECT_EQ(inputs.prompt.host[0].row_count, 2);
  EXPECT_EQ(inputs.prompt.device[0].first_position, 4);
  ASSERT_EQ(inputs.decode.count(), 2);
  EXPECT_EQ(inputs.decode.host[0].row_begin, 2);
  EXPECT_EQ(inputs.decode.device[0].first_position, 6);
  EXPECT_EQ(inputs.decode.device[0].row_count, 3);
  EXPECT_EQ(inputs.decode.device[1].first_position, 30);
}

TEST(StepImage, KeepsItsAddressesUntilAnArrayOutgrowsItsRoom) {
  StepImage image(host_queue());
  Batch longer = batch_of(100), shorter = batch_of(3), longest = batch_of(300);
  const int32_t* table = image.load(longer).tables[kPathClass].units;
  EXPECT_EQ(image.load(shorter).tables[kPathClass].units, table);
  EXPECT_EQ(image.load(longer).tables[kPathClass].units, table);
  EXPECT_EQ(table[99], 7);
  EXPECT_EQ(image.load(longest).tables[kPathClass].units[299], 7);
}

}  // namespace
}  // namespace banyan::step_inputs_test
