// One matrix [rows, columns] as a checkpoint stores it, plain or quantised: its tensors, its
// lossless form in memory, and its rows as codes or as f32. Tensors by kind of storage:
//
//   plain                              weight
//   fp8, int8 (blocks, rows, groups)   weight, weight_scale(_inv), weight_zero_point
//   compressed-tensors, packed         weight_packed, weight_scale, weight_zero_point, weight_g_idx
//   mxfp4, nvfp4                       weight_packed or weight, weight_scale, a global scale
//   AWQ, GPTQ                          qweight, qzeros, scales, g_idx
//   a block format of GGUF             weight
//
// find() checks names, shapes and dtypes and reads only tiny tensors. load() reads scales and zero
// points and rejects non-finite ones with the tensor's name. Rows can then be read from any thread.
// All data from the file is untrusted until checked here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "quant/codes.h"
#include "weights/files/checkpoint.h"
#include "weights/quant_config.h"

namespace banyan {

// How codes are laid out in their tensor.
enum class CodeLayout : uint8_t {
  kElements,   // [rows, columns] floating-point numbers, no codes
  kBytes,      // [rows, columns], one byte each
  kNibbles,    // [rows, bytes], low nibble first
  kGptqWords,  // [columns / per word, rows] I32 words along the columns, lowest bits first
  kAwqWords,   // [columns, rows / 8] I32 words along the rows, in AWQ's order
  kBlocks,     // [rows, columns] in a block format of GGUF
};

// The type of a code, before its zero point and scale.
enum class CodeType : uint8_t { kInt8, kUint8, kUint4, kE4m3, kE2m1 };

class StoredMatrix {
 public:
  // The matrix `name`.weight or its quantised equivalent. kNotFound names what is missing.
  static Result<StoredMatrix> find(const WeightSource& source, const QuantConfig& config,
                                   const std::string& name, int64_t rows, int64_t columns);

  // Every tensor that it consists of, and those that belong to it, such as activation scales.
  const std::vector<const TensorInfo*>& tensors() const { return tensors_; }

  // The weight format that represents it exactly, and its columns per scale. Empty if there is
  // none; rows must then be read as f32.
  std::string_view format() const { return format_; }
  int64_t group() const { return group_; }
  // For people: "fp8 e4m3, blocks of 128 x 128".
  std::string describe() const;

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  // The dtype of the elements of a plain matrix.
  bool is_plain() const { return layout_ == CodeLayout::kElements; }
  DType element() const { return codes_->dtype; }

  // Reads the data that all rows need. Call before reading rows.
  Status load();

  // Rows [begin, end) as codes of format(), with one scale per `group` columns, which must divide
  // group(), and zero points if `to` has room for them.
  Status read_codes(int64_t begin, int64_t end, int64_t group, const QuantisedRows& to) const;
  // Rows [begin, end) as f32 [end - begin, columns].
  Status read_floats(int64_t begin, int64_t end, float* to) const;
  // Rows [begin, end) of a plain matrix, as stored in the file.
  Status read_elements(int64_t begin, int64_t end, std::byte* to) const;

 private:
  friend class StoredFinder;

  // Scales or zero points: a grid [grid_rows, grid_columns] whose entries each cover `row_block`
  // rows and `column_block` columns.
  struct Grid {
    const TensorInfo* tensor = nullptr;
    int64_t rows = 0, columns = 0;
    int64_t row_block = 1, column_block = 1;
    bool transposed = false;  // the tensor is [columns, rows]
  };

  StoredMatrix() = default;

  void choose_format();
  Status load_scales();
  Status load_zeros();
  Status load_packed_zeros(const std::vector<std::byte>& raw);
  Status load_global_scale();
  Status check_symmetric_words(const std::vector<std::byte>& raw) const;

  Status unpack_codes(int64_t begin, int64_t end, uint8_t* codes) const;
  Status unpack_nibbles(int64_t begin, int64_t end, uint8_t* codes) const;
  void unpack_gptq(int64_t begin, int64_t end, uint8_t* codes) const;
  void unpack_awq(int64_t begin, int64_t end, uint8_t* codes) const;
  Status check_codes(int64_t begin, const uint8_t* codes, int64_t count) const;
  float scale_at(int64_t row, int64_t grid_column) const;
  int zero_at(int64_t row, int64_t grid_column) const;

  const WeightSource* source_ = nullptr;
  std::vector<const TensorInfo*> tensors_;
  std::string name_;
  int64_t rows_ = 0, columns_ = 0;
  CodeLayout layout_ = CodeLayout::kElements;
  CodeType type_ = CodeType::kUint4;
  const TensorInfo* codes_ = nullptr;
  Grid scales_;
  const TensorInfo* zeros_ = nullptr;  // null: none, or all are the midpoint
  int64_t zero_add_ = 0;               // added to a stored zero point
  bool check_zeros_ = false;           // zeros_ must all be the midpoint: GPTQ's `sym`
  const TensorInfo* global_ = nullptr;
  bool divide_by_global_ = false;
  std::vector<int32_t> column_groups_;  // group of each column, if not in order

  std::string_view format_;
  int64_t group_ = 0;

  // Filled by load().
  std::vector<float> scale_values_;     // scales_.rows * scales_.columns
  std::vector<int16_t> zero_values_;    // the same grid; empty: the midpoint
  std::vector<std::byte> whole_codes_;  // of the word layouts, whose words span several rows
};

}  // namespace banyan
