// From a matrix as a checkpoint stores it to one as a kernel multiplies it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "base/thread_pool.h"
#include "dist/shard.h"
#include "quant/formats.h"
#include "weights/quantization_plan.h"
#include "weights/stored_matrix.h"

namespace banyan {

// One of the matrices that are stacked into one, or the part of it that a rank takes.
struct MatrixSource {
  std::string name;                    // "model.layers.0.self_attn.q_proj"
  int64_t rows = 0;                    // that are taken
  std::optional<StoredMatrix> stored;  // absent: seeded random numbers, or codes
  QuantizationPlan::Choice choice = {};
  int64_t first_row = 0;   // that is taken
  int64_t whole_rows = 0;  // of the matrix as it is stored
  Shard shard = {};
};

// The columns that are taken of every row, whose codes are those of the whole row.
struct ColumnCut {
  int64_t begin = 0, count = 0;
  int64_t whole = 0;  // columns of a stored row
  int64_t group = 0;  // of them that share a scale
};

struct MatrixForm {
  const WeightFormat* format = nullptr;
  int64_t group = 0;  // columns that share a scale
};

// The form in memory of `parts` stacked, with `columns` each: what their choices ask for, or
// `dtype_format` if that is not null, or what holds all of them without loss. Parts that nothing
// but f32 arithmetic can bring together, such as weights with groups in any order, take `element`
// or a wider type. Rows that do not divide into a format's groups become int8 instead. The parts
// must ask for the same format (kInvalidArgument).
//
// Weight-only: codes of four bits become fp8 codes, which hold every one of them exactly, with the
// same scales; int8, which it does not hold, becomes `element`. Neither quantises activations.
Result<MatrixForm> choose_form(std::span<const MatrixSource> parts, int64_t columns,
                               const WeightFormat* dtype_format, DType element);

// Whether the codes of `part` are taken as they are.
bool keeps_codes(const MatrixSource& part, const MatrixForm& form);

// Reads `part`, converts it and packs it as rows [row_begin, row_begin + part.rows) of `matrix`,
// which has the columns of `cut`. Reads the scales that load() does.
Status pack_rows(MatrixSource& part, const PackedMatrix& matrix, int64_t row_begin,
                 const ColumnCut& cut, const GemmKernel& kernel, ThreadPool& threads);

// Rows [begin, end) of `part` as codes of `form`, as packing would have them; `rows` is room for
// floats on the way. `begin` is a multiple of the format's quantise_rows.
Status make_codes(const MatrixSource& part, const MatrixForm& form, int64_t columns, int64_t begin,
                  int64_t end, std::vector<float>& rows, const QuantisedRows& to);

}  // namespace banyan
