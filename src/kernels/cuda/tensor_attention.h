// Attention over pages of bf16, f16 or quantised rows on tensor cores: the arithmetic, which the
// kernel on a GPU (device/tensor_attention.cuh) and its emulation (emulated/tensor_attention.h)
// share.
//
// Queries are rounded to the type T of the pool, with the sign of the scale, and in f16 to 2^-6 of
// their values, so that they do not overflow. Where the pool is quantised, T is bf16, to which its
// rows are rounded (fp8 exactly). Keys come in tiles at multiples of 64 positions, and tiles in
// parts of 256 and later 512. With s = q k by wgmma, capped where scores are, and f the factor that
// makes it an exponent of two, for each tile of a part in turn:
//
//   m' = max(f s) - h, if max(f s) is above m + h by more than kMaxSlack, else m
//   c = 2^(m - m'),  p = 2^(f s - m'), or 0 if the row does not see the key
//   l = l c + p       in several sums, see RowSums
//   o = (o c) + p v   by wgmma on the products, with p rounded to T
//
// h is 0 for bf16. For f16 it is 7: weights are at most 2^15 then, and small ones keep more bits.
// The slack saves nearly every multiplication by c (FlashAttention-4 has it, too). Parts are merged
// in ascending order (rescaled). A tile or a part of which the row sees no key changes no bit, so
// neither the other rows of a tile nor the blocks that share a row's parts do. Values that are not
// finite would, by a weight of zero: they become zeros in v, and are added to the o of the rows
// that see them. (A GPU saves this where all rows of a tile see it whole: a weight that rounds to
// zero then makes NaN of an infinity.) Where keys are selected, ranks take the place of positions.
#pragma once

#include <type_traits>

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
constexpr bool on_tensor_cores(DType pool) {
  return pool == DType::kBF16 || pool == DType::kF16 || is_quantised_state(pool);
}
constexpr bool on_tensor_cores(const AttentionArgs& a) {
  bool fits = a.head_dim == 64 || a.head_dim == 128 || a.head_dim == 256;
  return fits && a.head_dim == a.value_dim && on_tensor_cores(a.pool_dtype) && a.blocks == nullptr;
}
constexpr bool on_tensor_cores(const LatentAttentionArgs& a) {
  return a.width == kLatentWidth && a.rank == kLatentRank && on_tensor_cores(a.pool_dtype);
}

