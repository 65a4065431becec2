// Routing of rows to experts, and the weighted sum of their results. Formulas are cited in
// portable/moe.cpp.
#pragma once

#include "kernels/launch.h"
#include "kernels/vector/rowwise.h"

namespace banyan::simd {

constexpr int64_t kGroupsMax = kExpertsMax;

template <class V>
inline void score_experts(const RouteArgs& a, const float* logits, float* scores) {
  int64_t n = a.experts;
  auto one = V::set(1), zero = V::set(0);
  if (a.score == RouterScore::kSigmoid) {
    for (int64_t e = 0; e < n; e += V::kLanes) {
      auto divisor = V::add(one, exp<V>(V::sub(zero, load_up_to<V>(logits + e, n - e))));
      store_up_to<V>(scores + e, n - e, V::div(one, divisor));
    }
    return;
  }
  float max = largest_number<V>(logits, n);
  float sum = 0;  // added in the order of experts
  for (int64_t e = 0; e < n; e += V::kLanes) {
    store_up_to<V>(scores + e, n - e,
                   exp<V>(V::sub(load_up_to<V>(logits + e, n - e), V::set(max))));
  }
  for (int64_t e = 0; e < n; ++e) sum += scores[e];
  for (int64_t e = 0; e < n; ++e) scores[e] /= sum;
}

// The index of the largest of `choices` that is not NaN, the lowest if several are equal. At least
// one must not be NaN.
template <class V>
inline int64_t best_choice(const float* choices, int64_t count) {
  return find_first<V>(choices, count, largest_number<V>(choices, count));
}

template <class V>
inline float score_group(const RouteArgs& a, const float* choices, int64_t count) {
  int64_t first = best_choice<V>(choices, count);
  if (a.group_score == GroupScore::kMax || count == 1) return choices[first];
  float second = -__builtin_inff();
  for (int64_t i = 0; i < count; ++i) {
    if (i != first && choices[i] > second) second = choices[i];
  }
  float sum = choices[first] + second;
  return sum == sum ? sum : -__builtin_inff();
}

// Sets experts outside the best groups to NaN.
template <class V>
inline void mask_groups(const RouteArgs& a, float* choices) {
  if (a.top_groups >= a.groups) return;
  int64_t size = a.experts / a.groups;
  float groups[kGroupsMax];
  for (int64_t g = 0; g < a.groups; ++g) groups[g] = score_group<V>(a, choices + g * size, size);
  bool kept[kGroupsMax] = {};
  for (int64_t i = 0; i < a.top_groups; ++i) {
    int64_t g = best_choice<V>(groups, a.groups);
    kept[g] = true;
    groups[g] = __builtin_nanf("");
  }
  for (int64_t e = 0; e < a.experts; ++e) {
    if (!kept[e / size]) choices[e] = __builtin_nanf("");
  }
}

template <class V>
inline void route_row(const RouteArgs& a, const float* logits, int32_t* ids, float* weights) {
  float scores[kExpertsMax], choices[kExpertsMax];
  score_experts<V>(a, logits, scores);
  for (int64_t e = 0; e < a.experts; ++e) {
    float choice = scores[e] + (a.bias ? a.bias[e] : 0.0f);
    choices[e] = choice == choice ? choice : -__builtin_inff();
  }
  mask_groups<V>(a, choices);
  float sum = 0;
  for (int64_t j = 0; j < a.top_k; ++j) {
    int64_t e = best_choice<V>(choices, a.experts);
    choices[e] = __builtin_nanf("");
    ids[j] = static_cast<int32_t>(e);
    weights[j] = scores[e];
    sum += scores[e];
  }
  float factor = a.normalise ? a.scale / (sum + 1e-20f) : a.scale;
  for (int64_t j = 0; j < a.top_k; ++j) weights[j] *= factor;
}

template <class V>
void route(const RouteArgs& a) {
  parallel_for(a.launch, a.rows, rows_per_job(a.experts), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      route_row<V>(a, a.logits + r * a.logits_row_stride, a.ids + r * a.top_k,
                   a.weights + r * a.top_k);
    }
  });
}

template <class V>
void combine_experts(const CombineExpertsArgs& a) {
  int64_t grain = rows_per_job(a.dim * a.top_k);
  parallel_for(a.launch, a.rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const float* x = a.x + r * a.x_row_stride;
      const int32_t* places = a.places + r * a.top_k;
      const float* weights = a.weights + r * a.top_k;
      for (int64_t c = 0; c < a.dim; c += V::kLanes) {
        int64_t n = a.dim - c;
        auto sum = V::set(0);
        for (int64_t j = 0; j < a.top_k; ++j) {
          const float* row = places[j] < 0 ? x : a.expert_rows + places[j] * a.dim;
          sum = V::fma(V::set(weights[j]), load_up_to<V>(row + c, n), sum);
        }
        if (a.shared) sum = V::add(sum, load_up_to<V>(a.shared + r * a.dim + c, n));
        store_up_to<V>(a.y + r * a.dim + c, n, sum);
      }
    }
  });
}

}  // namespace banyan::simd
