// RMS norms, and what is joined with them (the definitions are in kernels/portable/rowwise.cpp).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

// The norm of one row, by a team of threads, which is a warp or a block. Each of its threads takes
// every Team-th four of columns and sums up the squares of the first, second, third and fourth.
template <int Team>
struct RowNorm {
  static constexpr int kStep = 4 * Team;                // columns
  static constexpr int kFours = Team == kWarp ? 4 : 8;  // that a thread loads before it waits

  // The squares of one thread's columns. source.load(c) has columns c to c + 3, zeros from dim on,
  // and source.keep(c, x) is called with what it returned.
  template <class Source>
  BANYAN_DEVICE static float squares(int64_t dim, int thread, const Source& source) {
    Four sums = {};
    for (int64_t first = 4 * thread; first < dim; first += kStep * kFours) {
      Four x[kFours];
      BANYAN_UNROLL
      for (int u = 0; u < kFours; ++u) x[u] = source.load(first + kStep * u);
      BANYAN_UNROLL
      for (int u = 0; u < kFours; ++u) {
        source.keep(first + kStep * u, x[u]);
        BANYAN_UNROLL
        for (int i = 0; i < 4; ++i) sums.at[i] += x[u].at[i] * x[u].at[i];
      }
    }
    return (sums.at[0] + sums.at[1]) + (sums.at[2] + sums.at[3]);
  }

  BANYAN_DEVICE static float factor(float squares, int64_t dim, float eps) {
    return 1.0f / root(squares / dim + eps);
  }

  // Calls store(c, columns c to c + 3 of x * factor * weight) for one thread's columns.
  template <class Load, class Weight, class Store>
  BANYAN_DEVICE static void scale(int64_t dim, int thread, float factor, const Load& load,
                                  const Weight& load_weight, const Store& store) {
    for (int64_t first = 4 * thread; first < dim; first += kStep * kFours) {
      Four x[kFours], weight[kFours];
      BANYAN_UNROLL
      for (int u = 0; u < kFours; ++u) {
        x[u] = load(first + kStep * u);
        weight[u] = load_weight(first + kStep * u);
      }
      BANYAN_UNROLL
      for (int u = 0; u < kFours; ++u) {
        BANYAN_UNROLL
        for (int i = 0; i < 4; ++i) x[u].at[i] = x[u].at[i] * factor * weight[u].at[i];
        store(first + kStep * u, x[u]);
      }
    }
  }
};

// The columns of a row in memory. N: 4 if they lie in fours, or 1.
template <int N>
struct RowSource {
  const float* x;
  int64_t dim;
  BANYAN_DEVICE Four load(int64_t c) const { return load_four<N>(x, c, dim); }
  BANYAN_DEVICE Four operator()(int64_t c) const { return load(c); }
  BANYAN_DEVICE void keep(int64_t, const Four&) const {}
};

// Rounds fours of columns for a product, if there is a workspace.
struct RoundFours {
  const RoundedRows& to;
  BANYAN_DEVICE void operator()(int64_t row, int64_t c, const Four& y) const {
    if (to.workspace != nullptr) to.store(row, c, y);
  }
};

// A team has a group of a row.
struct RmsNorm {
  static constexpr int64_t kWarpColumns = 512;  // at most, for which a team is a warp

  RmsNormArgs a;
  RoundedRows rounded = {};  // y rounded, if there is a workspace

  bool may_round(const GemmArgs& g) const {
    return fours() && a.groups == 1 &&
           cuda::may_round(g, a.y, a.rows, a.dim, a.y_row_stride, a.x, a.x_row_stride);
  }
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.dim, a.x_row_stride, a.weight_group_stride, a.y_row_stride, a.x, a.weight,
                    a.y);
  }
  std::array<MemoryRange, 2> reads() const {
    MemoryRange weights = float_rows(a.weight, a.groups, a.weight_group_stride, a.dim);
    return {float_rows(a.x, a.rows, a.x_row_stride, a.groups * a.dim), weights};
  }
  std::array<MemoryRange, 2> writes() const {
    size_t bytes = rounded.workspace == nullptr ? 0 : RoundedRows::bytes(a.rows, 1, a.dim);
    return {float_rows(a.y, a.rows, a.y_row_stride, a.groups * a.dim), {rounded.workspace, bytes}};
  }
  BANYAN_HOST_DEVICE int64_t items() const { return a.rows * a.groups; }
  Shape shape() const {
    return {.blocks = a.dim <= kWarpColumns ? blocks_for(items() * kWarp) : items()};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    RoundFours round = {rounded};
    if (fours()) {
      run_on<4>(block, [&](const float* x) { return RowSource<4>{x, a.dim}; }, round);
    } else {
      run_on<1>(block, [&](const float* x) { return RowSource<1>{x, a.dim}; }, round);
    }
  }

  // The rows at x are those of source_of(x), which may bring them there (RowNorm::squares). Calls
  // also(group, c, columns c to c + 3 of y); groups are numbered over all rows.
  template <int N, class Block, class SourceOf, class Also>
  BANYAN_DEVICE void run_on(Block& block, const SourceOf& source_of, const Also& also) const {
    if (a.dim <= kWarpColumns) {
      run<N, kWarp>(block, source_of, also);
    } else {
      run<N, Block::kThreads>(block, source_of, also);
    }
  }

 private:
  struct Group {
    BANYAN_DEVICE Group(const RmsNormArgs& a, int64_t item) {
      int64_t row = quotient(item, a.groups), group = item - row * a.groups;
      x = a.x + row * a.x_row_stride + group * a.dim;
      weight = a.weight + group * a.weight_group_stride;
      y = a.y + row * a.y_row_stride + group * a.dim;
    }
    const float *x, *weight;
    float* y;
  };

  template <int N, int Team, class Block, class SourceOf, class Also>
  BANYAN_DEVICE void run(Block& block, const SourceOf& source_of, const Also& also) const {
    constexpr int64_t kTeams = Block::kThreads / Team;
    for (int64_t i = block.index() * kTeams; i < items(); i += block.count() * kTeams) {
      auto squares = reduce_teams<Team>(
          block,
          [&](int thread) {
            int64_t item = i + thread / Team;
            if (item >= items()) return 0.0f;
            return RowNorm<Team>::squares(a.dim, thread % Team, source_of(Group(a, item).x));
          },
          Plus());
      block.each([&](int thread) {
        int64_t item = i + thread / Team;
        if (item < items()) normalise<N, Team>(item, thread % Team, squares[thread], also);
      });
    }
  }

  template <int N, int Team, class Also>
  BANYAN_DEVICE void normalise(int64_t item, int thread, float squares, const Also& also) const {
    Group group(a, item);
    float factor = RowNorm<Team>::factor(squares, a.dim, a.eps);
    RowSource<N> x = {group.x, a.dim}, weight = {group.weight, a.dim};
    RowNorm<Team>::scale(a.dim, thread, factor, x, weight, [&](int64_t c, const Four& y) {
      store_four<N>(group.y, c, a.dim, y);
      if (c < a.dim) also(item, c, y);
    });
  }
};

