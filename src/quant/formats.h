// Weight formats: how a matrix is stored in memory and multiplied. formats.cpp is the list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/kernel_table.h"
#include "kernels/operand.h"
#include "quant/codes.h"

namespace banyan {

// Random codes for an untrained model: random bytes with the bits of `clear` cleared and those of
// `set` set; `unpaired`, the one value without a negative, becomes `zero`. Their mean is 0 and
// their standard deviation `deviation`, times a scale.
struct RandomCodes {
  uint8_t clear = 0, set = 0, unpaired = 0, zero = 0;
  float deviation = 0;  // 0: the format has no random codes
};

struct WeightFormat {
  std::string_view name;  // "bf16"
  DType element;          // of the rows that its kernel packs: elements, or one-byte codes
  GemmKernel KernelTable::* kernel;
  Operand operand;         // narrowest type to which its kernels round activations and weights
  bool quantised = false;  // whether groups of columns have scales
  const BlockForm* blocks = nullptr;  // of a format of GGUF

  // Quantises f32 rows to this format; null if only checkpoints provide it.
  void (*quantise)(const float* x, const RowsShape& shape, const QuantisedRows& to) = nullptr;
  int64_t quantise_group = 0;  // columns per scale when quantising; 0: the whole row
  int64_t quantise_rows = 1;   // rows per scale when quantising: work is split only between them
  RandomCodes random = {};
};

// Columns per scale when rows of `columns` are quantised to `format` in groups of `wanted` (0: the
// format's default). Smaller if that does not divide the row; 0 if the row has no group size that
// kernels support.
int64_t quantise_group(const WeightFormat& format, int64_t columns, int64_t wanted);

std::span<const WeightFormat> weight_formats();

// The format that stores checkpoint elements of `dtype` unchanged; null if there is none.
const WeightFormat* format_of(DType dtype);
const WeightFormat* format_named(std::string_view name);

// A packed [rows, columns] matrix, or `count` of equal shape in sequence. A view: the weights of a
// loaded model own the bytes.
struct PackedMatrix {
  const WeightFormat* format = nullptr;
  void* data = nullptr;
  size_t bytes = 0;  // of one matrix
  int64_t count = 1;
  int64_t rows = 0;     // output features
  int64_t columns = 0;  // input features
  int64_t group = 0;    // columns per scale; all columns if the format has no scales

  bool empty() const { return format == nullptr; }
  size_t total_bytes() const { return bytes * static_cast<size_t>(count); }
};

}  // namespace banyan
