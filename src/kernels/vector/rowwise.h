// Kernels that process each row independently. Formulas are cited in portable/rowwise.cpp.
#pragma once

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/vector/vec_math.h"

namespace banyan::simd {

template <class V>
void rms_norm(const RmsNormArgs& a) {
  parallel_for(a.launch, a.rows * a.groups, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = a.x + i / a.groups * a.x_row_stride + i % a.groups * a.dim;
      const float* weights = a.weight + i % a.groups * a.weight_group_stride;
      float* y = a.y + i / a.groups * a.y_row_stride + i % a.groups * a.dim;
      auto squares = V::set(0);
      for (int64_t c = 0; c < a.dim; c += V::kLanes) {
        auto v = load_up_to<V>(x + c, a.dim - c);
        squares = V::fma(v, v, squares);
      }
      float mean = V::sum(squares) / static_cast<float>(a.dim);
      auto factor = V::set(1.0f / __builtin_sqrtf(mean + a.eps));
      for (int64_t c = 0; c < a.dim; c += V::kLanes) {
        auto scaled = V::mul(load_up_to<V>(x + c, a.dim - c), factor);
        auto weight = load_up_to<V>(weights + c, a.dim - c);
        store_up_to<V>(y + c, a.dim - c, V::mul(scaled, weight));
      }
    }
  });
}

// The pairs (i, i + pairs) of one head, as in portable::rope.
template <class V>
inline void rotate_halves(const RopeArgs& a, int64_t row, int64_t head) {
  const float* x = a.x + row * a.x_row_stride + head * a.x_head_stride;
  float* y = a.y + row * a.y_row_stride + head * a.y_head_stride;
  for (int64_t i = 0; i < a.pairs; i += V::kLanes) {
    int64_t n = a.pairs - i;
    auto cos = load_up_to<V>(a.cos + row * a.pairs + i, n);
    auto sin = load_up_to<V>(a.sin + row * a.pairs + i, n);
    auto x1 = load_up_to<V>(x + i, n);
    auto x2 = load_up_to<V>(x + a.pairs + i, n);
    store_up_to<V>(y + i, n, V::sub(V::mul(x1, cos), V::mul(x2, sin)));
    store_up_to<V>(y + a.pairs + i, n, V::add(V::mul(x2, cos), V::mul(x1, sin)));
  }
  for (int64_t c = 2 * a.pairs; c < a.head_dim; ++c) y[c] = x[c];
}

// The pairs (2 i, 2 i + 1) of one head.
template <class V>
inline void rotate_interleaved(const RopeArgs& a, int64_t row, int64_t head) {
  const float* x = a.x + row * a.x_row_stride + head * a.x_head_stride;
  float* y = a.y + row * a.y_row_stride + head * a.y_head_stride;
  for (int64_t i = 0; i < a.pairs; ++i) {
    float cos = a.cos[row * a.pairs + i], sin = a.sin[row * a.pairs + i];
    float x1 = x[2 * i], x2 = x[2 * i + 1];
    y[2 * i] = x1 * cos - x2 * sin;
    y[2 * i + 1] = x2 * cos + x1 * sin;
  }
  for (int64_t c = 2 * a.pairs; c < a.head_dim; ++c) y[c] = x[c];
}

template <class V>
void rope(const RopeArgs& a) {
  bool halves = a.layout == RopeLayout::kHalves;
  int64_t grain = rows_per_job(a.heads * a.head_dim);
  parallel_for(a.launch, a.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t head = 0; head < a.heads; ++head) {
        halves ? rotate_halves<V>(a, row, head) : rotate_interleaved<V>(a, row, head);
      }
    }
  });
}

// x / (1 + exp(-z)).
template <class V>
inline typename V::F times_sigmoid(typename V::F x, typename V::F z) {
  return V::div(x, V::add(V::set(1), exp<V>(V::sub(V::set(0), z))));
}

