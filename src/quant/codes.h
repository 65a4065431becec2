// Quantised rows in the form that all formats share, before any kernel packs them. There is one
// code per byte, and a scale (for uint4 also a zero point) per group of consecutive columns of a
// row:
//
//   value[r, c] = (decode(code[r, c]) - zero[r, c / group]) * scale[r, c / group]
//
// The formats of GGUF also have minima, and levels of both: kernels/gemm.h.
//
// A format's codes are those of kernels/gemm.h: int8 two's complement; int4 0..15 minus 8; uint4
// 0..15 minus its zero point; mxfp4 e2m1 with power-of-two scales; fp8 e4m3fn.
//
// Quantization depends only on the row (fp8: on the block of rows), so work may be split at any row
// (fp8: block) boundary. Thread-safe; nothing here allocates.
#pragma once

#include <cstdint>

#include "kernels/block_forms.h"

namespace banyan {

struct QuantisedRows {
  uint8_t* codes = nullptr;  // [rows, columns]
  float* scales = nullptr;   // [rows, columns / group]
  uint8_t* zeros = nullptr;  // [rows, columns / group] of uint4, else null
  // Of the formats of GGUF, else null.
  float* mins = nullptr;          // [rows, columns / group]
  int8_t* levels = nullptr;       // [rows, columns / kLevelColumns], in groups of kLevelledGroup
  uint8_t* min_levels = nullptr;  // the same
};

struct RowsShape {
  int64_t rows = 0, columns = 0;
  int64_t group = 0;  // divides columns

  int64_t groups() const { return columns / group; }
};

// Round x [rows, columns], which must be finite, to the nearest codes. int8: the largest magnitude
// of a group becomes 127.
void quantise_int8(const float* x, const RowsShape& shape, const QuantisedRows& to);
// int4: tries about twenty scales per group and refines the one with the least squared error by
// least squares. Scales are rounded to bf16 before codes are chosen. A scale is negative if that
// gives the group's larger end the code -8.
void quantise_int4(const float* x, const RowsShape& shape, const QuantisedRows& to);
// mxfp4: the exponent that fits the largest magnitude, or the one below if clipping gives a smaller
// squared error. Groups of 32.
void quantise_mxfp4(const float* x, const RowsShape& shape, const QuantisedRows& to);
// fp8: one scale per block of kFp8Block rows and columns, counted from the first of `x`. The scale
// is repeated for each row, and for each group if groups are narrower.
inline constexpr int64_t kFp8Block = 128;
void quantise_fp8(const float* x, const RowsShape& shape, const QuantisedRows& to);

// Convert back to f32.
void dequantise_int8(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_int4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_uint4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_mxfp4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_fp8(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_blocks(const BlockForm& form, const QuantisedRows& from, const RowsShape& shape,
                       float* x);

// 2^(exponent - 127), the value of an e8m0 scale byte; 255 is NaN, not a scale.
float e8m0_scale(uint8_t exponent);

}  // namespace banyan
