// The device that catches host code which touches device memory at the wrong time.
#include "kernels/fenced/fenced.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/os/memory.h"
#include "kernels/select.h"

namespace banyan::fenced_test {
namespace {

// Four numbers of a device, and what adds them to themselves.
class Fenced : public testing::Test {
 protected:
  float* x() const { return reinterpret_cast<float*>(block_.data()); }
  void upload(const std::vector<float>& values) {
    queue_.upload(x(), values.data(), values.size() * sizeof(float));
  }
  std::vector<float> download() {
    std::vector<float> values(4);
    queue_.download(values.data(), x(), sizeof(float) * 4);
    queue_.synchronise();
    return values;
  }
  void add(const float* a) {
    table_.add({.launch = {.queue = queue_.handle()}, .a = a, .b = x(), .y = x(), .count = 4});
  }

  const KernelTable& table_ = **select_kernels("fenced");
  DeviceQueue queue_{*table_.device};
  DeviceBlock block_{queue_, 4 * sizeof(float)};
};
using FencedDeathTest = Fenced;

TEST_F(Fenced, IsChosenByNameAlone) {
  EXPECT_STREQ(table_.name, "fenced");
  EXPECT_EQ(std::ranges::count(available_kernels(), "fenced"), 0);
  EXPECT_STRNE((*select_kernels("auto"))->name, "fenced");
}

TEST_F(Fenced, KernelsAndCopiesRunInTheirOrderWhenTheQueueIsSynchronised) {
  EXPECT_EQ(download(), (std::vector<float>{0, 0, 0, 0}));
  std::vector<float> values = {1, 2, 3, 4}, before(4, -1);
  upload(values);
  std::ranges::fill(values, 99.0f);  // was copied
  queue_.download(before.data(), x(), sizeof(float) * 4);
  add(x());
  EXPECT_EQ(before[0], -1) << "nothing has run yet";
  EXPECT_EQ(download(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_EQ(before, (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Fenced, RunsWhatIsBeforeAMarkAndNoMore) {
  std::vector<float> before(4, -1), after(4, -1);
  upload({1, 2, 3, 4});
  queue_.download(before.data(), x(), sizeof(float) * 4);
  uint64_t first = queue_.mark();
  add(x());
  queue_.download(after.data(), x(), sizeof(float) * 4);
  uint64_t second = queue_.mark();
  EXPECT_FALSE(queue_.reached(first));
  queue_.wait(first);
  EXPECT_TRUE(queue_.reached(first));
  EXPECT_FALSE(queue_.reached(second));
  EXPECT_EQ(before, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(after[0], -1);
  queue_.wait(first);
  EXPECT_FALSE(queue_.reached(second));
  queue_.wait(second);
  EXPECT_EQ(after, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(FencedDeathTest, TheHostMayNotTouchMemoryOfTheDevice) {
  EXPECT_DEATH(x()[0] = 1, "");
  upload({1, 2, 3, 4});
  queue_.synchronise();
  EXPECT_DEATH(x()[0] += 1, "") << "nor when nothing is on the queue";
}

TEST_F(FencedDeathTest, AnArrayOfTheHostThatDiesBeforeItsKernelIsFound) {
  EXPECT_DEATH(
      {
        {
          MemoryBlock array(4 * sizeof(float));
          add(reinterpret_cast<const float*>(array.data()));
        }
        queue_.synchronise();
      },
      "");
}

TEST_F(FencedDeathTest, AKernelNeedsItsQueue) {
  EXPECT_DEATH(table_.add({.a = x(), .b = x(), .y = x(), .count = 4}), "without its queue");
}

}  // namespace
}  // namespace banyan::fenced_test