template <class V>
inline typename V::F gelu_tanh(typename V::F x) {
  auto cube = V::mul(V::mul(x, x), V::mul(x, V::set(kGeluCube)));
  return times_sigmoid<V>(x, V::mul(V::add(x, cube), V::set(2 * kGeluFactor)));
}

// The operand order of min and max propagates NaN.
template <class V, GluForm kForm>
inline typename V::F glu(typename V::F gate, typename V::F up, typename V::F most) {
  if constexpr (kForm == GluForm::kGeluTanh) return V::mul(gelu_tanh<V>(gate), up);
  up = V::max(V::sub(V::set(0), most), V::min(most, up));
  if constexpr (kForm == GluForm::kSilu) {
    return V::mul(V::min(most, times_sigmoid<V>(gate, gate)), up);
  }
  gate = V::min(most, gate);
  auto swish = times_sigmoid<V>(gate, V::mul(gate, V::set(kSwigluAlpha)));
  return V::mul(swish, V::add(up, V::set(1)));
}

template <class V, GluForm kForm>
void glu_rows(const SiluMulArgs& a) {
  auto most = V::set(a.limit > 0 ? a.limit : __builtin_inff());
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < a.dim; c += V::kLanes) {
        auto gate = load_up_to<V>(a.gate + r * a.x_row_stride + c, a.dim - c);
        auto up = load_up_to<V>(a.up + r * a.x_row_stride + c, a.dim - c);
        store_up_to<V>(a.y + r * a.dim + c, a.dim - c, glu<V, kForm>(gate, up, most));
      }
    }
  });
}

template <class V>
void silu_mul(const SiluMulArgs& a) {
  switch (a.form) {
    case GluForm::kSilu:
      return glu_rows<V, GluForm::kSilu>(a);
    case GluForm::kGeluTanh:
      return glu_rows<V, GluForm::kGeluTanh>(a);
    case GluForm::kSwigluOai:
      return glu_rows<V, GluForm::kSwigluOai>(a);
  }
}

template <class V>
void scale(const ScaleArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      auto factor = V::set(portable::row_scale(a, r));
      for (int64_t c = 0; c < a.dim; c += V::kLanes) {
        auto y = V::mul(factor, load_up_to<V>(a.x + r * a.x_row_stride + c, a.dim - c));
        if (a.soft_cap > 0) y = soften<V>(y, a.soft_cap);
        store_up_to<V>(a.y + r * a.dim + c, a.dim - c, y);
      }
    }
  });
}

template <class V, GateFunction kFunction>
inline typename V::F gated(typename V::F gate, typename V::F x) {
  if constexpr (kFunction == GateFunction::kIdentity) return V::mul(gate, x);
  // In this order a NaN gate stays NaN.
  if constexpr (kFunction == GateFunction::kRelu) return V::mul(V::max(V::set(0), gate), x);
  auto divisor = V::add(V::set(1), exp<V>(V::sub(V::set(0), gate)));
  if constexpr (kFunction == GateFunction::kSilu) return V::mul(V::div(gate, divisor), x);
  return V::div(x, divisor);
}

template <class V, GateFunction kFunction>
inline void gate_row(const GateMulArgs& a, int64_t r) {
  const float* gate = a.gate + r * a.gate_row_stride;
  const float* x = a.x + r * a.x_row_stride;
  float* y = a.y + r * a.dim;
  if (a.gate_columns == 1) {
    for (int64_t c = 0; c < a.dim; c += V::kLanes) {
      int64_t left = a.dim - c;
      auto gates = load_up_to<V>(gate + c, left);
      store_up_to<V>(y + c, left, gated<V, kFunction>(gates, load_up_to<V>(x + c, left)));
    }
    return;
  }
  for (int64_t begin = 0; begin < a.dim; begin += a.gate_columns) {
    auto one = V::set(*gate++);
    for (int64_t c = begin; c < begin + a.gate_columns; c += V::kLanes) {
      int64_t left = begin + a.gate_columns - c;
      store_up_to<V>(y + c, left, gated<V, kFunction>(one, load_up_to<V>(x + c, left)));
    }
  }
}

