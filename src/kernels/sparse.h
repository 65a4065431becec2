// The contract of sparse attention: which keys a row attends to, how they are chosen, and the index
// rows that they are chosen by. See kernel_table.h for the rules of every table.
//
// An index has a row for each *entry*: a block of consecutive positions, or a single one. Entry b
// of ratio r has positions [b r, (b + 1) r). One kernel scores the entries that a row may choose
// from (block_scores; each way to score has its own kernel), select_keys picks the best, and
// attention reads only their keys (SelectedKeys).
#pragma once

#include <cstdint>

#include "kernels/gemm.h"
#include "tensor/dtype.h"

namespace banyan {

// A run of consecutive positions of one sequence in the batch. Position p of the sequence is in
// page page_table[page_begin + p / page_size], row p % page_size.
struct SpanArgs {
  int32_t row_begin = 0;  // first row in the batch
  int32_t row_count = 0;
  int32_t first_position = 0;  // absolute position of the first row
  int32_t page_begin = 0;      // start of the sequence's pages in the page table
};

// A run of consecutive positions among the keys that a row attends to.
struct KeyRun {
  int32_t position = 0;  // of its first key
  int32_t rank = 0;      // of that key: the number of the row's keys before it
  bool operator==(const KeyRun&) const = default;
};

// The keys that rows attend to, if not all earlier ones. For each row of the batch and each head:
// runs in ascending order that neither overlap nor touch. A run ends at the rank of the next one,
// and the last run at the row's number of keys. No position is beyond the row's own.
//
// Attention addresses the keys of a row by *rank*, their index among the row's keys. It cuts tiles
// and restarts sums at multiples of rank instead of position. So a row's result is a function of
// its own keys. If all keys are selected, the bits equal those of dense attention.
struct SelectedKeys {
  const KeyRun* runs = nullptr;         // [rows, heads, runs_max]; null: all keys
  const int32_t* run_counts = nullptr;  // [rows, heads], 1 or more
  const int32_t* key_counts = nullptr;  // [rows, heads], over all runs
  int64_t heads = 1;                    // of keys and values; 1: all share one choice
  int64_t runs_max = 0;
  // Runs begin at multiples of this, and all but a row's last run end at one.
  int64_t alignment = 1;
  int64_t keys_max = 0;  // of a row; 0: not known
};

// How a row at position t chooses among the entries [0, t / entry_tokens]. The first `forced_first`
// and the last `forced_last` entries are always taken. The best of the others are added until there
// are `top_k`, or until none is left. Better means a higher score or, among equals, a lower index;
// NaN counts as -infinity, and -0 equals 0.
//
// MoBA, MiniMax-M3: forced_last is 1, the row's own block. DSA: entries of one token, none of them
// forced.
struct SelectionRule {
  int64_t entry_tokens = 1;
  int64_t top_k = 1;  // includes forced ones, of which there are not more
  int64_t forced_first = 0, forced_last = 0;
};

// The rows that a launch processes: rows [begin, begin + count) of all spans, numbered
// consecutively. The launch's arrays have entries for these rows only.
struct RowPart {
  int64_t begin = 0, count = 0;
};

// Selects keys for each row and head by scores[row, head, entry]. Scores of forced entries, and of
// rows that take all entries, are not read. Adjacent entries form one run; the last run ends at the
// row's own position.
struct SelectKeysArgs {
  Launch launch = {};
  const float* scores = nullptr;  // [part.count, heads, entries_max]
  int64_t entries_max = 0;
  int64_t heads = 1;
  SelectionRule rule = {};
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  RowPart part = {};
  KeyRun* runs = nullptr;         // [rows, heads, runs_max], by rows of the batch
  int32_t* run_counts = nullptr;  // [rows, heads]
  int32_t* key_counts = nullptr;  // [rows, heads]
  int64_t runs_max = 0;           // at least top_k
};

// The index of MoBA (mixture of block attention): the sums of a block's keys, of which a page has a
// row for each block, or one if a block is larger than a page. A row is the sum of the keys from
// its block's first position to the row's last one, as they stand in the pool, added in ascending
// order. So it is made of the row before unless it begins its block, and the last row of a block
// has the sum of all.
//
// Writes the rows whose last position is among those of the spans, whose keys are in the pool
// already. Those of pages that are not full do not exist.
struct KeySumsArgs {
  Launch launch = {};
  const void* keys = nullptr;  // [pages, heads, page_size, width], without a split
  DType key_dtype = DType::kF32;
  float* sums = nullptr;  // [pages, heads, max(1, page_size / block_tokens), width]
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t block_tokens = 0;  // divides page_size or is a multiple of it
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
};

// scores[r, h, b] = mean of the queries of head h . sums of block b / block_tokens, for the blocks
// before that of the row's own position; others are not written. The mean is the sum of the group's
// queries, in order, divided by their number.
struct BlockScoresArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows of the batch, q_heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  const float* sums = nullptr;  // as KeySumsArgs has them
  int64_t q_heads = 0, heads = 0, width = 0, page_size = 0;
  int64_t block_tokens = 0;
  float* scores = nullptr;  // [part.count, heads, entries_max]
  int64_t entries_max = 0;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  RowPart part = {};
  const int32_t* page_table = nullptr;
};

