// The contract of matrix products: argument structs, and the arithmetic of every weight format.
//
// Weights of a format are stored as its kernel packed them. The formats:
//
//   f32, bf16, f16   the elements as they are
//   int8             codes -128..127
//   int4             codes 0..15, zero point 8
//   uint4            codes 0..15, a zero point 0..15 for every group
//   mxfp4            codes of e2m1 (OCP MX), with scales that are powers of two
//   fp8              codes of e4m3fn, never NaN
//   q2, q3, q4, q5, q6, iq4   codes of so many bits, as GGUF files store them: see the end
//
// All but the first three are quantised. Up to fp8, `group` consecutive columns of a row share a
// scale (group = k: the whole row), and weight[j, c] = (decode(code[j, c]) - zero[j, g]) * scale[j,
// g]. Groups are multiples of 32 or the whole row; k is a multiple of the group.
//
// int8, int4, uint4 and mxfp4 multiply integers, by the same arithmetic in every table, so that all
// agree bit for bit. A row of x is quantised group by group:
//
//   s = max |x_c| / 127 (0 below kQuantisedMin),   q_c = nearest even of x_c * (127 / max |x_c|)
//
// and y[j] = sum over the groups, ascending, of fma(float(sum_c q_c * i_c), s * scale[j, g], y[j])
// with i_c = code - zero, or twice the value of e2m1 with half the scale. A group that holds a NaN
// or an infinity has s = NaN.
//
// The formats of GGUF (kernels/block_forms.h) divide a group into parts of 16 or 32 columns. A
// group of 256 has a scale, and each part p of it a level, a small integer. q2, q4 and q5 have a
// minimum and a level of it too. Groups of 32 (q4, q5 and iq4 only) have no levels, as if all were
// 1:
//
//   weight[j, c] = i_c * (scale[j, g] * level[j, p]) - min[j, g] * min_level[j, p]
//
// with i_c = code - zero, or an entry of iq4's table. x is rounded in groups of 32. y[j] is, over
// the parts, ascending: fma(float(sum_c q_c * i_c), s * (scale * level), y[j]), then, with minima,
// fma(-(s * float(sum_c q_c)), min * min_level, y[j]).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/threads/thread_pool.h"

namespace banyan {

// Where a kernel runs: a queue of its table's device (null on a CPU) and the workers that share its
// rows.
struct Launch {
  void* queue = nullptr;
  ThreadPool* threads = nullptr;
};

inline constexpr float kQuantisedMin = 1e-30f;

// A group of equally shaped matrices at a fixed stride, and the rows that each is multiplied with.
// Examples: a layer's experts with the rows routed to them, the heads of an absorbed projection, or
// a single matrix.
struct GemmGroup {
  const void* weight = nullptr;  // packed [n, k], the first matrix
  int64_t weight_stride = 0;     // bytes from one matrix to the next
  int64_t count = 1;
  // [count + 1] Matrix i computes rows [begins[i], begins[i + 1]) of y. Null: each computes x_rows
  // rows.
  const int32_t* begins = nullptr;
  int64_t segment_step = 0;     // matrix i takes segment i * segment_step of a row of x: 0 or 1
  int64_t y_column_stride = 0;  // columns of y between the outputs of consecutive matrices
};

// For every matrix i of `weights` and each of its rows r:
//   y[r, i * y_column_stride + j] = sum_c x[source(r), i * segment_step, c] * weight_i[j, c]
// (+ bias_i[j]), accumulated in f32, where source(r) is r, or x_index[r] if there is one.
struct GemmArgs {
  Launch launch = {};
  const float* x = nullptr;  // [x_rows, segments, k]
  int64_t x_stride = 0;
  int64_t x_rows = 0;
  int64_t segments = 1;
  int64_t segment_stride = 0;        // between the segments of a row, at least k
  const int32_t* x_index = nullptr;  // [rows of y] or null
  GemmGroup weights = {};
  const float* bias = nullptr;  // [n] of the first matrix, or null
  int64_t bias_stride = 0;      // between matrices; 0: all share one bias
  float* y = nullptr;
  int64_t y_stride = 0;
  int64_t n = 0, k = 0;
  int64_t group = 0;          // columns per scale; k if the format has no scales
  void* workspace = nullptr;  // workspace_bytes of GemmKernel, aligned to 64
};

// Packs `row_count` rows, from `row_begin` on, of a packed [n, k] matrix. Row ranges may be packed
// in any order and concurrently; rows never packed are undefined. All pointers are to host memory,
// on every device.
struct PackArgs {
  const void* source = nullptr;    // [row_count, k] dense: elements, or codes of one byte each
  const float* scales = nullptr;   // [row_count, k / group] of quantised formats
  const uint8_t* zeros = nullptr;  // [row_count, k / group] of uint4
  // Of the formats of GGUF, whose scales and minima are f16: minima [row_count, k / group] and, in
  // groups of 256, levels [row_count, k / 16], of which a part of 32 columns has two alike.
  const float* mins = nullptr;
  const int8_t* levels = nullptr;
  const uint8_t* min_levels = nullptr;
  void* packed = nullptr;
  int64_t n = 0, k = 0, group = 0;
  int64_t row_begin = 0, row_count = 0;
};

// y[i, :] = weight[ids[i], :] as f32: embedding lookup, from the packed matrix that a tied output
// head also multiplies with.
struct GatherArgs {
  Launch launch = {};
  const void* weight = nullptr;  // packed [n, k]
  const int32_t* ids = nullptr;  // [rows], each in [0, n)
  float* y = nullptr;            // [rows, k] dense
  int64_t rows = 0, n = 0, k = 0, group = 0;
};

struct GatedGemmArgs;

// One weight format: its packed layout and its kernels. A table may lack those of the formats of
// GGUF, whose weights are then unpacked as they load.
struct GemmKernel {
  bool exists() const { return packed_bytes != nullptr; }

  size_t (*packed_bytes)(int64_t n, int64_t k, int64_t group) = nullptr;  // a multiple of 64
  // Workspace for `rows` rows of x with `segments` * k columns, in which they are rounded or
  // quantised.
  size_t (*workspace_bytes)(int64_t rows, int64_t segments, int64_t k, int64_t group) = nullptr;
  void (*pack)(const PackArgs&) = nullptr;
  void (*gather)(const GatherArgs&) = nullptr;
  void (*run)(const GemmArgs&) = nullptr;
  // If not null: whether run_gated() takes a product of gates and ups, which need not have a
  // workspace yet. Others are followed by silu_mul.
  bool (*gates)(const GemmArgs&) = nullptr;
  void (*run_gated)(const GatedGemmArgs&) = nullptr;
  // If not null and above 0: so many rows are a block, and a packed matrix is its blocks one after
  // the other, each packed like a matrix of its own.
  int64_t (*block_rows)(int64_t k, int64_t group) = nullptr;
};

}  // namespace banyan
