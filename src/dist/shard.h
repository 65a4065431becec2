// How weights are sharded among the ranks that run one model together, as threads or
// processes.
//
// A weight is split between *units*, equal pieces that are never split: heads, experts, blocks of a
// hidden layer's columns. Every rank has a contiguous range of units, in rank order, so results are
// concatenated. If units do not divide evenly, some ranks have one more. A rank without units is
// rejected.
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

// The units of `rank`: unit u belongs to rank floor(u * ranks / units).
constexpr UnitRange units_of(int64_t units, Rank rank) {
  auto begin = [&](int64_t index) { return (units * index + rank.count - 1) / rank.count; };
  return {begin(rank.index), begin(rank.index + 1) - begin(rank.index)};
}

struct Shard {
  static constexpr size_t kBlocksMax = 5;

  enum class Cut : uint8_t {
    kNone,     // replicated on every rank
    kRows,     // outputs: each rank computes some of them
    kColumns,  // inputs: each rank computes a partial sum of every output
  };
  Cut cut = Cut::kNone;
  int64_t units = 1;
  // Sizes of row blocks that are split separately, such as q, k and v in one matrix; 0 after the
  // last block. All 0: the rows are one block.
  std::array<int64_t, kBlocksMax> blocks = {};
  // The stored rows form this many equal runs, each with its part of every block: query and gate of
  // one head, then those of the next. Reordered to block order when read. A multiple of `units`.
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

// Units of a width that may be split anywhere, such as a hidden layer or a vocabulary. A unit is
// 128 wide, so that blocks and groups of quantised formats stay whole. It is narrower if 128 does
// not divide the width or leaves too few units.
constexpr int64_t units_of_width(int64_t width, Rank rank) {
  int64_t unit = 128;
  while (unit > 1 && (width % unit != 0 || width / unit < rank.count)) unit /= 2;
  return width / unit;
}

}  // namespace banyan