// A sum and the norm of its rows. A thread reads back only the columns that it has summed up.
struct AddRmsNorm {
  Add sum;
  RmsNorm norm;  // whose x is the sum or its copy
  RoundedRows rounded = {};

  // Whether the norm is of the sum's rows, and writes nothing that other blocks read or write.
  static bool may_join(const Add& sum, const RmsNorm& norm) {
    const RmsNormArgs& a = norm.a;
    bool of_sum = a.x == sum.a.y || a.x == sum.copy;
    bool whole_rows = a.groups == 1 && a.x_row_stride == a.dim && a.rows * a.dim == sum.a.count;
    if (!of_sum || !whole_rows || !sum.fours() || !norm.fours()) return false;
    return apart_from(sum, float_rows(a.y, a.rows, a.y_row_stride, a.dim));
  }
  bool may_round(const GemmArgs& g) const {
    if (!norm.may_round(g)) return false;
    return apart_from(sum, {g.workspace, RoundedRows::bytes(norm.a.rows, 1, norm.a.dim)});
  }
  Shape shape() const { return norm.shape(); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    norm.run_on<4>(
        block, [&](const float* x) { return Source{sum, x - norm.a.x, norm.a.dim}; },
        RoundFours{rounded});
  }

 private:
  struct Source {
    const Add& sum;
    int64_t begin;  // of the row
    int64_t dim;
    BANYAN_DEVICE Four load(int64_t c) const {
      Four x = load_four<4>(sum.a.a + begin, c, dim), more = load_four<4>(sum.a.b + begin, c, dim);
      BANYAN_UNROLL
      for (int i = 0; i < 4; ++i) x.at[i] += more.at[i];
      return x;
    }
    BANYAN_DEVICE void keep(int64_t c, const Four& x) const {
      store_four<4>(sum.a.y + begin, c, dim, x);
      if (sum.copy != nullptr) store_four<4>(sum.copy + begin, c, dim, x);
    }
  };

  // Whether a range has nothing of what the sum reads or writes.
  static bool apart_from(const Add& sum, const MemoryRange& range) {
    auto apart = [&](const float* x) {
      return x == nullptr || range.apart(floats(x, sum.a.count));
    };
    return apart(sum.a.a) && apart(sum.a.b) && apart(sum.a.y) && apart(sum.copy);
  }
};

// A norm, and its product with gates.
struct NormGateMul {
  RmsNorm norm;
  GateMul gate;  // whose x is the norm
  RoundedRows rounded = {};

  // Whether the gates are for all of the norm, and no block writes what another one reads.
  static bool may_join(const RmsNorm& norm, const GateMul& gate) {
    const RmsNormArgs& n = norm.a;
    const GateMulArgs& g = gate.a;
    bool of_norm = g.x == n.y && g.x_row_stride == n.y_row_stride && g.rows == n.rows &&
                   g.dim == n.groups * n.dim;
    if (!of_norm || !norm.fours() || !gate.fours()) return false;
    MemoryRange gates = float_rows(g.gate, g.rows, g.gate_row_stride, g.dim / g.gate_columns);
    MemoryRange y = floats(g.y, g.rows * g.dim), normed = norm.writes()[0];
    return y.apart(norm.reads()[0]) && y.apart(normed) && y.apart(gates) && normed.apart(gates);
  }
  bool may_round(const GemmArgs& g) const {
    MemoryRange workspace = {g.workspace, RoundedRows::bytes(g.x_rows, 1, g.k)};
    return gate.may_round(g) && workspace.apart(norm.reads()[0]) &&
           workspace.apart(norm.writes()[0]);
  }
  Shape shape() const { return norm.shape(); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    const RmsNormArgs& n = norm.a;
    norm.run_on<4>(
        block, [&](const float* x) { return RowSource<4>{x, n.dim}; },
        [&](int64_t item, int64_t c, const Four& y) {
          int64_t row = quotient(item, n.groups), group = item - row * n.groups;
          gate.store_gated(row, group * n.dim + c, y, rounded);
        });
  }
};

}  // namespace banyan::cuda
