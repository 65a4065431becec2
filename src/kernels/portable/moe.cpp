// Routing of rows to experts, and the weighted sum of their results.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/launch.h"
#include "kernels/portable/portable.h"

namespace banyan::portable {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

void score(const RouteArgs& a, const float* logits, float* scores) {
  if (a.score == RouterScore::kSigmoid) {
    for (int64_t e = 0; e < a.experts; ++e) scores[e] = 1.0f / (1.0f + std::exp(-logits[e]));
    return;
  }
  float max = *std::max_element(logits, logits + a.experts);
  float sum = 0;
  for (int64_t e = 0; e < a.experts; ++e) sum += scores[e] = std::exp(logits[e] - max);
  for (int64_t e = 0; e < a.experts; ++e) scores[e] /= sum;
}

// The index of the largest element that is not NaN; the lowest if several are equal.
int64_t best(const float* choices, int64_t count) {
  int64_t best = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isnan(choices[i]) && (best < 0 || choices[i] > choices[best])) best = i;
  }
  return best;
}

float score_group(const RouteArgs& a, const float* choices, int64_t count) {
  int64_t first = best(choices, count);
  if (a.group_score == GroupScore::kMax || count == 1) return choices[first];
  float second = -kInfinity;
  for (int64_t i = 0; i < count; ++i) {
    if (i != first) second = std::max(second, choices[i]);
  }
  float sum = choices[first] + second;
  return std::isnan(sum) ? -kInfinity : sum;
}

// Sets the choices of experts outside the best groups to NaN.
void mask_groups(const RouteArgs& a, float* choices) {
  if (a.top_groups >= a.groups) return;
  int64_t size = a.experts / a.groups;
  std::array<float, kExpertsMax> groups;
  for (int64_t g = 0; g < a.groups; ++g) groups[g] = score_group(a, choices + g * size, size);
  std::array<bool, kExpertsMax> kept = {};
  for (int64_t i = 0; i < a.top_groups; ++i) {
    int64_t g = best(groups.data(), a.groups);
    kept[g] = 1;
    groups[g] = NAN;
  }
  for (int64_t e = 0; e < a.experts; ++e) {
    if (!kept[e / size]) choices[e] = NAN;
  }
}

}  // namespace

// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report" (arXiv:2412.19437), equations 12 to 16, with
// node-limited routing; and Shazeer et al. 2017, "Outrageously Large Neural Networks".
void route(const RouteArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    std::array<float, kExpertsMax> scores, choices;
    for (int64_t r = begin; r < end; ++r) {
      score(a, a.logits + r * a.logits_row_stride, scores.data());
      for (int64_t e = 0; e < a.experts; ++e) {
        float choice = scores[e] + (a.bias ? a.bias[e] : 0.0f);
        choices[e] = std::isnan(choice) ? -kInfinity : choice;
      }
      mask_groups(a, choices.data());
      float sum = 0;
      for (int64_t j = 0; j < a.top_k; ++j) {
        int64_t e = best(choices.data(), a.experts);
        choices[e] = NAN;
        a.ids[r * a.top_k + j] = static_cast<int32_t>(e);
        a.weights[r * a.top_k + j] = scores[e];
        sum += scores[e];
      }
      // The small constant avoids 0 / 0 if all sigmoids are 0.
      float factor = a.normalise ? a.scale / (sum + 1e-20f) : a.scale;
      for (int64_t j = 0; j < a.top_k; ++j) a.weights[r * a.top_k + j] *= factor;
    }
  });
}

void combine_experts(const CombineExpertsArgs& a) {
  parallel_for(a.launch, a.rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* y = a.y + r * a.dim;
      std::fill(y, y + a.dim, 0.0f);
      for (int64_t j = r * a.top_k; j < (r + 1) * a.top_k; ++j) {
        const float* row =
            a.places[j] < 0 ? a.x + r * a.x_row_stride : a.expert_rows + a.places[j] * a.dim;
        for (int64_t c = 0; c < a.dim; ++c) y[c] += a.weights[j] * row[c];
      }
      if (a.shared == nullptr) continue;
      for (int64_t c = 0; c < a.dim; ++c) y[c] += a.shared[r * a.dim + c];
    }
  });
}

}  // namespace banyan::portable
