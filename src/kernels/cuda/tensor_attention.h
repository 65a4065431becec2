// Attention over pages of bf16 on tensor cores: the arithmetic, which the kernel on a card
// (device/tensor_attention.cuh) and its emulation (emulated/tensor_attention.h) share.
//
// Queries are rounded to bf16. Keys come in tiles at multiples of 64 positions, and tiles in parts
// at multiples of 512. For each tile of a part in turn:
//
//   s = (q k) scale, capped, -inf where the row does not see the key    q k by wgmma
//   m' = max(m, s),  c = e^(m - m'),  p = e^(s - m')
//   l = l c + p       a sum for each pair of columns modulo 8, see RowSums
//   o = (o c) + p v   by wgmma on the products, with p rounded to bf16
//
// Parts are merged in ascending order (rescaled). A tile or a part of which the row sees no key
// changes no bit, so neither the other rows of a tile nor the blocks that share a row's parts do.
// Values that are not finite would, by a weight of zero: they become zeros in v, and are added to
// the o of the rows that see them. Where keys are selected, ranks take the place of positions.
#pragma once

#include "kernels/cuda/attention.h"
#include "kernels/cuda/block.h"
#include "kernels/cuda/math.h"
#include "kernels/kernel_table.h"
#include "kernels/selected_rows.h"

namespace banyan::cuda {

inline constexpr int64_t kKeyTile = 64;
inline constexpr int64_t kLatentWidth = 576, kLatentRank = 512;
inline constexpr int64_t kQueryTile = 64;  // rows: tokens times the query heads of a head of keys

// Whether tensor cores compute it; other shapes and types have the kernels of attention.h.
constexpr bool on_tensor_cores(const AttentionArgs& a) {
  bool fits = a.head_dim == 64 || a.head_dim == 128 || a.head_dim == 256;
  return fits && a.head_dim == a.value_dim && a.pool_dtype == DType::kBF16 && a.blocks == nullptr &&
         a.selected.runs == nullptr;
}
constexpr bool on_tensor_cores(const LatentAttentionArgs& a) {
  return a.width == kLatentWidth && a.rank == kLatentRank && a.pool_dtype == DType::kBF16;
}

// Latents as one head of keys, whose first columns are the values.
constexpr AttentionArgs attention_of(const LatentAttentionArgs& a) {
  return {.launch = a.launch,
          .q = a.q,
          .q_row_stride = a.q_row_stride,
          .k_pool = a.pool,
          .v_pool = a.pool,
          .pool_dtype = a.pool_dtype,
          .out = a.out,
          .q_heads = a.heads,
          .kv_heads = 1,
          .head_dim = a.width,
          .value_dim = a.rank,
          .page_size = a.page_size,
          .scale = a.scale,
          .spans = a.spans,
          .span_count = a.span_count,
          .page_table = a.page_table,
          .selected = a.selected};
}

// e^x of x <= 0 within 2 ulp, 0 below -87; NaN for NaN.
BANYAN_HOST_DEVICE inline float exp_of_difference(float x) {
  constexpr float kToInteger = 0x1.8p23f;  // a number this large has no fraction
  float shifted = fused(x, 0x1.715476p+0f, kToInteger);
  float n = shifted - kToInteger;
  float r = fused(n, -0x1.62e43p-1f, x);
  r = fused(n, 0x1.05c61p-29f, r);
  float p = fused(1.0f / 720, r, 1.0f / 120);
  p = fused(p, r, 1.0f / 24);
  p = fused(p, r, 1.0f / 6);
  p = fused(p, r, 0.5f);
  p = fused(p, r, 1.0f);
  p = fused(p, r, 1.0f);
  uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  float y = std::bit_cast<float>(std::bit_cast<uint32_t>(p) + exponent);
  return x < -87 ? 0 : is_nan(x) ? x : y;
}

// The keys that the row at a position sees: [first, end).
struct KeyRange {
  int32_t first, end;
};
BANYAN_HOST_DEVICE constexpr KeyRange keys_at(int64_t position, int64_t window) {
  int64_t first = window > 0 && position >= window ? position - window + 1 : 0;
  return {static_cast<int32_t>(first), static_cast<int32_t>(position + 1)};
}

// The same of token i of a span. Selected keys are named by their ranks.
BANYAN_HOST_DEVICE constexpr KeyRange keys_of_token(const AttentionArgs& a, const SpanArgs& span,
                                                    int64_t i, int64_t kv_head) {
  if (a.selected.runs == nullptr) return keys_at(span.first_position + i, a.window);
  SelectedRow selected = selected_row(a.selected, span.row_begin + i, kv_head);
  return {0, static_cast<int32_t>(selected.key_count)};
}

constexpr float score_of(float product, const AttentionArgs& a) {
  float score = product * a.scale;
  return a.soft_cap > 0 ? soften(score, a.soft_cap) : score;
}

// Largest of a number and one that may be NaN, but for the sign of zero.
BANYAN_HOST_DEVICE inline float larger_of(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return Largest()(a, b);
#endif
}

// The softmax of a part so far. Columns 8 i + 2 j and 8 i + 2 j + 1 of a tile add to weight j.
struct RowSums {
  float max = kLowest;  // finite, so that a score of -inf weighs nothing even if it is the first
  float weights[4] = {};

  BANYAN_HOST_DEVICE constexpr float weight() const {
    return (weights[0] + weights[1]) + (weights[2] + weights[3]);
  }
};

// By which factors what was summed so far and what is added with another maximum are multiplied.
struct Rescaled {
  float max, kept, added;
};
BANYAN_HOST_DEVICE inline Rescaled rescaled(float so_far, float added) {
  float larger = Largest()(so_far, added);
  return {larger, exp_of_difference(so_far - larger), exp_of_difference(added - larger)};
}

// What a row's sums are divided by, and multiplied with before, once the last part is merged.
// Adding 0 makes a negative zero, which a tile without keys may have turned, positive.
struct LastStep {
  float kept, weight;
  BANYAN_HOST_DEVICE constexpr float operator()(float sum) const {
    return sum * kept / weight + 0.0f;
  }
};
BANYAN_HOST_DEVICE inline LastStep last_step(const AttentionArgs& a, int64_t head, float max,
                                             float weight) {
  if (a.sinks == nullptr) return {1, weight};
  Rescaled r = rescaled(max, a.sinks[head]);
  return {r.kept, weight * r.kept + r.added};
}

// The parts of keys that rows of a span see.
struct PartRange {
  int32_t begin, end;
};
BANYAN_HOST_DEVICE constexpr PartRange parts_of(KeyRange keys) {
  constexpr auto kKeys = static_cast<int32_t>(kPartKeys);
  return {keys.first / kKeys, (keys.end + kKeys - 1) / kKeys};
}
BANYAN_HOST_DEVICE constexpr KeyRange keys_of(const SpanArgs& span, int64_t window) {
  return {keys_at(span.first_position, window).first, span.first_position + span.row_count};
}

}  // namespace banyan::cuda
