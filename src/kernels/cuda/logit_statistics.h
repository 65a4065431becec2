// Statistics of rows of logits in two launches (the definition is in kernels/portable/rowwise.cpp):
// blocks share the parts of all rows, and merge those of each row. Parts have so many columns
// whatever the number of rows, so that no other row changes a bit.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

inline constexpr int64_t kLogitColumns = 2048;                 // of a part
inline constexpr size_t kLogitScratchBytes = size_t{4} << 20;  // for the parts of a launch
inline constexpr int64_t kLogitFours = kLogitColumns / 4 / kBlockThreads;  // of a thread

constexpr int64_t logit_parts(int64_t dim) {
  return (dim + kLogitColumns - 1) / kLogitColumns;
}

// The best logit, and how many are NaN.
struct TopLogit {
  Best best;
  int32_t nans = 0;

  BANYAN_HOST_DEVICE constexpr void add(float value, int64_t index) {
    if (is_nan(value)) {
      ++nans;
    } else {
      best = Better()(best, {value, static_cast<int32_t>(index)});
    }
  }
  // Whether the sum of the exponentials counts: for an infinite maximum, log_sum_exp is the
  // maximum.
  BANYAN_HOST_DEVICE constexpr bool has_sum() const { return is_finite(best.value) && nans == 0; }
};
struct MergeTops {
  BANYAN_HOST_DEVICE constexpr TopLogit operator()(const TopLogit& x, const TopLogit& y) const {
    return {Better()(x.best, y.best), x.nans + y.nans};
  }
};

struct LogitPart {
  double sum = 0;  // of exp(x - best), if the part has one
  TopLogit top;
  int32_t unused = 0;
};

struct LogitParts {
  LogitStatsArgs a;
  LogitPart* parts;  // [rows, logit_parts]
  Shape shape() const { return {.blocks = a.rows * logit_parts(a.dim)}; }

  struct Values {
    Four at[kLogitFours];
  };

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    bool fours = in_fours(a.dim, a.x_row_stride, a.x);
    int64_t of_row = logit_parts(a.dim);
    for (int64_t i = block.index(); i < a.rows * of_row; i += block.count()) {
      int64_t r = quotient(i, of_row), first = (i - r * of_row) * kLogitColumns;
      const float* x = a.x + r * a.x_row_stride;
      LogitPart part = fours ? part_of<4>(block, x, first) : part_of<1>(block, x, first);
      block.one([&] { parts[i] = part; });
    }
  }

  BANYAN_DEVICE static int64_t column(int64_t first, int thread, int u) {
    return first + 4 * (u * kBlockThreads + thread);
  }

  template <int N, class Block>
  BANYAN_DEVICE LogitPart part_of(Block& block, const float* x, int64_t first) const {
    typename Block::template PerThread<Values> values;
    LogitPart part;
    part.top = block.reduce(
        [&](int thread) {
          Four(&v)[kLogitFours] = values[thread].at;
          BANYAN_UNROLL
          for (int u = 0; u < kLogitFours; ++u) {
            v[u] = load_four<N>(x, column(first, thread, u), a.dim, -kInfinity);
          }
          return top_of(v, first, thread);
        },
        MergeTops());
    if (!part.top.has_sum()) return part;
    part.sum = block.reduce(
        [&](int thread) { return sum_of(values[thread].at, part.top.best.value); }, Plus());
    return part;
  }

  BANYAN_DEVICE TopLogit top_of(const Four (&v)[kLogitFours], int64_t first, int thread) const {
    TopLogit top;
    BANYAN_UNROLL
    for (int u = 0; u < kLogitFours; ++u) {
      BANYAN_UNROLL
      for (int i = 0; i < 4; ++i) {
        int64_t c = column(first, thread, u) + i;
        if (c < a.dim) top.add(v[u].at[i], c);
      }
    }
    return top;
  }

  BANYAN_DEVICE static double sum_of(const Four (&v)[kLogitFours], float best) {
    double sum = 0;
    BANYAN_UNROLL
    for (int u = 0; u < kLogitFours; ++u) {
      BANYAN_UNROLL
      for (int i = 0; i < 4; ++i) sum += static_cast<double>(exp(v[u].at[i] - best));
    }
    return sum;
  }
};

// A block per row.
struct MergeLogits {
  LogitStatsArgs a;
  const LogitPart* parts;
  Shape shape() const { return {.blocks = a.rows}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t count = logit_parts(a.dim);
    for (int64_t r = block.index(); r < a.rows; r += block.count()) {
      const LogitPart* of_row = parts + r * count;
      TopLogit top = block.reduce(
          [&](int thread) {
            TopLogit top;
            for (int64_t i = thread; i < count; i += kBlockThreads) {
              top = MergeTops()(top, of_row[i].top);
            }
            return top;
          },
          MergeTops());
      float max = top.best.value, log_sum = 0;
      if (top.has_sum()) {
        log_sum = log(sum_over(block, count, [&](int64_t i) {
          return of_row[i].sum * exp(of_row[i].top.best.value - max);
        }));
      }
      block.one([&] {
        a.max[r] = max;
        a.argmax[r] = top.best.index < 0 ? 0 : top.best.index;
        a.log_sum_exp[r] = top.nans > 0 ? not_a_number() : max + log_sum;
      });
    }
  }
};

// Of as many rows at a time as have memory for their parts.
template <class Device>
void logit_statistics(const LogitStatsArgs& all) {
  LogitStatsArgs args = all;
  auto row_bytes = static_cast<size_t>(logit_parts(args.dim)) * sizeof(LogitPart);
  auto rows_max = static_cast<int64_t>(kLogitScratchBytes / row_bytes);
  for (int64_t rows = all.rows; rows > 0; rows -= rows_max) {
    args.rows = least(rows, rows_max);
    auto* parts = reinterpret_cast<LogitPart*>(
        Device::scratch(args.launch.queue, static_cast<size_t>(args.rows) * row_bytes));
    Device::launch(args.launch.queue, LogitParts{args, parts});
    Device::launch(args.launch.queue, MergeLogits{args, parts});
    args.x += rows_max * args.x_row_stride;
    args.max += rows_max;
    args.argmax += rows_max;
    args.log_sum_exp += rows_max;
  }
}

}  // namespace banyan::cuda
