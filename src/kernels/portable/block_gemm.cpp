// GEMM with the formats of GGUF, with exactly the arithmetic defined in kernels/gemm.h.
//
// Packed: codes [n, k], one byte each; scales and minima f32 [n, groups]; levels of both, one byte
// each [n, k / kLevelColumns].
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/block_forms.h"
#include "kernels/launch.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

// Rows of k columns, a multiple of 32, so that the floats are aligned.
struct PackedBlocks {
  PackedBlocks(const void* data, int64_t n, int64_t k, int64_t group)
      : group(group),
        codes(static_cast<uint8_t*>(const_cast<void*>(data))),
        scales(reinterpret_cast<float*>(codes + n * k)),
        mins(scales + n * (k / group)),
        levels(reinterpret_cast<int8_t*>(mins + n * (k / group))),
        min_levels(reinterpret_cast<uint8_t*>(levels + n * (k / kLevelColumns))) {}

  // Of the part with the number `at`, in levels.
  float scale(int64_t at) const { return scales[at * kLevelColumns / group] * levels[at]; }
  float min(int64_t at) const { return mins[at * kLevelColumns / group] * min_levels[at]; }

  int64_t group;
  uint8_t* codes;
  float *scales, *mins;
  int8_t* levels;
  uint8_t* min_levels;
};

size_t packed_block_bytes(int64_t n, int64_t k, int64_t group) {
  int64_t bytes = n * (k + k / group * 8 + k / kLevelColumns * 2);
  return (bytes + 63) / 64 * 64;
}

template <class T, class S>
void copy_or_fill(const S* from, T filler, int64_t count, T* to) {
  if (from == nullptr) {
    std::fill_n(to, count, filler);
  } else {
    std::copy_n(from, count, to);
  }
}

template <BlockForm Form>
void pack(const PackArgs& a) {
  int64_t groups = a.k / a.group, levels = a.k / kLevelColumns;
  const int8_t* no_levels = nullptr;
  const uint8_t* no_min_levels = nullptr;
  bool levelled = a.group == kLevelledGroup;
  PackedBlocks to(a.packed, a.n, a.k, a.group);
  std::memcpy(to.codes + a.row_begin * a.k, a.source, a.row_count * a.k);
  std::copy_n(a.scales, a.row_count * groups, to.scales + a.row_begin * groups);
  copy_or_fill(Form.mins ? a.mins : nullptr, 0.0f, a.row_count * groups,
               to.mins + a.row_begin * groups);
  copy_or_fill(levelled ? a.levels : no_levels, int8_t{1}, a.row_count * levels,
               to.levels + a.row_begin * levels);
  copy_or_fill(levelled && Form.mins ? a.min_levels : no_min_levels, uint8_t{1},
               a.row_count * levels, to.min_levels + a.row_begin * levels);
}

template <BlockForm Form>
void gather(const GatherArgs& a) {
  PackedBlocks w(a.weight, a.n, a.k, a.group);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t c = 0; c < a.k; ++c) {
      int64_t at = a.ids[i] * a.k + c;
      float value = block_value(Form, w.codes[at]) * w.scale(at / kLevelColumns);
      a.y[i * a.k + c] = Form.mins ? value - w.min(at / kLevelColumns) : value;
    }
  }
}

// Row j of the weights times codes of x, with their steps.
template <BlockForm Form>
float block_dot(const PackedBlocks& w, int64_t j, int64_t k, const int8_t* codes,
                const float* steps) {
  float y = 0;
  for (int64_t c = 0; c < k; c += Form.part) {
    int64_t first = j * k + c;
    int32_t sum = 0, sum_of_codes = 0;
    for (int64_t i = 0; i < Form.part; ++i) {
      sum += codes[c + i] * block_value(Form, w.codes[first + i]);
      sum_of_codes += codes[c + i];
    }
    float step = steps[c / kBlockStep];
    y = std::fma(static_cast<float>(sum), step * w.scale(first / kLevelColumns), y);
    if (!Form.mins) continue;
    y = std::fma(-(step * sum_of_codes), w.min(first / kLevelColumns), y);
  }
  return y;
}

template <BlockForm Form>
void run(const GemmArgs& a) {
  parallel_for(a.launch, a.n, 1, [&](int64_t begin, int64_t end) {
    std::vector<int8_t> codes(a.k);
    std::vector<float> steps(a.k / kBlockStep);
    for_part_rows(a, [&](const GemmPart& part, const float* x, float* y) {
      PackedBlocks w(part.weight, a.n, a.k, a.group);
      for (int64_t c = 0; c < a.k; c += kBlockStep) {
        steps[c / kBlockStep] = quantise_group(x + c, kBlockStep, codes.data() + c);
      }
      for (int64_t j = begin; j < end; ++j) {
        float sum = block_dot<Form>(w, j, a.k, codes.data(), steps.data());
        y[j] = part.bias ? sum + part.bias[j] : sum;
      }
    });
  });
}

template <BlockForm Form>
GemmKernel kernel() {
  return {packed_block_bytes, no_workspace, pack<Form>, gather<Form>, run<Form>};
}

}  // namespace

GemmKernel gemm_q2() {
  return kernel<kQ2>();
}

GemmKernel gemm_q3() {
  return kernel<kQ3>();
}

GemmKernel gemm_q4() {
  return kernel<kQ4>();
}

GemmKernel gemm_q5() {
  return kernel<kQ5>();
}

GemmKernel gemm_q6() {
  return kernel<kQ6>();
}

GemmKernel gemm_iq4() {
  return kernel<kIq4>();
}

}  // namespace banyan::portable
