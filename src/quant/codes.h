// Quantised rows as every format states them, outside of any kernel's packed layout: one code per
// byte, and a scale (and for uint4 a zero point) for each group of consecutive columns of a row:
//
//   value[r, c] = (decode(code[r, c]) - zero[r, c / group]) * scale[r, c / group]
//
// A format's codes are those of kernels/gemm.h: int8 two's complement; int4 0..15 less 8; uint4
// 0..15 less its zero point; mxfp4 e2m1 with scales that are powers of two; fp8 e4m3fn.
//
// Quantising is a function of the row (fp8: of the block of rows) alone, so that work may be cut
// anywhere between them. Thread-safe; nothing here allocates.
#pragma once

#include <cstdint>

namespace banyan {

struct QuantisedRows {
  uint8_t* codes = nullptr;  // [rows, columns]
  float* scales = nullptr;   // [rows, columns / group]
  uint8_t* zeros = nullptr;  // [rows, columns / group] of uint4, else null
};

struct RowsShape {
  int64_t rows = 0, columns = 0;
  int64_t group = 0;  // divides columns

  int64_t groups() const { return columns / group; }
};

// Nearest codes for x [rows, columns], whose values are finite.
// int8: the largest magnitude of a group becomes 127.
void quantise_int8(const float* x, const RowsShape& shape, const QuantisedRows& to);
// int4: of some twenty scales of each group the one with the least squared error, refined by least
// squares. Scales are rounded to bf16 before the codes are chosen, and may be negative: the sign
// that gives the larger end of the group the code of -8.
void quantise_int4(const float* x, const RowsShape& shape, const QuantisedRows& to);
// mxfp4: the exponent with which the largest magnitude fits, or the one below if that clips it for
// a smaller squared error. Groups of 32.
void quantise_mxfp4(const float* x, const RowsShape& shape, const QuantisedRows& to);
// fp8: one scale for every kFp8Block rows and columns, the first of which are the first of `x`;
// it is repeated for each row, and for each group where those are narrower.
inline constexpr int64_t kFp8Block = 128;
void quantise_fp8(const float* x, const RowsShape& shape, const QuantisedRows& to);

// The values, as f32.
void dequantise_int8(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_int4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_uint4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_mxfp4(const QuantisedRows& from, const RowsShape& shape, float* x);
void dequantise_fp8(const QuantisedRows& from, const RowsShape& shape, float* x);

// 2^(exponent - 127), the scale that an e8m0 byte stands for; 255 is NaN and no scale.
float e8m0_scale(uint8_t exponent);

}  // namespace banyan