// The index of MiniMax-M3: a key of its own for every token, which all heads of the index share,
// and a block is as good as the best of its keys. For the blocks before that of the row's own
// position,
//   scores[r, h, b] = max over the positions j of block b of q[r, h] . keys[j];
// others are not written. Keys of a quantised pool are multiplied as they read back. NaN is never
// the greatest.
//
// Rows that see `all_below` keys or fewer are not scored.
struct BlockMaximaArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows of the batch, heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  const void* keys = nullptr;  // [pages, 1, page_size, width], without a split
  DType key_dtype = DType::kF32;
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t block_tokens = 0;
  int64_t all_below = 0;
  float* scores = nullptr;  // [part.count, heads, entries_max]
  int64_t entries_max = 0;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  RowPart part = {};
  const int32_t* page_table = nullptr;
};

// Pooled keys, or values, of native sparse attention (NSA). Entry e stands for the `pool_tokens`
// positions that end with the last of stride e, position (e + 1) stride - 1:
//   pooled[e, c] = bias[c] + sum over i, ascending, of
//                  weights[i, c] * keys[(e + 1) stride - pool_tokens + i, c].
// So an entry follows from the positions up to its last one. The first pool_tokens / stride - 1
// would begin before the sequence and do not exist.
//
// Writes the entries whose last position is among those of the spans, whose keys are in the pool
// already, with those of the pool_tokens - 1 positions before.
struct PoolKeysArgs {
  Launch launch = {};
  const void* keys = nullptr;  // [pages, heads, page_size, width], without a split
  DType key_dtype = DType::kF32;
  const int32_t* key_page_table = nullptr;
  const float* weights = nullptr;  // [pool_tokens, width]
  const float* bias = nullptr;     // [width]
  float* pooled = nullptr;         // [pages, heads, max(1, page_size / stride), width]
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t pool_tokens = 0;  // a multiple of the stride
  int64_t stride = 0;       // divides page_size or is a multiple of it
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  const int32_t* page_table = nullptr;
};

// Attention to pooled keys, and how much of it falls on each block. With p the softmax of
// scale * q . keys over the entries that end with the row's position or before it,
//   out[r, g] = sum over the entries of p * values, or 0 if there are none;
//   scores[r, h, b] = sum over the queries of head h and over the strides of block b of the p of
//   the
//                     entries that cover the stride.
// (Yuan et al. 2025, arXiv:2502.11089, equations 7 to 10.) Scores of all blocks up to the row's own
// are written.
struct PooledAttentionArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows of the batch, q_heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  const float *keys = nullptr, *values = nullptr;  // as PoolKeysArgs has them
  float* out = nullptr;                            // [rows of the batch, q_heads, width]
  int64_t q_heads = 0, heads = 0, width = 0, page_size = 0;
  int64_t pool_tokens = 0, stride = 0;
  int64_t block_tokens = 0;  // a multiple of the stride
  float scale = 1;
  float* scores = nullptr;  // [part.count, heads, entries_max]
  int64_t entries_max = 0;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  RowPart part = {};
  const int32_t* page_table = nullptr;
};

// The index of DeepSeek's sparse attention (DSA): a key of its own for every token, which some
// heads of its own look at. For j up to the row's position,
//   scores[r, j] = sum over h, ascending, of weights[r, h] * max(0, q[r, h] . keys[j]).
// Keys of a quantised pool are multiplied as codes, with queries that are rounded in the same way,
// each head with a scale of its own, and the key's scale goes into the sum: DeepSeek-V3.2's fp8.
// Tables that have products of bf16 pairs round q to bf16 over a bf16 pool if width is a multiple
// of 32.
//
// Rows that see `all_below` keys or fewer are not scored. Scores of later keys may be written where
// other rows of the span see them.
struct IndexScoresArgs {
  Launch launch = {};
  const float* q = nullptr;  // [rows of the batch, heads, width], heads dense inside a row
  int64_t q_row_stride = 0;
  const float* weights = nullptr;  // [rows of the batch, heads]
  int64_t weights_row_stride = 0;
  const void* keys = nullptr;  // [pages, 1, page_size, width], without a split
  DType key_dtype = DType::kF32;
  int64_t heads = 0, width = 0, page_size = 0;
  int64_t all_below = 0;
  float* scores = nullptr;  // [part.count, entries_max]
  int64_t entries_max = 0;
  const SpanArgs* spans = nullptr;
  int64_t span_count = 0;
  RowPart part = {};
  const int32_t* page_table = nullptr;
};

// y = H x / sqrt(dim) for each group of `dim` columns, a power of two: H is the Hadamard matrix of
// Sylvester's order, its own inverse but for the factor. It spreads what is large in one column
// over all, and changes products of two such rows by their rounding alone.
struct HadamardArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, groups, dim]
  int64_t x_row_stride = 0;
  float* y = nullptr;  // [rows, groups, dim] dense
  int64_t rows = 0, groups = 1, dim = 0;
};

// y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * weight + bias, over the columns.
struct LayerNormArgs {
  Launch launch = {};
  const float* x = nullptr;  // [rows, dim]
  int64_t x_row_stride = 0;
  const float *weight = nullptr, *bias = nullptr;  // [dim]
  float* y = nullptr;                              // [rows, dim] dense
  int64_t rows = 0, dim = 0;
  float eps = 0;
};

}  // namespace banyan
