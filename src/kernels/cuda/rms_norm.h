// RMS norms, and what is joined with them (the definitions are in kernels/portable/rowwise.cpp).
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/moe.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/cuda/rowwise.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

// The columns of a row from one on. N: 4 if they lie in fours, or 1.
template <int N>
struct RowSource {
  const float* x;
  int rest;  // how many columns there are

  BANYAN_DEVICE RowSource at(int c) const { return {x + c, rest - c}; }
  BANYAN_DEVICE Four load(int c) const { return load_four<N>(x, c, rest); }
  BANYAN_DEVICE void keep(int, const Four&) const {}
  // Of columns 0, step, 2 step, ...
  template <int step, int count>
  BANYAN_DEVICE void load_all(Four (&fours)[count]) const {
    BANYAN_UNROLL
    for (int u = 0; u < count; ++u) fours[u] = load(step * u);
  }
};

// The norm of one row, by a team of threads, which is a warp or a block. Each of its threads takes
// every Team-th four of columns and sums up the squares of the first, second, third and fourth.
// Offsets from a thread's first column are constants, or addresses would be most of the code.
template <int Team>
struct RowNorm {
  static constexpr int kStep = 4 * Team;                // columns
  static constexpr int kFours = Team == kWarp ? 4 : 8;  // that a thread keeps
  static constexpr int kKept = kStep * kFours;          // columns of a row

  // One thread's fours of the first columns, with their weights: most rows have no others.
  struct Kept {
    Four x[kFours], weight[kFours];
  };

  // The squares of one thread's columns. source.load(c) has columns c to c + 3, zeros from the
  // row's end on, and load_all several fours; source.keep(c, x) is called with what they returned.
  template <class Source, class Weights>
  BANYAN_DEVICE static float squares(int thread, const Source& row, const Weights& weights,
                                     Kept& kept) {
    Source source = row.at(4 * thread);
    Weights weight = weights.at(4 * thread);
    source.template load_all<kStep>(kept.x);
    weight.template load_all<kStep>(kept.weight);
    Four sums = {};
    auto add = [&](int c, const Four& x) {
      source.keep(c, x);
      BANYAN_UNROLL
      for (int i = 0; i < 4; ++i) sums.at[i] += x.at[i] * x.at[i];
    };
    BANYAN_UNROLL
    for (int u = 0; u < kFours; ++u) add(kStep * u, kept.x[u]);
    BANYAN_NO_UNROLL
    for (int c = kKept; c < source.rest; c += kStep) add(c, source.load(c));
    return (sums.at[0] + sums.at[1]) + (sums.at[2] + sums.at[3]);
  }

  BANYAN_DEVICE static float factor(float squares, int64_t dim, float eps) {
    return 1.0f / root(squares / dim + eps);
  }

  // Calls store(c, columns c to c + 3 of x * factor * weight) for one thread's columns, counted
  // from its first, and keeps them in place of x. `row`: the sum's row in memory, where the source
  // keeps it.
  template <int N, class Store>
  BANYAN_DEVICE static void scale(int thread, float factor, const RowSource<N>& row,
                                  const RowSource<N>& weights, Kept& kept, const Store& store) {
    RowSource<N> source = row.at(4 * thread), weight = weights.at(4 * thread);
    auto put = [&](int c, Four& x, const Four& w) {
      if (c >= source.rest) return;
      BANYAN_UNROLL
      for (int i = 0; i < 4; ++i) x.at[i] = x.at[i] * factor * w.at[i];
      store(c, x);
    };
    BANYAN_UNROLL
    for (int u = 0; u < kFours; ++u) put(kStep * u, kept.x[u], kept.weight[u]);
    BANYAN_NO_UNROLL
    for (int c = kKept; c < source.rest; c += kStep) {
      Four x = source.load(c);
      put(c, x, weight.load(c));
    }
  }
};

// Rounds fours of columns of a norm for a product, if there is a workspace.
struct RoundRow {
  const RoundedRows& to;

  struct Place {
    RoundedRows::Place place;
    BANYAN_DEVICE void operator()(int c, const Four& y) const {
      if (place.at != nullptr) place.store(c, y);
    }
  };
  // Columns are counted from this one on, in steps of a whole tile.
  BANYAN_DEVICE Place at(int64_t row, int64_t column) const {
    if (to.workspace == nullptr) return {};
    return {to.place(row, column)};
  }
  template <class Norm, class Block, class AllKept>
  BANYAN_DEVICE void finish(Block&, int64_t, AllKept&) const {}
};

// Quantises a row of a norm for a product, as the threads of its block keep it.
struct QuantiseRow {
  const QuantisedRows& to;

