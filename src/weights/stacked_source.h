// A checkpoint whose stacked tensors can also be read in parts. A tensor with the matrices of all
// experts of a layer, [experts, rows, columns] or [experts, columns, rows], appears as one matrix
// per expert. Nothing is copied until a part is read.
//
// Parts may take every second row only, for interleaved gate and up projections.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "banyan/status.h"
#include "weights/files/checkpoint.h"

namespace banyan {

// Rows first_row, first_row + row_step, ... of each of the `count` items of a stacked tensor.
struct StackPart {
  std::string_view leaf;  // "gate_proj.weight": the part of item i is <scope>.<i>.<leaf>
  int64_t rows = 0;       // rows of the part
  int64_t first_row = 0, row_step = 1;
};

// The shape of a stacked tensor: [count, rows, columns], or [count, columns, rows] if transposed,
// where columns may span several dimensions; [count, rows] if columns is 0.
struct StackShape {
  int64_t count = 0, rows = 0, columns = 0;
  bool transposed = false;
};

class StackedSource final : public WeightSource {
 public:
  // `whole` must outlive this.
  explicit StackedSource(const WeightSource& whole) : whole_(&whole) {}

  // Exposes `part` of each item of `whole`, one of the source's tensors, below `scope`. kCorrupt
  // names the tensor if it has another shape.
  Status split(const TensorInfo& whole, std::string_view scope, const StackShape& shape,
               const StackPart& part);

  const TensorInfo* find(std::string_view name) const override;
  // The checkpoint's tensors, without parts.
  std::vector<const TensorInfo*> tensors() const override { return whole_->tensors(); }
  // For a part, only whole rows can be read.
  Status read(const TensorInfo& tensor, size_t offset, std::span<std::byte> to) const override;
  const MappedFile* file_of(const TensorInfo& tensor) const override;

 private:
  struct View {
    TensorInfo info;
    const TensorInfo* whole = nullptr;
    size_t first_byte = 0;
    int64_t columns = 1;  // elements per row
    size_t element_bytes = 1;
    size_t row_stride = 0, column_stride = 0;  // bytes
  };

  const View* view_of(const TensorInfo& tensor) const;
  Status read_rows(const View& view, size_t begin, size_t end, std::byte* to) const;
  Status read_columns(const View& view, size_t begin, size_t end, std::byte* to) const;

  const WeightSource* whole_;
  std::map<std::string, View, std::less<>> views_;
};

}  // namespace banyan
