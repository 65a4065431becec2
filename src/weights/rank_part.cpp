#include "weights/rank_part.h"

#include <numeric>

#include "base/check.h"
#include "base/error.h"

namespace banyan {
namespace {

Result<UnitRange> range_of(std::string_view name, const Shard& shard, Rank rank) {
  if (shard.units < rank.count) {
    return unsupported("{} has only {} heads, experts or blocks of columns", name, shard.units);
  }
  return units_of(shard.units, rank);
}

// Columns per scale in this rank's part: the group of the whole matrix, unless a cut splits a group
// and both pieces can have their own scales.
Result<int64_t> group_of_cut(std::string_view name, const MatrixForm& form, const ColumnCut& cut,
                             int64_t count) {
  constexpr int64_t kGroupMultiple = 32;  // kernels/gemm.h
  if (!form.format->quantised || form.group == cut.whole) return count;
  int64_t group = std::gcd(std::gcd(form.group, cut.begin), count);
  bool divisible = form.format->blocks == nullptr && group % kGroupMultiple == 0;
  if (group == form.group || divisible) return group;
  return unsupported("{}: columns {} to {} of {} begin or end within a group of {}", name,
                     cut.begin, cut.begin + count, cut.whole, form.group);
}

// Appends the part of `own` that lies in the block at [first, first + block), with rows in block
// order.
void append_runs(int64_t rows, const Shard& shard, UnitRange own, int64_t first, int64_t block,
                 std::vector<RowRange>& ranges) {
  CHECK(shard.runs % shard.units == 0 && block % shard.runs == 0 && rows % shard.runs == 0,
        "{} rows, {} of a block, of {} runs for {} units", rows, block, shard.runs, shard.units);
  int64_t runs_of_unit = shard.runs / shard.units;
  for (int64_t run = own.begin * runs_of_unit; run < own.end() * runs_of_unit; ++run) {
    ranges.push_back({run * (rows / shard.runs) + first / shard.runs, block / shard.runs});
  }
}

}  // namespace

Result<std::vector<RowRange>> rows_of_rank(std::string_view name, int64_t rows, const Shard& shard,
                                           Rank rank) {
  std::vector<RowRange> ranges;
  bool in_order = shard.runs == 1;
  if ((rank.alone() && in_order) || shard.cut == Shard::Cut::kNone ||
      shard.cut == Shard::Cut::kColumns) {
    ranges.push_back({0, rows});
    return ranges;
  }
  UnitRange own = TRY(range_of(name, shard, rank));
  int64_t first = 0;
  for (int64_t block : shard.blocks) {
    if (first == 0 && block == 0) block = rows;
    CHECK(block % shard.units == 0, "{}: {} rows of {} units", name, block, shard.units);
    int64_t unit = block / shard.units;
    if (block > 0 && in_order) ranges.push_back({first + own.begin * unit, own.count * unit});
    if (!in_order) append_runs(rows, shard, own, first, block, ranges);
    first += block;
    if (first == rows) break;
  }
  CHECK(first == rows, "{}: blocks of {} rows in {}", name, first, rows);
  return ranges;
}

Result<RankPart> part_of_rank(std::span<const MatrixSource> whole, int64_t columns,
                              const MatrixForm& form, Rank rank) {
  RankPart part{.columns = {.whole = columns, .group = form.group}, .form = form};
  for (const MatrixSource& all : whole) {
    for (RowRange rows : TRY(rows_of_rank(all.name, all.rows, all.shard, rank))) {
      MatrixSource source = all;
      source.first_row = rows.first;
      source.rows = rows.count;
      part.rows += rows.count;
      part.sources.push_back(std::move(source));
    }
  }
  const Shard& shard = whole[0].shard;
  part.columns.count = columns;
  if (rank.alone() || shard.cut != Shard::Cut::kColumns) return part;
  CHECK(columns % shard.units == 0, "{}: {} columns of {} units", whole[0].name, columns,
        shard.units);
  UnitRange own = TRY(range_of(whole[0].name, shard, rank));
  part.columns.begin = own.begin * (columns / shard.units);
  part.columns.count = own.count * (columns / shard.units);
  part.form.group = TRY(group_of_cut(whole[0].name, form, part.columns, part.columns.count));
  return part;
}

}  // namespace banyan
