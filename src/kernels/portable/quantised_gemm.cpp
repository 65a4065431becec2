// GEMM with quantised weights, with exactly the arithmetic defined in kernels/gemm.h.
//
// Packed: codes [n, k], one byte each, then scales f32 [n, groups], then zeros [n, groups].
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"
#include "kernels/scales.h"
#include "tensor/float_types.h"

namespace banyan::portable {
namespace {

enum class Code { kInt8, kInt4, kUint4, kMxfp4, kFp8 };

constexpr bool has_integers(Code code) {
  return code != Code::kFp8;
}

// The values of e2m1, doubled.
constexpr int kTwiceE2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

template <Code C>
int integer_of(uint8_t code, int zero) {
  if constexpr (C == Code::kInt8) return static_cast<int8_t>(code);
  if constexpr (C == Code::kMxfp4) return kTwiceE2m1[code];
  return int{code} - zero;
}

template <Code C>
struct Packed {
  Packed(const void* data, int64_t n, int64_t k, int64_t group)
      : codes(static_cast<const uint8_t*>(data)),
        scales(reinterpret_cast<const float*>(codes + scales_offset(n, k))),
        zeros(codes + scales_offset(n, k) + n * (k / group) * 4) {}

  static int64_t scales_offset(int64_t n, int64_t k) { return (n * k + 3) / 4 * 4; }

  const uint8_t* codes;
  const float* scales;
  const uint8_t* zeros;
};

template <Code C>
size_t packed_bytes(int64_t n, int64_t k, int64_t group) {
  int64_t groups = k / group;
  return (Packed<C>::scales_offset(n, k) + n * groups * 5 + 63) / 64 * 64;
}

template <Code C>
void pack(const PackArgs& a) {
  int64_t groups = a.k / a.group;
  Packed<C> to(a.packed, a.n, a.k, a.group);
  std::memcpy(const_cast<uint8_t*>(to.codes) + a.row_begin * a.k, a.source, a.row_count * a.k);
  auto* scales = const_cast<float*>(to.scales) + a.row_begin * groups;
  auto* zeros = const_cast<uint8_t*>(to.zeros) + a.row_begin * groups;
  std::vector<Float16> halves(groups);
  for (int64_t r = 0; r < a.row_count; ++r) {
    const float* from = a.scales + r * groups;
    float multiplier = row_multiplier(from, groups);
    encode_scales(from, groups, multiplier, halves.data());
    for (int64_t g = 0; g < groups; ++g) {
      bool rounded = C == Code::kInt4 || C == Code::kUint4;
      scales[r * groups + g] = rounded ? to_float(halves[g]) * multiplier : from[g];
      zeros[r * groups + g] = C == Code::kUint4 ? a.zeros[r * groups + g] : 8;
    }
  }
}

template <Code C>
void gather(const GatherArgs& a) {
  int64_t groups = a.k / a.group;
  Packed<C> w(a.weight, a.n, a.k, a.group);
  for (int64_t i = 0; i < a.rows; ++i) {
    int64_t row = a.ids[i];
    for (int64_t c = 0; c < a.k; ++c) {
      uint8_t code = w.codes[row * a.k + c];
      int64_t g = row * groups + c / a.group;
      float scale = C == Code::kMxfp4 ? w.scales[g] * 0.5f : w.scales[g];
      if constexpr (has_integers(C)) {
        a.y[i * a.k + c] = static_cast<float>(integer_of<C>(code, w.zeros[g])) * scale;
      } else {
        a.y[i * a.k + c] = to_float(Float8E4M3{code}) * scale;
      }
    }
  }
}

template <Code C>
float dot(const GemmArgs& a, const Packed<C>& w, int64_t j, const float* x, const int8_t* codes,
          const float* steps) {
  int64_t groups = a.k / a.group;
  float y = 0;
  for (int64_t g = 0; g < groups; ++g) {
    float scale = w.scales[j * groups + g];
    const uint8_t* weights = w.codes + j * a.k + g * a.group;
    if constexpr (has_integers(C)) {
      int32_t sum = 0;
      for (int64_t c = 0; c < a.group; ++c) {
        sum += codes[g * a.group + c] * integer_of<C>(weights[c], w.zeros[j * groups + g]);
      }
      if constexpr (C == Code::kMxfp4) scale *= 0.5f;
      y = std::fma(static_cast<float>(sum), steps[g] * scale, y);
    } else {
      float sum = 0;
      for (int64_t c = 0; c < a.group; ++c) {
        sum += x[g * a.group + c] * to_float(Float8E4M3{weights[c]});
      }
      y = std::fma(sum, scale, y);
    }
  }
  return y;
}

template <Code C>
void run(const GemmArgs& a) {
  int64_t groups = a.k / a.group;
  parallel_for(a.launch, a.n, 1, [&](int64_t begin, int64_t end) {
    std::vector<int8_t> codes(a.k);
    std::vector<float> steps(groups);
    for_part_rows(a, [&](const GemmPart& part, const float* x, float* y) {
      Packed<C> w(part.weight, a.n, a.k, a.group);
      for (int64_t g = 0; has_integers(C) && g < groups; ++g) {
        steps[g] = quantise_group(x + g * a.group, a.group, codes.data() + g * a.group);
      }
      for (int64_t j = begin; j < end; ++j) {
        float sum = dot<C>(a, w, j, x, codes.data(), steps.data());
        y[j] = part.bias ? sum + part.bias[j] : sum;
      }
    });
  });
}

template <Code C>
GemmKernel kernel() {
  return {packed_bytes<C>, no_workspace, pack<C>, gather<C>, run<C>};
}

}  // namespace

float quantise_group(const float* x, int64_t group, int8_t* codes) {
  float largest = 0, poison = 0;
  for (int64_t c = 0; c < group; ++c) {
    largest = std::max(largest, std::fabs(x[c]));
    poison += x[c] * 0.0f;  // becomes NaN if any element is not finite
  }
  float inverse = largest >= kQuantisedMin ? 127.0f / largest : 0.0f;
  for (int64_t c = 0; c < group; ++c) {
    float code = std::nearbyint(x[c] * inverse);
    codes[c] = poison == 0 ? static_cast<int8_t>(code) : int8_t{0};
  }
  return largest >= kQuantisedMin ? largest / 127.0f + poison : poison;
}

GemmKernel gemm_int8() {
  return kernel<Code::kInt8>();
}

GemmKernel gemm_int4() {
  return kernel<Code::kInt4>();
}

GemmKernel gemm_uint4() {
  return kernel<Code::kUint4>();
}

GemmKernel gemm_mxfp4() {
  return kernel<Code::kMxfp4>();
}

GemmKernel gemm_fp8() {
  return kernel<Code::kFp8>();
}

}  // namespace banyan::portable
