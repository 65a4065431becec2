// A rank's part of stacked matrices.
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

// This rank's rows of `rows`, in order. kUnsupported names `name`: fewer units than ranks.
Result<std::vector<RowRange>> rows_of_rank(std::string_view name, int64_t rows, const Shard& shard,
                                           Rank rank);

struct RankPart {
  std::vector<MatrixSource> sources;
  int64_t rows = 0;  // total over all sources
  ColumnCut columns;
  MatrixForm form;  // form of the part
};

// The part of `whole`, whose rows of `columns` would have the form `form`. Either all matrices are
// split by columns or none is. kUnsupported: fewer units than ranks, or a cut inside columns that
// share a scale and cannot be split.
Result<RankPart> part_of_rank(std::span<const MatrixSource> whole, int64_t columns,
                              const MatrixForm& form, Rank rank);

}  // namespace banyan
