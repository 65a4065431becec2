// Kernels that process each row independently.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {

// Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4, with eps inside the
// root as in LlamaRMSNorm. Over groups: Wu and He 2018, "Group Normalization".
void rms_norm(const RmsNormArgs& a) {
  parallel_for(a.launch, a.rows * a.groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = a.x + i / a.groups * a.x_row_stride + i % a.groups * a.dim;
      const float* weight = a.weight + i % a.groups * a.weight_group_stride;
      float* y = a.y + i / a.groups * a.y_row_stride + i % a.groups * a.dim;
      float squares = 0;
      for (int64_t c = 0; c < a.dim; ++c) squares += x[c] * x[c];
      float factor = 1.0f / std::sqrt(squares / a.dim + a.eps);
      for (int64_t c = 0; c < a.dim; ++c) y[c] = x[c] * factor * weight[c];
    }
  });
}

// Su et al. 2021, "RoFormer", equation 15. The angle is an f32 product, as in transformers, so far
// positions have the same rounding as the reference.
void rope_angles(const RopeAnglesArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t i = 0; i < a.pairs; ++i) {
        float angle = a.positions[r] * a.inverse_frequency[i];
        a.cos[r * a.pairs + i] = std::cos(angle) * a.scale;
        a.sin[r * a.pairs + i] = std::sin(angle) * a.scale;
      }
    }
  });
}

// (y1, y2) = (x1 cos - x2 sin, x2 cos + x1 sin) for each pair (x1, x2).
void rope(const RopeArgs& a) {
  bool halves = a.layout == RopeLayout::kHalves;
  parallel_for(a.launch, a.rows * a.heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      int64_t r = item / a.heads, head = item % a.heads;
      const float* x = a.x + r * a.x_row_stride + head * a.x_head_stride;
      float* y = a.y + r * a.y_row_stride + head * a.y_head_stride;
      for (int64_t i = 0; i < a.pairs; ++i) {
        int64_t first = halves ? i : 2 * i;
        int64_t second = halves ? i + a.pairs : 2 * i + 1;
        float cos = a.cos[r * a.pairs + i], sin = a.sin[r * a.pairs + i];
        float x1 = x[first], x2 = x[second];
        y[first] = x1 * cos - x2 * sin;
        y[second] = x2 * cos + x1 * sin;
      }
      for (int64_t c = 2 * a.pairs; c < a.head_dim; ++c) y[c] = x[c];
    }
  });
}

namespace {

// Unlike std::min and std::clamp, these propagate NaN.
float at_most(float x, float limit) {
  return x > limit ? limit : x;
}

float clamped(float x, float limit) {
  return x < -limit ? -limit : at_most(x, limit);
}

// silu(x) = x / (1 + exp(-x)): Shazeer 2020, "GLU Variants Improve Transformer" (SwiGLU, beta 1).
// gelu's approximation: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", where
// 1 + tanh(z) = 2 / (1 + exp(-2 z)).
float glu(const SiluMulArgs& a, float gate, float up) {
  switch (a.form) {
    case GluForm::kSilu:
      break;
    case GluForm::kGeluTanh: {
      float inner = 2 * kGeluFactor * (gate + kGeluCube * gate * gate * gate);
      return gate / (1.0f + std::exp(-inner)) * up;
    }
    case GluForm::kSwigluOai:
      gate = at_most(gate, a.limit);
      return gate / (1.0f + std::exp(-kSwigluAlpha * gate)) * (clamped(up, a.limit) + 1);
  }
  float silu = gate / (1.0f + std::exp(-gate));
  return a.limit > 0 ? at_most(silu, a.limit) * clamped(up, a.limit) : silu * up;
}

}  // namespace

void silu_mul(const SiluMulArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = a.gate + r * a.x_row_stride;
      const float* up = a.up + r * a.x_row_stride;
      float* y = a.y + r * a.dim;
      for (int64_t c = 0; c < a.dim; ++c) y[c] = glu(a, gate[c], up[c]);
    }
  });
}

float row_scale(const ScaleArgs& a, int64_t row) {
  if (a.positions == nullptr) return a.scale;
  float position = a.positions[row] + a.position_offset;
  return a.scale * (1 + a.position_beta * std::log1p(std::floor(position / a.position_period)));
}

void scale(const ScaleArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      float* y = a.y + r * a.dim;
      float factor = row_scale(a, r);
      for (int64_t c = 0; c < a.dim; ++c) {
        float scaled = factor * x[c];
        y[c] = a.soft_cap > 0 ? a.soft_cap * std::tanh(scaled / a.soft_cap) : scaled;
      }
    }
  });
}

namespace {

// sigmoid(x) = 1 / (1 + exp(-x)), silu(x) = x sigmoid(x).
float gated(GateFunction function, float gate, float x) {
  switch (function) {
    case GateFunction::kSigmoid:
      return x / (1.0f + std::exp(-gate));
    case GateFunction::kSilu:
      return gate / (1.0f + std::exp(-gate)) * x;
    case GateFunction::kRelu:
      return (gate < 0 ? 0.0f : gate) * x;
    case GateFunction::kIdentity:
      return gate * x;
  }
  return 0;
}

}  // namespace

void gate_mul(const GateMulArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* gate = a.gate + r * a.gate_row_stride;
      const float* x = a.x + r * a.x_row_stride;
      float* y = a.y + r * a.dim;
      for (int64_t c = 0; c < a.dim; ++c) {
        y[c] = gated(a.function, gate[c / a.gate_columns], x[c]);
      }
    }
  });
}

void add(const AddArgs& a) {
  parallel_for(a.launch, a.count, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) a.y[i] = a.a[i] + a.b[i];
  });
}

// log(sum exp x) = max + log(sum exp(x - max)). The sum is in f64: a vocabulary has 150,000 terms.
void logit_stats(const LogitStatsArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      int64_t argmax = -1;
      bool any_nan = false;
      for (int64_t c = 0; c < a.dim; ++c) {
        if (std::isnan(x[c])) {
          any_nan = true;
        } else if (argmax < 0 || x[c] > x[argmax]) {
          argmax = c;
        }
      }
      float max = argmax < 0 ? -std::numeric_limits<float>::infinity() : x[argmax];
      float log_sum = 0;  // for an infinite maximum, log_sum_exp is the maximum
      if (std::isfinite(max)) {
        double sum = 0;
        for (int64_t c = 0; c < a.dim; ++c) sum += std::exp(x[c] - max);
        log_sum = std::log(sum);
      }
      a.max[r] = max;
      a.argmax[r] = static_cast<int32_t>(std::max<int64_t>(argmax, 0));
      a.log_sum_exp[r] = any_nan ? std::numeric_limits<float>::quiet_NaN() : max + log_sum;
    }
  });
}

}  // namespace banyan::portable
