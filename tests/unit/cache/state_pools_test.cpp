#include "cache/state_pools.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "kernels/select.h"

namespace banyan {
namespace {

const StateSpec kKeys{.name = "keys", .dtype = DType::kBF16, .heads = 2, .width = 24};
const StateSpec kWindow{
    .name = "window", .reach = StateReach::kWindow, .window_tokens = 5, .heads = 3, .width = 2};
const StateSpec kSlot{.name = "recurrent",
                      .unit = StateUnit::kSlot,
                      .reach = StateReach::kPoint,
                      .heads = 2,
                      .width = 6};
constexpr PoolSizes kSizes{.pages = 10, .window_pages = 3, .slots = 2};
constexpr int kPageSize = 4;

StatePools pools_of_all_classes() {
  return *StatePools::create({kKeys, kWindow, kSlot}, kPageSize, kSizes);
}

size_t units_of(StateId id) {
  return std::array<size_t, 3>{kPageSize * 10, kPageSize * 3, 2}[static_cast<size_t>(id)];
}

std::span<char> bytes_of(const StatePools& pools, StateId id) {
  return {static_cast<char*>(pools.pool(id)), pools.spec(id).bytes() * units_of(id)};
}

// A different byte at every place.
void fill(const StatePools& pools) {
  for (StateId id : {0, 1, 2}) {
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
  for (StateId id : {0, 1, 2}) {
    std::span<char> bytes = bytes_of(pools, id);
    all.emplace_back(bytes.begin(), bytes.end());
  }
  return all;
}

// Moves what copying `tokens` rows of one page to another must move, in `bytes` of a pool.
void copy_rows(const StateSpec& spec, int from, int to, int tokens, std::string& bytes) {
  size_t row = static_cast<size_t>(spec.width) * dtype_bytes(spec.dtype);
  for (int64_t head = 0; head < spec.heads; ++head) {
    for (int token = 0; token < tokens; ++token) {
      auto place = [&](int page) {
        return static_cast<size_t>((page * spec.heads + head) * kPageSize + token) * row;
      };
      bytes.replace(place(to), row, bytes.substr(place(from), row));
    }
  }
}

TEST(StatePools, HoldEveryUnitOfEveryClass) {
  StatePools pools = pools_of_all_classes();
  EXPECT_EQ(pools.sizes().pages, 10);
  EXPECT_EQ(pools.sizes().window_pages, 3);
  EXPECT_EQ(pools.sizes().slots, 2);
  EXPECT_EQ(pools.page_size_tokens(), kPageSize);
  for (StateId id : {0, 1, 2}) {
    std::span<char> bytes = bytes_of(pools, id);
    EXPECT_EQ(bytes.front(), 0);
    bytes.back() = 1;
  }
}

TEST(StatePools, EveryClassHasItsBytes) {
  std::vector<StateSpec> specs = {kKeys, kWindow, kSlot, kKeys};
  EXPECT_EQ(state_bytes_per_token(specs), 2u * (2 * 24 * 2));
  EXPECT_EQ(state_bytes_per_window_token(specs), 3u * 2 * 4);
  EXPECT_EQ(state_bytes_per_slot(specs), 2u * 6 * 4);
}

TEST(StatePools, CopyTheFirstRowsOfEveryHeadOfAPage) {
  StatePools pools = pools_of_all_classes();
  for (int tokens : {0, 1, 3, 4}) {
    fill(pools);
    std::vector<std::string> expected = snapshot(pools);
    copy_rows(kKeys, 7, 2, tokens, expected[0]);
    copy(pools, {kPages, 7, 2, tokens});
    EXPECT_EQ(snapshot(pools), expected) << tokens;
    copy_rows(kWindow, 0, 2, tokens, expected[1]);
    copy(pools, {kWindowPages, 0, 2, tokens});
    EXPECT_EQ(snapshot(pools), expected) << tokens;
  }
}

TEST(StatePools, CopySlots) {
  StatePools pools = pools_of_all_classes();
  fill(pools);
  std::vector<std::string> expected = snapshot(pools);
  expected[2] = expected[2].substr(48) + expected[2].substr(48);
  copy(pools, {kSlots, 1, 0});
  EXPECT_EQ(snapshot(pools), expected);
}

TEST(StatePoolsDeathTest, CopiesStayInsideTheirPools) {
  StatePools pools = pools_of_all_classes();
  EXPECT_DEATH(copy(pools, {kPages, 0, 10, 1}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kPages, 0, 1, 5}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kWindowPages, -1, 0, 1}), "CHECK failed");
  EXPECT_DEATH(copy(pools, {kSlots, 2, 0}), "CHECK failed");
}

TEST(StatePools, RefuseWhatIsNotKeptYetByName) {
  auto refusal = [](StateSpec spec) {
    auto pools = StatePools::create({spec}, kPageSize, kSizes);
    return pools ? std::string() : pools.error().message;
  };
  StateSpec growing{.name = "a.slot", .unit = StateUnit::kSlot, .width = 4};
  StateSpec ahead{.name = "a.draft", .lookahead_tokens = 1, .width = 4};
  StateSpec narrow = kSlot;
  narrow.dtype = DType::kBF16;
  EXPECT_EQ(refusal(kSlot), "");
  EXPECT_EQ(refusal(growing), "a.slot: states of this unit and reach are not kept yet");
  EXPECT_EQ(refusal(ahead), "a.draft: states that look 1 tokens ahead are not kept yet");
  EXPECT_EQ(refusal(narrow), "recurrent: slots of BF16 are not kept yet, only of F32");
}

}  // namespace
}  // namespace banyan