  struct Place {
    BANYAN_DEVICE void operator()(int, const Four&) const {}
  };
  BANYAN_DEVICE Place at(int64_t, int64_t) const { return {}; }
  // A warp keeps 128 columns in a row of each four, so that its lanes have whole groups. Fours turn
  // past one place, so that the code is there once.
  template <class Norm, class Block, class AllKept>
  BANYAN_DEVICE void finish(Block& block, int64_t row, AllKept& kept) const {
    BANYAN_NO_UNROLL
    for (int first = 0; first < to.k; first += kAtOnce * Norm::kStep) {
      auto column = [&](int thread, int i) { return first + i * Norm::kStep + 4 * thread; };
      auto sizes = block.reduce_lanes(
          static_cast<int>(to.group) / 4,
          [&](int thread) {
            Sizes own;
            BANYAN_UNROLL
            for (int i = 0; i < kAtOnce; ++i) {
              if (column(thread, i) < to.k) own.of[i].add(kept[thread].x[i]);
            }
            return own;
          },
          LargestSizes());
      block.alone([&](int thread) {
        BANYAN_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          if (column(thread, i) < to.k) {
            store(row, column(thread, i), kept[thread].x[i], sizes[thread].of[i]);
          }
        }
        BANYAN_UNROLL
        for (int u = kAtOnce; u < Norm::kFours; ++u) {
          kept[thread].x[u - kAtOnce] = kept[thread].x[u];
        }
      });
    }
  }

 private:
  static constexpr int kAtOnce = 2;  // fours

  struct Sizes {
    GroupSize of[kAtOnce];
  };
  struct LargestSizes {
    BANYAN_HOST_DEVICE Sizes operator()(Sizes a, const Sizes& b) const {
      BANYAN_UNROLL
      for (int i = 0; i < kAtOnce; ++i) a.of[i] = LargestSize()(a.of[i], b.of[i]);
      return a;
    }
  };

  BANYAN_DEVICE void store(int64_t row, int c, const Four& x, const GroupSize& size) const {
    to.store_in_chunk(row, 0, c, size.codes(x));
    if (remainder(c, to.group) > 0) return;
    *to.step_in_chunk(row, 0, quotient(c, to.group)) = size.step();
  }
};

// Calls run(RoundRow or QuantiseRow), whatever has a workspace: each with code of its own.
template <class Run>
BANYAN_DEVICE void prepare_rows(const RoundedRows& rounded, const QuantisedRows& quantised,
                                const Run& run) {
  if (quantised.workspace != nullptr) {
    run(QuantiseRow{quantised});
  } else {
    run(RoundRow{rounded});
  }
}

// A team has a group of a row.
struct RmsNorm {
  static constexpr int64_t kWarpColumns = 512;  // at most, for which a team is a warp