template <class V>
void gate_mul(const GateMulArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.dim), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      switch (a.function) {
        case GateFunction::kSigmoid:
          gate_row<V, GateFunction::kSigmoid>(a, r);
          break;
        case GateFunction::kSilu:
          gate_row<V, GateFunction::kSilu>(a, r);
          break;
        case GateFunction::kRelu:
          gate_row<V, GateFunction::kRelu>(a, r);
          break;
        case GateFunction::kIdentity:
          gate_row<V, GateFunction::kIdentity>(a, r);
          break;
      }
    }
  });
}

template <class V>
void add(const AddArgs& a) {
  parallel_for(a.launch, a.count, rows_per_job(1), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += V::kLanes) {
      auto sum = V::add(load_up_to<V>(a.a + i, end - i), load_up_to<V>(a.b + i, end - i));
      store_up_to<V>(a.y + i, end - i, sum);
    }
  });
}

// The largest element of x that is not NaN, or -infinity.
template <class V>
inline float largest_number(const float* x, int64_t dim) {
  auto max = V::set(-__builtin_inff());
  int64_t whole = dim / V::kLanes * V::kLanes;
  for (int64_t c = 0; c < whole; c += V::kLanes) max = V::max(V::load(x + c), max);
  float largest = V::largest(max);
  for (int64_t c = whole; c < dim; ++c) largest = x[c] > largest ? x[c] : largest;
  return largest;
}

// The lowest index of `value`, which must occur in x.
template <class V>
inline int64_t find_first(const float* x, int64_t dim, float value) {
  int64_t c = 0;
  while (c + V::kLanes <= dim) {
    uint32_t lanes = V::equal_lanes(V::load(x + c), V::set(value));
    if (lanes != 0) return c + __builtin_ctz(lanes);
    c += V::kLanes;
  }
  while (x[c] != value) ++c;
  return c;
}

// The sum of exp(x - max), in f32 within runs of 4096 and f64 across them. NaN if x has a NaN.
template <class V>
inline double sum_of_exp(const float* x, int64_t dim, float max) {
  constexpr int64_t kRun = 4096;
  double total = 0;
  for (int64_t first = 0; first < dim; first += kRun) {
    int64_t end = dim - first < kRun ? dim : first + kRun;
    auto sum = V::set(0);
    int64_t c = first;
    for (; c + V::kLanes <= end; c += V::kLanes) {
      sum = V::add(sum, exp<V>(V::sub(V::load(x + c), V::set(max))));
    }
    if (c < end) {
      float rest[V::kLanes];
      V::store(rest, exp<V>(V::sub(V::load_first(x + c, end - c), V::set(max))));
      for (int64_t i = 0; i < end - c; ++i) total += static_cast<double>(rest[i]);
    }
    total += static_cast<double>(V::sum(sum));
  }
  return total;
}

template <class V>
void logit_stats(const LogitStatsArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      float max = largest_number<V>(x, a.dim);
      if (!__builtin_isfinite(max)) {  // rare; comparisons differ for infinite values
        portable::logit_stats({.x = x,
                               .rows = 1,
                               .dim = a.dim,
                               .max = a.max + r,
                               .argmax = a.argmax + r,
                               .log_sum_exp = a.log_sum_exp + r});
        continue;
      }
      int64_t argmax = find_first<V>(x, a.dim, max);
      a.max[r] = x[argmax];
      a.argmax[r] = static_cast<int32_t>(argmax);
      a.log_sum_exp[r] = max + static_cast<float>(__builtin_log(sum_of_exp<V>(x, a.dim, max)));
    }
  });
}

}  // namespace banyan::simd
