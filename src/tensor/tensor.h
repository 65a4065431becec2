// A view of elements in memory: pointer, element type, shape and strides. Passed by value and
// non-owning, like std::span; the step arena, the pools or the weights own the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/check.h"
#include "tensor/dtype.h"

namespace banyan {

class Tensor {
 public:
  static constexpr int kRankMax = 4;

  Tensor() = default;

  // A dense row-major view of `data`.
  Tensor(void* data, DType dtype, std::initializer_list<int64_t> shape)
      : data_(data), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
    CHECK(rank_ <= kRankMax, "rank {}", rank_);
    int axis = 0;
    for (int64_t extent : shape) shape_[axis++] = extent;
    int64_t stride = 1;
    for (axis = rank_ - 1; axis >= 0; --axis) {
      strides_[axis] = stride;
      stride *= shape_[axis];
    }
  }

  bool empty() const { return rank_ == 0; }  // no tensor, such as an absent bias
  int rank() const { return rank_; }
  int64_t dim(int axis) const { return shape_[axis < 0 ? axis + rank_ : axis]; }
  int64_t stride(int axis) const {
    return strides_[axis < 0 ? axis + rank_ : axis];
  }  // in elements
  DType dtype() const { return dtype_; }
  void* data() const { return data_; }

  float* f32() const {
    CHECK(dtype_ == DType::kF32, "{}", dtype_name(dtype_));
    return static_cast<float*>(data_);
  }

  // Aborts unless this is an f32 matrix of `columns` columns.
  void check_matrix(int64_t columns) const {
    CHECK(rank_ == 2 && dtype_ == DType::kF32 && shape_[1] == columns,
          "rank {}, {}, {} columns where {} are wanted", rank_, dtype_name(dtype_), shape_[1],
          columns);
  }

  int64_t count() const {
    int64_t product = rank_ == 0 ? 0 : 1;
    for (int axis = 0; axis < rank_; ++axis) product *= shape_[axis];
    return product;
  }
  size_t bytes() const { return static_cast<size_t>(count()) * dtype_bytes(dtype_); }

  // Rows [begin, begin + rows) of the first axis.
  Tensor rows(int64_t begin, int64_t rows) const { return slice(0, begin, rows); }

  // Columns [begin, begin + columns) of the last axis, keeping the strides.
  Tensor columns(int64_t begin, int64_t columns) const { return slice(rank_ - 1, begin, columns); }

 private:
  Tensor slice(int axis, int64_t begin, int64_t extent) const {
    CHECK(begin >= 0 && extent >= 0 && begin + extent <= shape_[axis], "[{}, +{}) of {}", begin,
          extent, shape_[axis]);
    Tensor view = *this;
    auto bytes = begin * strides_[axis] * static_cast<int64_t>(dtype_bytes(dtype_));
    view.data_ = static_cast<std::byte*>(data_) + bytes;
    view.shape_[axis] = extent;
    return view;
  }

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, kRankMax> shape_ = {};
  std::array<int64_t, kRankMax> strides_ = {};
};

}  // namespace banyan