  RmsNormArgs a;
  // y for a product, if they have a workspace.
  RoundedRows rounded = {};
  QuantisedRows quantised = {};

  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    return fours() && a.groups == 1 &&
           cuda::may_prepare(g, workspace, a.y, a.rows, a.dim, a.y_row_stride, a.x, a.x_row_stride);
  }
  // By the block that keeps a row.
  bool may_quantise(const QuantisedRows& to) const {
    return a.dim > kWarpColumns && a.dim <= RowNorm<kBlockThreads>::kKept && to.group <= 4 * kWarp;
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
    return {float_rows(a.y, a.rows, a.y_row_stride, a.groups * a.dim),
            prepared_range(rounded, quantised)};
  }
  BANYAN_HOST_DEVICE Constants constants() const {
    return {a.weight, (a.groups - 1) * a.weight_group_stride + a.dim};
  }
  BANYAN_HOST_DEVICE int64_t items() const { return a.rows * a.groups; }
  BANYAN_HOST_DEVICE int columns() const { return static_cast<int>(a.dim); }
  Shape shape() const {
    return {.blocks = a.dim <= kWarpColumns ? blocks_for(items() * kWarp) : items()};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    auto rows = [&]<int N>(const auto& also) {
      run_on<N>(block, [&](const float* x) { return RowSource<N>{x, columns()}; }, also);
    };
    if (!fours()) return rows.template operator()<1>(RoundRow{rounded});
    prepare_rows(rounded, quantised, [&](const auto& also) { rows.template operator()<4>(also); });
  }

  // The rows at x are those of source_of(x), which may bring them there (RowNorm::squares). Calls
  // also.at(group, c)(i, columns c + i to c + i + 3 of y), and, where a block has a group,
  // also.finish<RowNorm>(block, group, what its threads keep) after it; groups are numbered over
  // all rows.
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
    const float *x = nullptr, *weight = nullptr;
    float* y = nullptr;
  };
  BANYAN_DEVICE Group group_of(int64_t item) const {
    int64_t row = quotient(item, a.groups), group = item - row * a.groups;
    return {a.x + row * a.x_row_stride + group * a.dim, a.weight + group * a.weight_group_stride,
            a.y + row * a.y_row_stride + group * a.dim};
  }

  template <int N, int Team, class Block, class SourceOf, class Also>
  BANYAN_DEVICE void run(Block& block, const SourceOf& source_of, const Also& also) const {
    using Norm = RowNorm<Team>;
    constexpr int64_t kTeams = Block::kThreads / Team;
    int dim = columns();
    for (int64_t i = block.index() * kTeams; i < items(); i += block.count() * kTeams) {
      typename Block::template PerThread<Group> groups;
      typename Block::template PerThread<typename Norm::Kept> kept;
      auto squares = reduce_teams<Team>(
          block,
          [&](int thread) {
            int64_t item = i + thread / Team;
            if (item >= items()) return 0.0f;
            Group& group = groups[thread];
            group = group_of(item);
            return Norm::squares(thread % Team, source_of(group.x), RowSource<N>{group.weight, dim},
                                 kept[thread]);
          },
          Plus());
      block.each([&](int thread) {
        int64_t item = i + thread / Team;
        if (item >= items()) return;
        const Group& group = groups[thread];
        int first = thread % Team * 4;
        auto more = also.at(item, first);
        Norm::template scale<N>(thread % Team, Norm::factor(squares[thread], a.dim, a.eps),
                                {group.x, dim}, {group.weight, dim}, kept[thread],
                                [&](int c, const Four& y) {
                                  store_four<N>(group.y + first, c, dim - first, y);
                                  more(c, y);
                                });
      });
      if constexpr (N == 4 && kTeams == 1) also.template finish<Norm>(block, i, kept);
    }
  }
};

// A sum and the norm of its rows. A thread reads back only the columns that it has summed up.
struct AddRmsNorm {
  Add sum;
  RmsNorm norm;  // whose x is the sum or its copy
  RoundedRows rounded = {};
  QuantisedRows quantised = {};

