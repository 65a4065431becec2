// Kernels that process each row independently (the definitions are in kernels/portable/rowwise.cpp
// and index.cpp); norms are in rms_norm.h.
#pragma once

#include "kernels/cuda/block.h"
#include "kernels/cuda/fours.h"
#include "kernels/cuda/math.h"
#include "kernels/cuda/memory_range.h"
#include "kernels/cuda/quantise_rows.h"
#include "kernels/cuda/rounded_rows.h"
#include "kernels/kernel_table.h"

namespace banyan::cuda {

struct LayerNorm {
  LayerNormArgs a;
  Shape shape() const { return {.blocks = a.rows}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    auto dim = static_cast<float>(a.dim);
    for (int64_t r = block.index(); r < a.rows; r += block.count()) {
      const float* x = a.x + r * a.x_row_stride;
      float* y = a.y + r * a.dim;
      float mean = sum_over(block, a.dim, [&](int64_t c) { return x[c]; }) / dim;
      float square =
          sum_over(block, a.dim, [&](int64_t c) { return (x[c] - mean) * (x[c] - mean); });
      float factor = 1 / root(square / dim + a.eps);
      for_each(block, a.dim,
               [&](int64_t c) { y[c] = (x[c] - mean) * factor * a.weight[c] + a.bias[c]; });
    }
  }
};

// The stages alternate between two halves of shared memory.
struct Hadamard {
  HadamardArgs a;
  Shape shape() const {
    return {.blocks = a.rows * a.groups, .shared_bytes = 2 * a.dim * sizeof(float)};
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    float factor = 1 / root(static_cast<float>(a.dim));
    for (int64_t g = block.index(); g < a.rows * a.groups; g += block.count()) {
      int64_t row = quotient(g, a.groups), group = g - row * a.groups;
      const float* x = a.x + row * a.x_row_stride + group * a.dim;
      float *from = block.template shared<float>(), *to = from + a.dim;
      for_each(block, a.dim, [&](int64_t c) { from[c] = x[c]; });
      for (int64_t half = 1; half < a.dim; half *= 2) {
        for_each(block, a.dim, [&](int64_t c) {
          to[c] = (c & half) == 0 ? from[c] + from[c + half] : from[c - half] - from[c];
        });
        float* stage = from;
        from = to;
        to = stage;
      }
      for_each(block, a.dim, [&](int64_t c) { a.y[g * a.dim + c] = from[c] * factor; });
    }
  }
};

struct RopeAngles {
  RopeAnglesArgs a;
  Shape shape() const { return {.blocks = blocks_for(a.rows * a.pairs)}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_all(block, a.rows * a.pairs, [&](int64_t i) {
      int64_t r = quotient(i, a.pairs), pair = i - r * a.pairs;
      auto position = static_cast<float>(a.positions[r]);
      CosSin angle = cos_sin(position * a.inverse_frequency[pair]);
      a.cos[i] = angle.cos * a.scale;
      a.sin[i] = angle.sin * a.scale;
    });
  }
};

// Pair i of a head. y may be x.
BANYAN_DEVICE inline void rotate_pair(RopeLayout layout, int64_t pairs, int64_t i, float cos,
                                      float sin, const float* x, float* y) {
  bool halves = layout == RopeLayout::kHalves;
  int64_t first = halves ? i : 2 * i, second = halves ? i + pairs : 2 * i + 1;
  float x1 = x[first], x2 = x[second];
  y[first] = x1 * cos - x2 * sin;
  y[second] = x2 * cos + x1 * sin;
}

struct Rope {
  RopeArgs a;

  std::array<MemoryRange, 3> reads() const {
    int64_t columns = (a.heads - 1) * a.x_head_stride + a.head_dim;
    return {float_rows(a.x, a.rows, a.x_row_stride, columns), floats(a.cos, a.rows * a.pairs),
            floats(a.sin, a.rows * a.pairs)};
  }
  std::array<MemoryRange, 1> writes() const {
    int64_t columns = (a.heads - 1) * a.y_head_stride + a.head_dim;
    return {float_rows(a.y, a.rows, a.y_row_stride, columns)};
  }
  BANYAN_HOST_DEVICE int64_t steps_of_head() const {  // a pair, or a column that stays
    return a.head_dim - a.pairs;
  }
  Shape shape() const { return {.blocks = blocks_for(a.rows * a.heads * steps_of_head())}; }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    int64_t steps = steps_of_head();
    for_all(block, a.rows * a.heads * steps, [&](int64_t item) {
      int64_t at = quotient(item, steps), i = item - at * steps;
      int64_t r = quotient(at, a.heads), head = at - r * a.heads;
      const float* x = a.x + r * a.x_row_stride + head * a.x_head_stride;
      float* y = a.y + r * a.y_row_stride + head * a.y_head_stride;
      if (i >= a.pairs) {
        y[i + a.pairs] = x[i + a.pairs];
        return;
      }
      int64_t at_pair = r * a.pairs + i;
      rotate_pair(a.layout, a.pairs, i, a.cos[at_pair], a.sin[at_pair], x, y);
    });
  }
};

