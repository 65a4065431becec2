// How weights are divided among ranks: processes, or threads in tests, that run one model together.
//
// A weight is cut between *units*, equal pieces that are never cut themselves: heads, experts,
// blocks of a hidden layer's columns. Every rank has a run of neighbouring units, in the order of
// ranks, so that what ranks computed is put together by laying it side by side. Where the units do
// not divide evenly, some ranks have one more; a rank without any is refused.
#pragma once

#include <array>
#include <cstdint>

namespace banyan {

struct Rank {
  int index = 0, count = 1;

  bool alone() const { return count == 1; }
};

struct UnitRange {
  int64_t begin = 0, count = 0;

  int64_t end() const { return begin + count; }
  bool has(int64_t unit) const { return unit >= begin && unit < end(); }
};

// Those of `units` that `rank` has: unit u is on rank floor(u * ranks / units).
constexpr UnitRange units_of(int64_t units, Rank rank) {
  auto begin = [&](int64_t index) { return (units * index + rank.count - 1) / rank.count; };
  return {begin(rank.index), begin(rank.index + 1) - begin(rank.index)};
}

struct Shard {
  static constexpr size_t kBlocksMax = 5;

  enum class Cut : uint8_t {
    kNone,     // every rank has all of it
    kRows,     // outputs: each rank computes some
    kColumns,  // inputs: each rank computes a part of every output's sum
  };
  Cut cut = Cut::kNone;
  int64_t units = 1;
  // Sizes of the blocks of rows that are cut by themselves, such as q, k and v in one matrix; 0
  // beyond the last. All 0: the rows are one block.
  std::array<int64_t, kBlocksMax> blocks = {};
  // The stored rows are so many equal runs, each with its part of every block: the query and the
  // gate of one head, then those of the next. They are taken block by block. A multiple of `units`.
  int64_t runs = 1;

  static constexpr Shard rows(int64_t units) { return {.cut = Cut::kRows, .units = units}; }
  static constexpr Shard rows(int64_t units, std::array<int64_t, kBlocksMax> blocks) {
    return {.cut = Cut::kRows, .units = units, .blocks = blocks};
  }
  static constexpr Shard rows_of_runs(int64_t units, int64_t runs,
                                      std::array<int64_t, kBlocksMax> blocks) {
    return {.cut = Cut::kRows, .units = units, .blocks = blocks, .runs = runs};
  }
  static constexpr Shard columns(int64_t units) { return {.cut = Cut::kColumns, .units = units}; }
};

// The units of a width that may be cut anywhere, as that of a hidden layer or a vocabulary may: of
// 128, so that blocks and groups of quantised formats stay whole, or less where those do not divide
// it or are too few.
constexpr int64_t units_of_width(int64_t width, Rank rank) {
  int64_t unit = 128;
  while (unit > 1 && (width % unit != 0 || width / unit < rank.count)) unit /= 2;
  return width / unit;
}

}  // namespace banyan