// Latents as one head of keys, whose first columns are the values.
constexpr AttentionArgs attention_of(const LatentAttentionArgs& a) {
  return {.launch = a.launch,
          .q = a.q,
          .q_row_stride = a.q_row_stride,
          .rows = a.rows,
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

// The larger one, or if x is NaN, a NaN of which all bits are set but the sign.
BANYAN_HOST_DEVICE inline float at_least(float x, float bound) {
#ifdef __CUDA_ARCH__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(bound));
  return larger;
#else
  if (is_nan(x)) return std::bit_cast<float>(0x7fffffffu);
  return x < bound ? bound : x;
#endif
}

// 2^x of x < 127.5 within 2^-18 of it: 0 below -126.5, NaN for NaN.
BANYAN_HOST_DEVICE inline float exp2(float x) {
  // A number this large has no fraction. Its last bits are the exponent field of 2^x.
  constexpr float kToInteger = 0x1.8p23f + 127;
  x = at_least(x, -127);
  float shifted = x + kToInteger;
  float r = x - (shifted - kToInteger);
  float p = fused(0x1.3a02d2p-7f, r, 0x1.c9fc48p-5f);
  p = fused(p, r, 0x1.ec0378p-3f);
  p = fused(p, r, 0x1.62e12cp-1f);
  p = fused(p, r, 1.0f);
  return p * std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
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

// What a query is multiplied by, and a product after that; the scale's sign goes to queries, so
// that factors of scores are positive.
BANYAN_HOST_DEVICE constexpr float query_factor(const AttentionArgs& a) {
  float factor = a.pool_dtype == DType::kF16 ? 0x1p-6f : 1.0f;
  return a.scale < 0 ? -factor : factor;
}
BANYAN_HOST_DEVICE constexpr float product_factor(const AttentionArgs& a) {
  return magnitude(a.scale) * (a.pool_dtype == DType::kF16 ? 0x1p6f : 1.0f);
}
// A score before the factor that makes it an exponent of two.
BANYAN_HOST_DEVICE constexpr float softened_score(float product, const AttentionArgs& a) {
  return soften(product * product_factor(a), a.soft_cap);
}
constexpr float score_of(float product, const AttentionArgs& a) {
  return a.soft_cap > 0 ? softened_score(product, a) : product;
}
inline constexpr float kLog2E = 0x1.715476p+0f;
BANYAN_HOST_DEVICE constexpr float exponent_factor(const AttentionArgs& a) {
  if (a.soft_cap > 0) return kLog2E;
  float factor = product_factor(a) * kLog2E;
  return factor > 0 ? factor : 0x1p-126f;  // times -inf, 0 would be NaN
}

// Largest of a number and one that may be NaN, but for the sign of zero.
BANYAN_HOST_DEVICE inline float larger_of(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return Largest()(a, b);
#endif
}

// 2^(t - 1) of t from 1 to 2 in steps of 2^-14, as far as T can tell: within 2^-13 for bf16, which
// rounds to 2^-9, and 2^-17 for f16, which rounds to 2^-12. In [1, 2), and exactly 1 of 1:
// weight_of takes the bits after the exponent.
template <class T>
BANYAN_HOST_DEVICE inline float power_of_fraction(float t) {
  if constexpr (std::is_same_v<T, Float16>) {
    float p = fused(0x1.bd7d54p-7f, t, -0x1.3f4cdp-9f);
    p = fused(p, t, 0x1.566224p-3f);
    p = fused(p, t, 0x1.3f0ffcp-2f);
    return fused(p, t, 0x1.0528d2p-1f);
  } else {
    float p = fused(0x1.408932p-4f, t, -0x1.1486c6p-7f);
    p = fused(p, t, 0x1.e8fc46p-2f);
    return fused(p, t, 0x1.cf85a6p-2f);
  }
}

// Added to an exponent of two of a weight, which is below 129, it makes a number from 512 to 768:
// its last 14 bits are the fraction and the eight bits before them the exponent field of the
// weight.
inline constexpr float kWeightBias = 512 + 127;

// 2^(score * factor + offset - kWeightBias), which fades to 0 from 2^-126 to 2^-127; NaN for NaN.
// In as few instructions as can be: a GPU spends more time on weights than on anything but
// products.
template <class T>
BANYAN_HOST_DEVICE inline float weight_of(float score, float factor, float offset) {
  constexpr uint32_t kMantissa = 0x7fffff, kOne = 0x3f800000;
  float biased = at_least(fused(score, factor, offset), 512);
  uint32_t bits = std::bit_cast<uint32_t>(biased) << 9;
  float p = power_of_fraction<T>(std::bit_cast<float>(select_bits(kMantissa, bits, kOne)));
  return std::bit_cast<float>(select_bits(kMantissa, std::bit_cast<uint32_t>(p), bits));
}

// The weight of a key of T is 2 to the power of its exponent less the row's maximum, which is below
// the largest one by the headroom at first.
template <class T>
struct RowMax {
  static constexpr float kHeadroom = std::is_same_v<T, Float16> ? 7 : 0;
  float exponent =
      kLowest;  // finite, so that a score of -inf weighs nothing even if it is the first

  // Of a tile; returns the factor of what was summed so far.
  BANYAN_HOST_DEVICE float raise(float of_tile) {
    constexpr float kMaxSlack = 8;
    if (!(of_tile > exponent + (kMaxSlack + kHeadroom))) return 1;
    // Rounded so that offset() is exact.
    float raised = kWeightBias - (kWeightBias - (of_tile - kHeadroom));
    float kept = exp2(exponent - raised);
    exponent = raised;
    return kept;
  }
  // Of weight_of; exact for maxima up to 2^24, and of use up to 2^31, where f32 tells neighbours no
  // longer apart by less than the exponents of weights. A maximum that is no score's would make it
  // infinite.
  BANYAN_HOST_DEVICE constexpr float offset() const {
    return kWeightBias - (exponent == kLowest ? 0 : exponent);
  }
};

// The weights of a part so far. Columns 8 i + 2 j and 8 i + 2 j + 1 of a tile add to weight j, but
// of latents those of the second half of a tile to weight 4 + j.
template <class T>
struct RowSums {
  RowMax<T> max;
  float weights[8] = {};

  void add(int64_t column, float weight, const AttentionArgs& a) {
    bool latents = a.value_dim < a.head_dim;
    weights[column % 8 / 2 + (latents && column >= kKeyTile / 2 ? 4 : 0)] += weight;
  }
  constexpr float weight() const {
    return ((weights[0] + weights[1]) + (weights[2] + weights[3])) +
           ((weights[4] + weights[5]) + (weights[6] + weights[7]));
  }
};

// By which factors what was summed so far and what is added with another maximum are multiplied.
struct Rescaled {
  float max, kept, added;
};
BANYAN_HOST_DEVICE inline Rescaled rescaled(float so_far, float added) {
  float larger = Largest()(so_far, added);
  return {larger, exp2(so_far - larger), exp2(added - larger)};
}

// What a row's sums are multiplied by once the last part is merged. Adding 0 makes a negative zero,
// which a tile without keys may have turned, positive.
struct LastStep {
  float factor;
  BANYAN_HOST_DEVICE constexpr float operator()(float sum) const { return sum * factor + 0.0f; }
};
BANYAN_HOST_DEVICE inline LastStep last_step(const AttentionArgs& a, int64_t head, float max,
                                             float weight) {
  if (a.sinks == nullptr) return {1 / weight};
  Rescaled r = rescaled(max, a.sinks[head] * kLog2E);
  return {r.kept / (weight * r.kept + r.added)};
}

// Where parts of keys begin. The first of them are short: few keys of one sequence have several
// blocks, too.
inline constexpr int32_t kShortParts = 4, kShortPartKeys = 256, kLongPartKeys = 512;
BANYAN_HOST_DEVICE constexpr int32_t part_begin(int32_t part) {
  int32_t later = part - kShortParts;
  return later < 0 ? part * kShortPartKeys : kShortParts * kShortPartKeys + later * kLongPartKeys;
}
BANYAN_HOST_DEVICE constexpr int32_t part_of(int32_t key) {
  int32_t later = key - kShortParts * kShortPartKeys;
  return later < 0 ? key / kShortPartKeys : kShortParts + later / kLongPartKeys;
}

// The parts of keys that rows of a span see.
struct PartRange {
  int32_t begin, end;
};
BANYAN_HOST_DEVICE constexpr PartRange parts_of(KeyRange keys) {
  return {part_of(keys.first), keys.end > 0 ? part_of(keys.end - 1) + 1 : 0};
}
// Those that any row of a span may see.
BANYAN_HOST_DEVICE constexpr KeyRange keys_of(const AttentionArgs& a, const SpanArgs& span) {
  int32_t end = span.first_position + span.row_count;
  if (a.selected.keys_max > 0 && a.selected.keys_max < end) {
    end = static_cast<int32_t>(a.selected.keys_max);
  }
  return {keys_at(span.first_position, a.window).first, end};
}

}  // namespace banyan::cuda
