// The pools of layer states: their units, and copies between them.
#include "cache/state_pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>

#include "kernels/select.h"

namespace banyan::state_pools_test {
namespace {

const StateSpec kKeys{.name = "keys", .dtype = DType::kBF16, .heads = 2, .width = 24};
const StateSpec kWindow{
    .name = "window", .reach = StateReach::kWindow, .window_tokens = 5, .heads = 3, .width = 2};
const StateSpec kSlot{.name = "recurrent",
                      .unit = StateUnit::kSlot,
                      .reach = StateReach::kPoint,
                      .heads = 2,
                      .width = 6};
// In the path's pages, a row for two tokens of the four.
const StateSpec kSums{.name = "sums", .heads = 2, .width = 3, .tokens_per_row = 2};
constexpr UnitCounts kUnits = {10, 3, 2};
constexpr int kPageSize = 4;
constexpr int kWindowClass = 1, kSlotClass = 2;

StatePools pools_of_all_classes() {
  return *StatePools::create({kKeys, kWindow, kSlot, kSums}, kPageSize, kUnits);
}

std::span<char> bytes_of(const StatePools& pools, StateId id) {
  auto units = static_cast<size_t>(pools.units(pools.class_of(id)));
  return {static_cast<char*>(pools.pool(id)), pools.spec(id).unit_bytes(kPageSize) * units};
}

// A different byte at every place.
void fill(const StatePools& pools) {
  for (StateId id : {0, 1, 2, 3}) {
    std::span<char> bytes = bytes_of(pools, id);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  }
}

// One copy on the host, where the list is the device's too.
void copy(const StatePools& pools, const UnitCopy& one) {
  pools.copy(**select_kernels("portable"), {}, {&one, 1}, &one);
}

std::vector<std::string> snapshot(const StatePools& pools) {
  std::vector<std::string> all;
  for (StateId id : {0, 1, 2, 3}) {
    std::span<char> bytes = bytes_of(pools, id);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

// Moves what copying `rows` rows of one page to another must move, in `bytes` of a pool.
void copy_rows(const StateSpec& spec, int from, int to, int rows, std::string& bytes) {
  size_t row = spec.row_bytes();
  int64_t per_page = kPageSize / spec.tokens_per_row;
  for (int64_t head = 0; head < spec.heads; ++head) {
    for (int i = 0; i < rows; ++i) {
      auto place = [&](int page) {
        return static_cast<size_t>((page * spec.heads + head) * per_page + i) * row;
      };
      bytes.replace(place(to), row, bytes.substr(place(from), row));
    }
  }
}

TEST(StatePools, HoldEveryUnitOfEveryClass) {
  StatePools pools = pools_of_all_classes();
  EXPECT_EQ(pools.classes().count, 3);
  for (int c = 0; c < 3; ++c) EXPECT_EQ(pools.units(c), kUnits[static_cast<size_t>(c)]);
  EXPECT_EQ(pools.page_size_tokens(), kPageSize);
  for (StateId id : {0, 1, 2, 3}) {
    std::span<char> bytes = bytes_of(pools, id);
    EXPECT_EQ(bytes.front(), 0);
    bytes.back() = 1;
  }
}

// Of a state with a row for two tokens, the row that the copy ends inside stays as it was.
TEST(StatePools, CopyTheFirstWholeRowsOfEveryHeadOfAPage) {
  StatePools pools = pools_of_all_classes();
  for (int tokens : {0, 1, 3, 4}) {
    fill(pools);
    std::vector<std::string> expected = snapshot(pools);
    copy_rows(kKeys, 7, 2, tokens, expected[0]);
    copy_rows(kSums, 7, 2, tokens / 2, expected[3]);
    copy(pools, {kPathClass, 7, 2, tokens});
    EXPECT_EQ(snapshot(pools), expected) << tokens;
    copy_rows(kWindow, 0, 2, tokens, expected[1]);
    copy(pools, {kWindowClass, 0, 2, tokens});
    EXPECT_EQ(snapshot(pools), expected) << tokens;
  }
}

TEST(StatePools, CopySlots) {
  StatePools pools = pools_of_all_classes();
  fill(pools);
  std::vector<std::string> expected = snapshot(pools);
  expected[2] = expected[2].substr(48) + expected[2].substr(48);
  copy(pools, {.unit_class = kSlotClass, .from = 1, .to = 0});
  EXPECT_EQ(snapshot(pools), expected);
}

// The unit after the last is zeros, which can be copied and never written.
TEST(StatePools, KeepABlankUnitOfWhatMayBeMissing) {
  StateSpec advisory = kWindow;
  advisory.advisory = true;
  StatePools pools = *StatePools::create({advisory}, kPageSize, {0, 2});
  std::span<char> bytes = bytes_of(pools, 0);
  std::ranges::fill(bytes, 'x');
  copy(pools, {.unit_class = 1, .from = 2, .to = 0, .tokens = kPageSize});
  auto zeros = static_cast<size_t>(std::ranges::count(bytes, '\0'));
  EXPECT_EQ(zeros, bytes.size() / 2);
  EXPECT_DEATH(copy(pools, {.unit_class = 1, .from = 0, .to = 2}), "CHECK failed");
}

TEST(StatePoolsDeathTest, CopiesStayInsideTheirPools) {
  StatePools pools = pools_of_all_classes();
  EXPECT_DEATH(copy(pools, {kPathClass, 0, 10, 1}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kPathClass, 0, 1, 5}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kWindowClass, -1, 0, 1}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kWindowClass, 3, 0, 1}), "CHECK failed") << "there is no blank one";
  EXPECT_DEATH(copy(pools, {.unit_class = kSlotClass, .from = 2, .to = 0}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {.unit_class = 3, .from = 1, .to = 0}), "CHECK failed");
}

}  // namespace
}  // namespace banyan::state_pools_test