// Unlike a minimum, these propagate NaN.
BANYAN_HOST_DEVICE constexpr float at_most(float x, float limit) {
  return x > limit ? limit : x;
}
BANYAN_HOST_DEVICE constexpr float clamped(float x, float limit) {
  return x < -limit ? -limit : at_most(x, limit);
}

struct SiluMul {
  SiluMulArgs a;
  // y for a product, if they have a workspace.
  RoundedRows rounded = {};
  QuantisedRows quantised = {};

  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    auto may = [&](const float* from) {
      return cuda::may_prepare(g, workspace, a.y, a.rows, a.dim, a.dim, from, a.x_row_stride);
    };
    return fours() && may(a.gate) && may(a.up);
  }
  BANYAN_HOST_DEVICE bool fours() const {
    return in_fours(a.dim, a.x_row_stride, a.gate, a.up, a.y);
  }
  std::array<MemoryRange, 2> reads() const {
    return {float_rows(a.gate, a.rows, a.x_row_stride, a.dim),
            float_rows(a.up, a.rows, a.x_row_stride, a.dim)};
  }
  std::array<MemoryRange, 2> writes() const {
    return {floats(a.y, a.rows * a.dim), prepared_range(rounded, quantised)};
  }
  Shape shape() const {
    if (quantised.workspace == nullptr) return column_shape(a.rows, a.dim, fours());
    return quantising_shape(quantised);
  }

  // The forms differ in what they do to gate and up, so that exp and division are there once.
  BANYAN_DEVICE float glu(float gate, float up) const {
    bool oai = a.form == GluForm::kSwigluOai, silu = a.form == GluForm::kSilu;
    if (oai) gate = at_most(gate, a.limit);
    float exponent = -gate;
    if (oai) exponent = -kSwigluAlpha * gate;
    if (a.form == GluForm::kGeluTanh) {
      exponent = -(2 * kGeluFactor * (gate + kGeluCube * gate * gate * gate));
    }
    float activated = gate / (1.0f + exp(exponent));
    if (oai) up = clamped(up, a.limit) + 1;
    if (silu && a.limit > 0) {
      activated = at_most(activated, a.limit);
      up = clamped(up, a.limit);
    }
    return activated * up;
  }

  // Columns c to c + N - 1 of a row of y, which it stores.
  template <int N>
  BANYAN_DEVICE Floats<N> compute(int64_t r, int64_t c) const {
    int64_t at = r * a.x_row_stride + c;
    Floats<N> y = load<N>(a.gate + at), up = load<N>(a.up + at);
    BANYAN_UNROLL
    for (int i = 0; i < N; ++i) y.at[i] = glu(y.at[i], up.at[i]);
    store(a.y + r * a.dim + c, y);
    return y;
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    if (quantised.workspace != nullptr) {
      return quantise_while(block, quantised, [&](int64_t r) {
        return [this, r](int64_t c) { return compute<4>(r, c); };
      });
    }
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      Floats<N> y = compute<N>(r, c);
      if constexpr (N == 4) {
        if (rounded.workspace != nullptr) rounded.store(r, c, y);
      }
    });
  }
};

struct Scale {
  ScaleArgs a;
  BANYAN_HOST_DEVICE bool fours() const { return in_fours(a.dim, a.x_row_stride, a.x, a.y); }
  Shape shape() const { return column_shape(a.rows, a.dim, fours()); }

  BANYAN_DEVICE float factor(int64_t row) const {
    if (a.positions == nullptr) return a.scale;
    float position = a.positions[row] + a.position_offset;
    double periods = floor(position / a.position_period);
    return a.scale * (1 + a.position_beta * static_cast<float>(log(1 + periods)));
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      Floats<N> y = load<N>(a.x + r * a.x_row_stride + c);
      float by = factor(r);
      BANYAN_UNROLL
      for (int i = 0; i < N; ++i) {
        y.at[i] *= by;
        if (a.soft_cap > 0) y.at[i] = soften(y.at[i], a.soft_cap);
      }
      store(a.y + r * a.dim + c, y);
    });
  }
};

