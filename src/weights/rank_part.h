// What one rank takes of the matrices that are stacked into one.
#pragma once

#include <span>
#include <vector>

#include "banyan/status.h"
#include "dist/shard.h"
#include "weights/matrix_packer.h"

namespace banyan {

// Rows [first, first + count) of a stored matrix or vector.
struct RowRange {
  int64_t first = 0, count = 0;
};

// The rows that `rank` takes of `rows`, in order. kUnsupported, naming `name`: fewer units than
// ranks.
Result<std::vector<RowRange>> rows_of_rank(std::string_view name, int64_t rows, const Shard& shard,
                                           Rank rank);

struct RankPart {
  std::vector<MatrixSource> sources;
  int64_t rows = 0;  // of all sources
  ColumnCut columns;
  MatrixForm form;  // of what is taken
};

// Of `whole`, rows of `columns` that would have the form `form`. Either all of them are cut by
// columns or none is. kUnsupported: also a cut inside columns that share a scale
// and cannot be parted.
Result<RankPart> part_of_rank(std::span<const MatrixSource> whole, int64_t columns,
                              const MatrixForm& form, Rank rank);

}  // namespace banyan
