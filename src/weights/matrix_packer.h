// Converts a matrix from its stored form to a kernel's packed form.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "banyan/status.h"
#include "base/threads/thread_pool.h"
#include "dist/shard.h"
#include "quant/formats.h"
#include "weights/quantization_plan.h"
#include "weights/stored_matrix.h"

namespace banyan {

// One of several stacked matrices, or a rank's part of it.
struct MatrixSource {
  std::string name;                    // "model.layers.0.self_attn.q_proj"
  int64_t rows = 0;                    // rows taken
  std::optional<StoredMatrix> stored;  // absent: seeded random numbers or codes
  QuantizationPlan::Choice choice = {};
  int64_t first_row = 0;   // first row taken
  int64_t whole_rows = 0;  // rows of the stored matrix
  Shard shard = {};
};

// The columns taken of every row, whose codes are computed from the whole row.
struct ColumnCut {
  int64_t begin = 0, count = 0;
  int64_t whole = 0;  // columns of a stored row
  int64_t group = 0;  // columns per scale
};

struct MatrixForm {
  const WeightFormat* format = nullptr;
  int64_t group = 0;  // columns per scale
};

// The memory form of stacked `parts` with `columns` each: the one their overrides request, else
// `dtype_format` if not null, else one that holds all of them without loss. Parts that only f32
// arithmetic can combine, such as weights with reordered groups, use `element` or a wider type.
// Rows that a format's groups do not divide become int8. All parts must request the same format
// (kInvalidArgument).
//
// Weight-only: 4-bit codes become fp8 codes, which represent them exactly, with the same scales.
// int8 and the formats of GGUF, which fp8 cannot represent, become `element`. Neither quantises
// activations.
Result<MatrixForm> choose_form(std::span<const MatrixSource> parts, int64_t columns,
                               const WeightFormat* dtype_format, DType element);

// Divides stacked parts where neighbours have no form in common but one of them has an exact one,
// as the values of a Q4_K_M file have: those are separate matrices. One run if all parts get the
// same form, as requested.
std::vector<std::span<const MatrixSource>> split_by_form(std::span<const MatrixSource> parts,
                                                         int64_t columns,
                                                         const WeightFormat* dtype_format);

// Whether the codes of `part` are used unchanged.
bool keeps_codes(const MatrixSource& part, const MatrixForm& form);

// Reads the rows of `part` that become rows of `matrix`, if its first one would be row `row_begin`,
// converts them and packs the columns of `cut`. `row_begin` is negative if `matrix` is a piece of
// what `part` belongs to. What is stored has been loaded.
Status pack_rows(const MatrixSource& part, const PackedMatrix& matrix, int64_t row_begin,
                 const ColumnCut& cut, const GemmKernel& kernel, ThreadPool& threads);

// Rows [begin, end) of `part` as codes of `form`, equal to those of packing; `rows` is scratch
// space. `begin` is a multiple of the format's quantise_rows.
Status make_codes(const MatrixSource& part, const MatrixForm& form, int64_t columns, int64_t begin,
                  int64_t end, std::vector<float>& rows, const QuantisedRows& to);

}  // namespace banyan