struct GateMul {
  GateMulArgs a;
  RoundedRows rounded = {};  // y rounded, if there is a workspace

  bool may_prepare(const GemmArgs& g, const MemoryRange& workspace) const {
    auto may = [&](const float* from, int64_t stride) {
      return cuda::may_prepare(g, workspace, a.y, a.rows, a.dim, a.dim, from, stride);
    };
    return fours() && may(a.x, a.x_row_stride) && may(a.gate, a.gate_row_stride);
  }
  BANYAN_HOST_DEVICE bool fours() const { return in_fours(a.dim, a.x_row_stride, a.x, a.y); }
  Shape shape() const { return column_shape(a.rows, a.dim, fours()); }

  BANYAN_DEVICE float gated(float gate, float x) const {
    if (a.function == GateFunction::kSigmoid) return x / (1.0f + exp(-gate));
    if (a.function == GateFunction::kSilu) return gate / (1.0f + exp(-gate)) * x;
    if (a.function == GateFunction::kRelu) return (gate < 0 ? 0.0f : gate) * x;
    return gate * x;
  }
  // Columns [c, c + N) of a row, rounded too if there is a workspace.
  template <int N>
  BANYAN_DEVICE void store_gated(int64_t r, int64_t c, Floats<N> x, const RoundedRows& to) const {
    const float* gate = a.gate + r * a.gate_row_stride;
    BANYAN_UNROLL
    for (int i = 0; i < N; ++i) x.at[i] = gated(gate[quotient(c + i, a.gate_columns)], x.at[i]);
    store(a.y + r * a.dim + c, x);
    if constexpr (N == 4) {
      if (to.workspace != nullptr) to.store(r, c, x);
    }
  }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, a.rows, a.dim, fours(), [&]<int N>(int64_t r, int64_t c) {
      store_gated<N>(r, c, load<N>(a.x + r * a.x_row_stride + c), rounded);
    });
  }
};

struct Add {
  AddArgs a;
  float* copy = nullptr;  // the sum again, or null

  // Whether the copy is of the sum, and where no other thread reads or writes.
  bool may_copy(const CopyRowsArgs& c) const {
    bool whole = c.index == nullptr && c.x_row_stride == c.dim && c.y_row_stride == c.dim;
    if (copy != nullptr || !whole || c.x != a.y || c.rows * c.dim != a.count) return false;
    auto may_write = [&](const float* x) {
      return c.y == x || floats(c.y, a.count).apart(floats(x, a.count));
    };
    return may_write(a.a) && may_write(a.b) && may_write(a.y);
  }
  BANYAN_HOST_DEVICE bool fours() const { return in_fours(a.count, a.a, a.b, a.y, copy); }
  Shape shape() const { return column_shape(1, a.count, fours()); }

  template <class Block>
  BANYAN_DEVICE void operator()(Block& block) const {
    for_columns(block, 1, a.count, fours(), [&]<int N>(int64_t, int64_t at) {
      Floats<N> y = load<N>(a.a + at), more = load<N>(a.b + at);
      BANYAN_UNROLL
      for (int i = 0; i < N; ++i) y.at[i] += more.at[i];
      store(a.y + at, y);
      if (copy != nullptr) store(copy + at, y);
    });
  }
};

// The largest logit and its lowest index; NaN never wins.
struct Best {
  float value = -kInfinity;
  int32_t index = -1;
};
struct Better {
  BANYAN_HOST_DEVICE constexpr Best operator()(const Best& x, const Best& y) const {
    if (y.index < 0) return x;
    if (x.index < 0 || y.value > x.value) return y;
    return y.value == x.value && y.index < x.index ? y : x;
  }
};

// The best of value(i) over [0, count).
template <class Block, class Value>
BANYAN_DEVICE Best best_over(Block& block, int64_t count, const Value& value) {
  return block.reduce(
      [&](int thread) {
        Best best;
        for (int64_t i = thread; i < count; i += Block::kThreads) {
          float x = value(i);
          if (!is_nan(x)) best = Better()(best, {x, static_cast<int32_t>(i)});
        }
        return best;
      },
      Better());
}

}  // namespace banyan::cuda
