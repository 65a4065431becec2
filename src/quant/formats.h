// How a weight matrix is stored in memory and multiplied with. formats.cpp is the list of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kernel_table.h"
#include "kernels/operand.h"
#include "quant/codes.h"

namespace banyan {

// Codes of a model that was never trained: bytes of random bits with `clear` cleared and `set` set,
// and `unpaired`, the one value that has no negative, as `zero`. They deviate by `deviation` around
// nothing, times a scale.
struct RandomCodes {
  uint8_t clear = 0, set = 0, unpaired = 0, zero = 0;
  float deviation = 0;  // 0: the format has none
};

struct WeightFormat {
  std::string_view name;  // "bf16"
  DType element;          // of the rows that its kernel packs: elements, or codes of one byte each
  GemmKernel KernelTable::* kernel;
  Operand operand;         // the narrowest that its kernels round activations and weights to
  bool quantised = false;  // whether groups of columns have scales

  // Makes its codes from f32 rows; null if only checkpoints have them.
  void (*quantise)(const float* x, const RowsShape& shape, const QuantisedRows& to) = nullptr;
  int64_t quantise_group = 0;  // columns that share a scale then; 0: the whole row
  int64_t quantise_rows = 1;   // rows that share a scale then: work is cut between them only
  RandomCodes random = {};
};

// The columns that share a scale when rows of `columns` are quantised to `format` in groups of
// `wanted` (0: its own), or less where those do not divide the row; 0 when such rows do not divide
// into groups that kernels multiply.
int64_t quantise_group(const WeightFormat& format, int64_t columns, int64_t wanted);

std::span<const WeightFormat> weight_formats();

// The format that stores checkpoint elements of `dtype` as they are; null if there is none.
const WeightFormat* format_of(DType dtype);
const WeightFormat* format_named(std::string_view name);

// A packed [rows, columns] matrix, or `count` like ones, one after the other. A view: the weights
// of a loaded model own the bytes.
struct PackedMatrix {
  const WeightFormat* format = nullptr;
  void* data = nullptr;
  size_t bytes = 0;  // of one
  int64_t count = 1;
  int64_t rows = 0;     // output features
  int64_t columns = 0;  // input features
  int64_t group = 0;    // columns that share a scale; all of them when the format has no scales

  bool empty() const { return format == nullptr; }
  size_t total_bytes() const { return bytes * static_cast<size_t>(count); }
};

}  // namespace banyan
