// Launches that repeat, and their graphs.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/cuda/launches.h"

namespace banyan::cuda::cuda_launches_test {
namespace {

struct Add {
  int value;
};
struct Shift {
  double by;
  char flag;
};

using Log = std::vector<std::string>;

void add(LaunchList& list, int value) {
  list.add(Add{value}, [](void* queue, const void* what) {
    static_cast<Log*>(queue)->push_back(std::to_string(static_cast<const Add*>(what)->value));
  });
}
void shift(LaunchList& list, double by) {
  list.add(Shift{by, 'x'}, [](void* queue, const void* what) {
    static_cast<Log*>(queue)->push_back("shift " +
                                        std::string(1, static_cast<const Shift*>(what)->flag));
  });
}

TEST(Launches, AreIssuedInTheirOrderWithTheirArguments) {
  LaunchList list;
  add(list, 1);
  shift(list, 2.5);
  add(list, 3);
  Log log;
  list.issue_all(&log);
  EXPECT_EQ(log, (Log{"1", "shift x", "3"}));
  list.clear();
  EXPECT_TRUE(list.empty());
  add(list, 7);
  log.clear();
  list.issue_all(&log);
  EXPECT_EQ(log, Log{"7"});
}

TEST(Launches, AListIsItsFunctionsAndArgumentsInOrder) {
  auto key = [](auto... values) {
    LaunchList list;
    (add(list, values), ...);
    return list.key();
  };
  EXPECT_EQ(key(1, 2, 3), key(1, 2, 3));
  EXPECT_NE(key(1, 2, 3), key(1, 3, 2));
  EXPECT_NE(key(1, 2), key(1, 2, 2));
  EXPECT_NE(key(0), key());
  LaunchList shifts, adds;
  shift(shifts, 0);
  add(adds, 0);
  EXPECT_NE(shifts.key(), adds.key());
}

// Bytes between members have any value: a list that repeats would never be seen to.
TEST(Launches, PaddingIsNoArgument) {
  if (!BANYAN_CLEARS_PADDING) GTEST_SKIP() << "this compiler cannot clear padding";
  auto key = [](int padding) {
    alignas(Shift) std::byte bytes[sizeof(Shift)];
    std::memset(bytes, padding, sizeof bytes);
    Shift* kernel = new (bytes) Shift;
    kernel->by = 1;
    kernel->flag = 'x';
    LaunchList list;
    list.add(*kernel, [](void*, const void*) {});
    return list.key();
  };
  EXPECT_EQ(key(0), key(0xAB));
}

TEST(Launches, AGraphIsMadeOfWhatHasComeBefore) {
  GraphCache<int> graphs;
  ListKey a, b;
  a.add(1);
  b.add(2);
  EXPECT_FALSE(graphs.find(a).seen);
  EXPECT_TRUE(graphs.find(a).seen);
  EXPECT_FALSE(graphs.find(b).seen);
  EXPECT_EQ(graphs.find(a).graph, nullptr);
  graphs.insert(a, std::make_unique<int>(5));
  ASSERT_NE(graphs.find(a).graph, nullptr);
  EXPECT_EQ(*graphs.find(a).graph, 5);
  graphs.clear();
  EXPECT_FALSE(graphs.find(a).seen);
}

TEST(Launches, GraphsThatAreNotUsedGoFirst) {
  GraphCache<uint64_t> graphs;
  auto key = [](uint64_t i) {
    ListKey key;
    key.add(i);
    return key;
  };
  constexpr uint64_t kMany = GraphCache<uint64_t>::kGraphsMax + 10;
  for (uint64_t i = 0; i < kMany; ++i) {
    graphs.insert(key(i), std::make_unique<uint64_t>(i));
    ASSERT_NE(graphs.find(key(0)).graph, nullptr) << i;
  }
  EXPECT_EQ(graphs.size(), GraphCache<uint64_t>::kGraphsMax);
  EXPECT_EQ(graphs.find(key(1)).graph, nullptr);
  EXPECT_EQ(*graphs.find(key(kMany - 1)).graph, kMany - 1);
}

}  // namespace
}  // namespace banyan::cuda::cuda_launches_test