  // Whether the norm is of the sum's rows, and writes nothing that other blocks read or write.
  static bool may_join(const Add& sum, const RmsNorm& norm) {
    const RmsNormArgs& a = norm.a;
    bool of_sum = a.x == sum.a.y || a.x == sum.copy;
    bool whole_rows = a.groups == 1 && a.x_row_stride == a.dim && a.rows * a.dim == sum.a.count;
    if (!of_sum || !whole_rows || !sum.fours() || !norm.fours()) return false;
    return apart_from(sum, float_rows(a.y, a.rows, a.y_row_stride, a.dim));
  }
  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    return norm.may_prepare(g, workspace) && apart_from(sum, workspace);
  }
  bool may_quantise(const QuantisedRows& to) const { return norm.may_quantise(to); }
  BANYAN_HOST_DEVICE Constants constants() const { return norm.constants(); }
  Shape shape() const { return norm.shape(); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    prepare_rows(rounded, quantised, [&](const auto& also) {
      run(
          block, sum.a.a, [&](int64_t at) { return RowSource<4>{sum.a.b + at, norm.columns()}; },
          also);
    });
  }

  // Of the sum of `a` and of what summand_of(at) has from there on: a RowSource, or one like it.
  template <class Block, class SummandOf, class Also>
  BANYAN_DEVICE void run(Block& block, const float* a, const SummandOf& summand_of,
                         const Also& also) const {
    norm.run_on<4>(
        block,
        [&](const float* x) {
          int64_t at = x - norm.a.x;
          float* copy = sum.copy != nullptr ? sum.copy + at : nullptr;
          RowSource<4> first = {a + at, norm.columns()};
          return Source<decltype(summand_of(at))>{first, summand_of(at), sum.a.y + at, copy,
                                                  norm.columns()};
        },
        also);
  }

 private:
  template <class Summand>
  struct Source {
    RowSource<4> a;
    Summand b;
    float *y, *copy;  // copy: or null
    int rest;

    BANYAN_DEVICE Source at(int c) const {
      return {a.at(c), b.at(c), y + c, copy != nullptr ? copy + c : nullptr, rest - c};
    }
    BANYAN_DEVICE Four load(int c) const {
      Four one[1];
      at(c).template load_all<RowNorm<kWarp>::kStep>(one);
      return one[0];
    }
    template <int step, int count>
    BANYAN_DEVICE void load_all(Four (&fours)[count]) const {
      Four more[count];
      a.template load_all<step>(fours);
      b.template load_all<step>(more);
      BANYAN_UNROLL
      for (int u = 0; u < count; ++u) {
        BANYAN_UNROLL
        for (int i = 0; i < 4; ++i) fours[u].at[i] += more[u].at[i];
      }
    }
    BANYAN_DEVICE void keep(int c, const Four& x) const {
      store_four<4>(y, c, rest, x);
      if (copy != nullptr) store_four<4>(copy, c, rest, x);
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

// The results of a row's experts combined, added to what a layer was given, and the norm of that.
struct CombineAddRmsNorm {
  CombineExperts experts;  // whose y is a summand
  AddRmsNorm rest;
  RoundedRows rounded = {};
  QuantisedRows quantised = {};

  // Whether the experts' rows are all of a summand, and no block writes what another one reads. By
  // count, longer rows than threads keep would take a block longer than the launch that it saves.
  static bool may_join(const CombineExperts& experts, const AddRmsNorm& rest) {
    const CombineExpertsArgs& e = experts.a;
    const Add& sum = rest.sum;
    bool is_summand = e.y == sum.a.a || e.y == sum.a.b;
    if (!is_summand || sum.a.a == sum.a.b || !experts.fours()) return false;
    if (e.dim != rest.norm.a.dim || e.rows != rest.norm.a.rows) return false;
    if (e.dim > RowNorm<kBlockThreads>::kKept) return false;
    MemoryRange combined = floats(e.y, sum.a.count), normed = rest.norm.writes()[0];
    const float* other = e.y == sum.a.a ? sum.a.b : sum.a.a;
    if (!combined.apart(floats(other, sum.a.count))) return false;
    for (const MemoryRange& read : experts.reads()) {
      if (!read.apart(floats(sum.a.y, sum.a.count)) || !read.apart(normed)) return false;
      if (sum.copy != nullptr && !read.apart(floats(sum.copy, sum.a.count))) return false;
    }
    return true;
  }
  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    for (const MemoryRange& read : experts.reads()) {
      if (!read.apart(workspace)) return false;
    }
    return rest.may_prepare(g, workspace);
  }
  bool may_quantise(const QuantisedRows& to) const { return rest.may_quantise(to); }
  BANYAN_HOST_DEVICE Constants constants() const { return rest.constants(); }
  Shape shape() const { return rest.norm.shape(); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    const AddArgs& sum = rest.sum.a;
    const float* other = experts.a.y == sum.a ? sum.b : sum.a;
    auto combined = [&](int64_t at) {
      CombineExperts::Row row(experts, quotient(at, experts.a.dim));
      return Source{row, 0, experts.a.y + at, rest.norm.columns()};
    };
    prepare_rows(rounded, quantised,
                 [&](const auto& also) { rest.run(block, other, combined, also); });
  }

 private:
  // Columns of a row from `first` on.
  struct Source {
    CombineExperts::Row row;
    int first;
    float* y;
    int rest;

    BANYAN_DEVICE Source at(int c) const { return {row, first + c, y + c, rest - c}; }
    // Combines one four after the other, which takes little code, and stores it. Then it reads back
    // what this thread alone has written.
    template <int step, int count>
    BANYAN_DEVICE void load_all(Four (&fours)[count]) const {
      BANYAN_NO_UNROLL
      for (int c = 0; c < step * count && c < rest; c += step) {
        store(y + c, row.template sum<4>(first + c));
      }
      RowSource<4>{y, rest}.load_all<step>(fours);
    }
  };
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
  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    return gate.may_prepare(g, workspace) && workspace.apart(norm.reads()[0]) &&
           workspace.apart(norm.writes()[0]);
  }
  BANYAN_HOST_DEVICE Constants constants() const { return norm.constants(); }
  Shape shape() const { return norm.shape(); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    norm.run_on<4>(
        block, [&](const float* x) { return RowSource<4>{x, norm.columns()}; }, StoreGated{*this});
  }

 private:
  struct StoreGated {
    const NormGateMul& k;

    struct Place {
      const NormGateMul& k;
      int64_t row, column;
      BANYAN_DEVICE void operator()(int c, const Four& y) const {
        k.gate.store_gated(row, column + c, y, k.rounded);
      }
    };
    template <class Norm, class Block, class AllKept>
    BANYAN_DEVICE void finish(Block&, int64_t, AllKept&) const {}
    BANYAN_DEVICE Place at(int64_t item, int64_t column) const {
      const RmsNormArgs& n = k.norm.a;
      int64_t row = quotient(item, n.groups), group = item - row * n.groups;
      return {k, row, group * n.dim + column};
    }
  };
};

}  // namespace banyan::cuda
